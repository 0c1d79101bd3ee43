// lib/coreml/interface_entry.h - the metadata entry `mlc.interface`, which records facts about
// ports and weights that Core ML's description cannot express.
//
// Versioned JSON. For each function and port it has the name, element type and shape in the source
// model, and the symbols of an input's flexible dimensions; for each constant, the name of the
// tensor of the source that it is, or a list of those that it was computed from:
//   {"version": 1, "functions": {"main": {"inputs": [
//     {"name": "x", "source": "input.1", "dtype": "int64", "shape": ["batch", 3],
//      "dims": ["batch", 3]}], "outputs": [...],
//     "absent_inputs": [{"source": "axes", "place": 1, "dtype": "int64", "shape": [1],
//                        "xxh3_128": "..."}],
//     "weights": {"fc_weight": "fc.weight", "conv": ["bn.scale", "conv.weight"]}}}}
// Ports and members without information are omitted, except that a function of a program whose
// constants state their sources always has `weights`.
#pragma once

#include <string>
#include <string_view>

#include "lib/ir/program.h"

namespace mlc::coreml {

// "rgb", "bgr" or "gray"; empty for other features.
std::string_view ImageName(Port::Feature feature);

inline constexpr std::string_view kInterfaceKey = "mlc.interface";

// The symbol of a flexible dimension that no entry names.
std::string OpenDimName(std::string_view input, size_t dim);

// The text of the entry; empty if no port has more information than the description.
std::string InterfaceEntry(const Program& program);

// Sets the provenance of the constants, by name. The errors are those of ApplyInterfaceEntry.
void ApplyWeightSources(std::string_view text, Program& program);

// Completes ports, matched by name, from an entry. The `dims` of an input become symbols in the
// returned map (function, input name). Unknown versions are ignored. Error "bad-file" if the text
// is malformed.
InputDims ApplyInterfaceEntry(std::string_view text, Program& program);

}  // namespace mlc::coreml
