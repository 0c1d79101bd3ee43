// lib/ir/program_part.h - cuts a part out of a function, and simplifies functions.
#pragma once

#include <cstdint>
#include <set>

#include "lib/ir/model_graph.h"
#include "lib/ir/program.h"

namespace mlc {

// Operations without constants, those of nested blocks included. Operations whose results share a
// name with values of other blocks are omitted.
ModelGraph GraphOf(const Function& function);

// Reduces the function to a part (PartWithout, or CheckPart must accept it): new inputs, outputs,
// and only what the outputs need. Operations that write a state stay as long as the state is read.
// Ports that remain are unchanged. An expression of symbols in the shape of a new input becomes a
// new symbol; then, and if elements of a new input were known, all types are inferred again, with
// the errors of infer. Error "bad-operand" if a value other than a tensor would become an input.
void TakePart(Function& function, const ModelPart& part);

// Converts inputs and outputs for Core ML: bool to int32, scalars to vectors of one element.
void ConvertPortsForCoreml(Function& function);

// The number of operations, without constants.
int64_t OperationCount(const Program& program);

// The number of places where the function can be simplified, and the simplification of some of
// them. Types are inferred again where they depend on it, with the errors of infer.
size_t PlacesToSimplify(Function& function, Simplification how);
void Simplify(Function& function, Simplification how, const std::set<size_t>& places);

}  // namespace mlc
