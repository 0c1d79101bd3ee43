// lib/coreml/interface_entry.h - the metadata entry `mlc.interface`: what Core ML's description
// cannot say about ports.
//
// Versioned JSON with, per function and port, the name in the source model, its element type and
// shape there, and the symbols that stand for an input's flexible dimensions:
//   {"version": 1, "functions": {"main": {"inputs": [
//     {"name": "x", "source": "input.1", "dtype": "int64", "shape": ["batch", 3],
//      "dims": ["batch", 3]}], "outputs": [...],
//     "absent_inputs": [{"source": "axes", "place": 1, "dtype": "int64", "shape": [1],
//                        "xxh3_128": "..."}]}}}
// Ports and members that say nothing are left out.
#pragma once

#include <string>
#include <string_view>

#include "lib/ir/program.h"

namespace mlc {

// "rgb", "bgr" or "gray"; nothing for what is no image.
std::string_view ImageName(Port::Feature feature);

inline constexpr std::string_view kInterfaceKey = "mlc.interface";

// The symbol of an input's open dimension that no entry names.
std::string OpenDimName(std::string_view input, size_t dim);

// The entry's text, or nothing when no port says more than the description.
std::string InterfaceEntry(const Program& program);

// Completes ports (by their names) from an entry; `dims` of an input become symbols in `input_dims`
// (function, input name). Unknown versions are ignored; Error "bad-file" when the text is not such
// JSON.
InputDims ApplyInterfaceEntry(std::string_view text, Program& program);

}  // namespace mlc
