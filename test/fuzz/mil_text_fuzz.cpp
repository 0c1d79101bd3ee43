// MIL text: programs that parse are valid. Our text form parses back and prints the same; so does
// Apple's form (which drops symbols), if it parses.
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/ir/text.h"
#include "lib/ops/row.h"

namespace mlc {
namespace {

std::optional<Program> Parse(std::string_view text) {
  try {
    return ParseText(text, "input", Ops(), [](auto&, uint64_t, DType dtype, const Dims& dims) {
      if (ElementCount(dims) > 4096) throw Error("resource-limit", "too large for a fuzzer");
      return Tensor::Full(dtype, dims, 1);
    });
  } catch (const Error&) {
    return std::nullopt;
  }
}

void CheckStable(const Program& program, int inline_limit) {
  TextOptions options;
  options.inline_limit = inline_limit;
  std::string once = PrintText(program, options);
  std::optional<Program> again = Parse(once);
  if (!again && inline_limit == 0) return;
  MLC_CHECK(again, "does not parse back:\n{}", once);
  MLC_CHECK(PrintText(*again, options) == once, "does not print the same:\n{}", once);
}

}  // namespace
}  // namespace mlc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::optional<mlc::Program> program = mlc::Parse({reinterpret_cast<const char*>(data), size});
  if (!program) return 0;
  mlc::Verify(*program);
  mlc::CheckStable(*program, 0);
  mlc::CheckStable(*program, 8);
  return 0;
}
