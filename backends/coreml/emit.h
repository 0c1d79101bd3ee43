// backends/coreml/emit.h - a Program as the protobuf message that model.mlmodel holds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/coreml/weights.h"
#include "lib/ir/program.h"

namespace mlc::schema {
class Model;
class ModelDescription;
}  // namespace mlc::schema

namespace mlc {

// Names under which values leave a function, where they differ from the values' own.
using OutputNames = std::vector<std::vector<std::string>>;  // by function, by output

// Fills the program of `model`: every operation in the target's form, every default spelled out as
// a const operation. Constants for the weight file are added to `weights`, which sets their offsets
// in `model` when it is laid out: keep `model` until then. `operators` counts what was written but
// constants: the program's operations, and identities where Core ML wants them before an output.
// Error "too-large" when the constants that must stand in the program pass 2 GiB, "bad-file" for
// strings that are not UTF-8.
OutputNames EmitProgram(const Program& program, Opset target, WeightPlan& weights,
                        std::map<std::string, int64_t>& operators, mlc::schema::Model& model);

// Fills inputs, outputs, states and metadata.
void EmitDescription(const Program& program, Opset target, const OutputNames& outputs,
                     mlc::schema::ModelDescription& description, Diagnostics& diagnostics);

}  // namespace mlc
