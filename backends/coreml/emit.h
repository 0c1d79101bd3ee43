// backends/coreml/emit.h - converts a Program to the protobuf message of model.mlmodel.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/coreml/weight_file.h"
#include "lib/ir/program.h"

namespace mlc::schema {
class Model;
class ModelDescription;
}  // namespace mlc::schema

namespace mlc::coreml {

// The names under which a function returns its outputs, where they differ from those of the values.
using OutputNames = std::vector<std::vector<std::string>>;  // by function, by output

// Fills in the program of `model`: every operation in the form of the target, with all defaults as
// explicit const operations. Constants for the weight file are added to `weights`, which writes
// their offsets into `model` at layout; keep `model` until then. `operators` counts the written
// operations except constants, including identities that Core ML requires before outputs. Error
// "too-large" if the constants inside the program exceed 2 GiB, "bad-file" for strings that are not
// UTF-8.
OutputNames EmitProgram(const Program& program, Opset target, WeightPlan& weights,
                        std::map<std::string, int64_t>& operators, mlc::schema::Model& model);

// Fills in inputs, outputs, states and metadata.
void EmitDescription(const Program& program, Opset target, const OutputNames& outputs,
                     mlc::schema::ModelDescription& description, Diagnostics& diagnostics);

}  // namespace mlc::coreml
