#include "lib/coreml/package.h"

namespace mlc {

std::optional<int64_t> FixedSize(const Dim& dim, const std::map<std::string, Dim::Range>& symbols) {
  if (dim.is_constant()) return dim.constant();
  Dim::Range range = dim.Bounds(symbols);
  if (range.low == range.high) return range.low;
  return std::nullopt;
}

}  // namespace mlc
