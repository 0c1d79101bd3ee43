#include "lib/support/delta_debugging.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace mlc {

std::set<size_t> RemovableItems(size_t count,
                                const std::function<bool(const std::set<size_t>&)>& may_remove) {
  constexpr size_t kMostAlone = 64;  // chunks that are tried alone
  std::set<size_t> removed;
  std::vector<size_t> kept(count);
  std::iota(kept.begin(), kept.end(), size_t{0});
  // Removes kept[begin, end), or all others, if that is possible.
  const auto remove = [&](size_t begin, size_t end, bool others) {
    std::set<size_t> more = removed;
    std::vector<size_t> left;
    for (size_t i = 0; i < kept.size(); ++i)
      if ((begin <= i && i < end) != others)
        more.insert(kept[i]);
      else
        left.push_back(kept[i]);
    if (!may_remove(more)) return false;
    removed = std::move(more);
    kept = std::move(left);
    return true;
  };
  size_t chunk = count;
  while (!kept.empty()) {
    bool changed = false;
    const size_t chunks = (kept.size() + chunk - 1) / chunk;
    if (chunks > 2 && chunks <= kMostAlone)
      for (size_t end = kept.size(); end > 0 && !changed; end -= std::min(chunk, end))
        changed = remove(end - std::min(chunk, end), end, true);
    for (size_t end = kept.size(); end > 0 && !kept.empty();) {
      const size_t begin = end - std::min(chunk, end);
      if (remove(begin, end, false)) changed = true;
      end = begin;
    }
    // An item that had to stay may be removable once others are gone.
    if (chunk == 1 && !changed) break;
    chunk = std::max<size_t>(1, std::min(chunk, kept.size()) / 2);
  }
  return removed;
}

}  // namespace mlc
