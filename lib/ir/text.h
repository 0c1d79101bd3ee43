// lib/ir/text.h - MIL in Apple's textual form (model.mil): the printer and the parser.
//
// Dialects: program(1.0) writes scalars as rank-0 tensors (`tensor<int32, []>`), program(1.3) as bare types (`int32`). Grammar and
// exact layout: the public model.mil files that Apple's compiler wrote; lib/ir/README.md has it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lib/ir/program.h"

namespace mlc {

struct TextOptions {
  enum class Dialect { kAuto, k1_0, k1_3 } dialect = Dialect::kAuto;  // auto: by the newest function's opset (1.3 from iOS18)
  // For people and golden tests: constants of at most `inline_limit` elements are written where they are used, and `const` lines
  // vanish; larger ones show their first elements. 0: Apple's form, nothing inlined.
  int inline_limit = 0;
  // Larger constants as BLOBFILE references at these offsets (by constant's tensor identity), as model.mil has them.
  // Null: every element is written out (elided after `max_elements` when that is positive; such text does not parse back).
  std::function<std::optional<uint64_t>(const Operation&)> blob_offset;
  int64_t max_elements = 0;
  std::string blob_path = "@model_path/weights/weight.bin";
};
std::string PrintText(const Program& program, const TextOptions& options = {});

// Reads what PrintText and Apple's compiler write. `source_name` appears in errors ("bad-text", with line:column and the line).
// BLOBFILE references are resolved through `read_blob` (null: they become constants that fail with Error "bad-file" when read).
using ReadBlobFn = std::function<Tensor(const std::string& path, uint64_t offset, DType dtype, const Dims& dims)>;
Program ParseText(std::string_view text, const std::string& source_name, const OpSet& ops, const ReadBlobFn& read_blob = {});

}  // namespace mlc
