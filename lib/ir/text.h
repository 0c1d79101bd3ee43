// lib/ir/text.h - printer and parser of Apple's textual form of MIL (model.mil).
//
// Dialects: program(1.0) writes scalars as rank-0 tensors (`tensor<int32, []>`), program(1.3) as
// bare types (`int32`). lib/ir/README.md describes the grammar, the exact layout and our
// extensions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lib/ir/program.h"

namespace mlc {

struct TextOptions {
  enum class Dialect { kAuto, k1_0, k1_3 };
  // kAuto: 1.3 if the file or a function requires iOS18 or newer.
  Dialect dialect = Dialect::kAuto;
  // 0: Apple's form. Above 0: the readable form that golden tests use. It omits the program header
  // and default names, has symbols for dynamic dimensions and decimal floats, and writes a constant
  // of at most `inline_limit` elements inline if it has a single use.
  int inline_limit = 0;
  // Called for each constant in order of appearance. The constant is written as a BLOBFILE
  // reference if a place is returned, otherwise inline.
  struct Blob {
    std::string path;  // "@model_path/weights/weight.bin"
    uint64_t offset;
  };
  std::function<std::optional<Blob>(const Tensor&)> blob;
  // Additional buildInfo entries; an entry replaces the program's own of the same name.
  std::vector<std::pair<std::string, std::string>> build_info;
  // Above 0: writes only the first elements of a larger constant, then `...`; such text cannot be
  // parsed.
  int64_t max_elements = 0;
};
std::string PrintText(const Program& program, const TextOptions& options = {});

// Parses the output of PrintText and of Apple's compiler. `source_name` and the line appear in
// errors and in the operations' locations. Errors: "bad-text" (with line:column, the line and a
// caret), "unsupported-operator", "resource-limit", and those of infer, with a location. A stated
// result type that contradicts the inferred one is "bad-text"; `?` in a result type, or no type,
// takes the inferred one. `read_blob` resolves BLOBFILE references (null: they become
// Tensor::Absent). Symbolic dimensions of function inputs are named by `input_dims` where possible.
using ReadBlobFn =
    std::function<Tensor(const std::string& path, uint64_t offset, DType dtype, const Dims& dims)>;
Program ParseText(std::string_view text, const std::string& source_name, const OpSet& ops,
                  const ReadBlobFn& read_blob = {}, const InputDims& input_dims = {});

// Returns whether the text, after comments, starts like a program.
bool IsMilText(std::string_view text);
// The dialect stated in the first line, which a Program does not keep; kAuto if none is stated.
TextOptions::Dialect DialectOf(std::string_view text);

}  // namespace mlc
