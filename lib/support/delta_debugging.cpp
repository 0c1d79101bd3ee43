#include "lib/support/delta_debugging.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

namespace mlc {

std::set<size_t> RemovableItems(size_t count,
                                const std::function<bool(const std::set<size_t>&)>& may_remove) {
  std::set<size_t> removed;
  std::vector<size_t> kept(count);
  std::iota(kept.begin(), kept.end(), size_t{0});
  size_t chunk = count;
  while (!kept.empty()) {
    bool changed = false;
    size_t end = kept.size();
    while (end > 0) {
      const size_t begin = end - std::min(chunk, end);
      std::set<size_t> more = removed;
      more.insert(kept.begin() + std::ptrdiff_t(begin), kept.begin() + std::ptrdiff_t(end));
      if (may_remove(more)) {
        removed = std::move(more);
        kept.erase(kept.begin() + std::ptrdiff_t(begin), kept.begin() + std::ptrdiff_t(end));
        changed = true;
      }
      end = begin;
    }
    // An item that had to stay may be removable once others are gone.
    if (chunk == 1 && !changed) break;
    chunk = std::max<size_t>(1, std::min(chunk, kept.size()) / 2);
  }
  return removed;
}

}  // namespace mlc
