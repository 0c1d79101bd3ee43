#include "backends/apple/strided.h"

#include <fmt/ranges.h>

#include <cstring>

#include "lib/support/error.h"

namespace mlc::apple {

int64_t Extent(const Dims& dims, const Dims& strides) {
  auto refuse = [&] {
    throw Error("schema-mismatch", "Core ML's array of shape [{}] has the unsupported strides [{}]",
                fmt::join(dims, ", "), fmt::join(strides, ", "));
  };
  if (dims.size() != strides.size()) refuse();
  int64_t last = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return 0;
    int64_t step = 0;
    if (dims[i] < 0 || strides[i] < 0 || __builtin_mul_overflow(dims[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      refuse();
  }
  return last + 1;
}

void CopyStrided(const Dims& dims, size_t element, const std::byte* from, const Dims& from_strides,
                 std::byte* to, const Dims& to_strides) {
  if (Extent(dims, from_strides) == 0 || Extent(dims, to_strides) == 0) return;
  // Inner dimensions that are contiguous on both sides are copied as one block.
  size_t outer = dims.size();
  int64_t run = 1;
  for (; outer > 0; --outer) {
    const size_t d = outer - 1;
    if (dims[d] != 1 && (from_strides[d] != run || to_strides[d] != run)) break;
    run *= dims[d];
  }
  Dims at(outer, 0);
  while (true) {
    int64_t source = 0, target = 0;
    for (size_t d = 0; d < outer; ++d) {
      source += at[d] * from_strides[d];
      target += at[d] * to_strides[d];
    }
    std::memcpy(to + target * element, from + source * element, run * element);
    size_t d = outer;
    while (d > 0 && ++at[d - 1] == dims[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace mlc::apple
