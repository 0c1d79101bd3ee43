// lib/ir/text.h - MIL in Apple's textual form (model.mil): the printer and the parser.
//
// Dialects: program(1.0) writes scalars as rank-0 tensors (`tensor<int32, []>`), program(1.3) as
// bare types (`int32`). Grammar and exact layout, with our extensions for people and tests:
// lib/ir/README.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lib/ir/program.h"

namespace mlc {

struct TextOptions {
  enum class Dialect { kAuto, k1_0, k1_3 };
  Dialect dialect = Dialect::kAuto;  // auto: 1.3 where the file or a function is of iOS18 or newer
  // 0: Apple's form. Above 0: the form for people and golden tests, without program header and
  // default names, with symbols for dynamic dimensions, decimal floats, and constants of at most
  // `inline_limit` elements that have one use written where they are used.
  int inline_limit = 0;
  // Constants as BLOBFILE references to these places; called in order of appearance. Nothing:
  // written out.
  struct Blob {
    std::string path;  // "@model_path/weights/weight.bin"
    uint64_t offset;
  };
  std::function<std::optional<Blob>(const Tensor&)> blob;
  // Entries of the program's buildInfo beside its own; one of the same name is replaced.
  std::vector<std::pair<std::string, std::string>> build_info;
  // Above 0: of a larger constant only its first elements are written, then `...`; such text does
  // not parse back.
  int64_t max_elements = 0;
};
std::string PrintText(const Program& program, const TextOptions& options = {});

// Reads what PrintText and Apple's compiler write. `source_name` and the line appear in errors and
// in the operations' locations. Errors: "bad-text" (with line:column, the line and a caret),
// "unsupported-operator", "resource-limit", and what infer throws, located. A stated result type
// that contradicts infer is "bad-text"; `?` in a result, or no type at all, takes what infer says.
// BLOBFILE references are resolved through `read_blob` (null: they become Tensor::Absent). Open
// dimensions of function inputs get the names of `input_dims` where it has them.
using ReadBlobFn =
    std::function<Tensor(const std::string& path, uint64_t offset, DType dtype, const Dims& dims)>;
Program ParseText(std::string_view text, const std::string& source_name, const OpSet& ops,
                  const ReadBlobFn& read_blob = {}, const InputDims& input_dims = {});

// Whether the text, after comments, begins as a program does.
bool IsMilText(std::string_view text);
// The dialect that the text's first line states, which a Program does not keep; kAuto where it
// states none.
TextOptions::Dialect DialectOf(std::string_view text);

}  // namespace mlc
