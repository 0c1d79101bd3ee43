// lib/support/delta_debugging.h - the search for a large removable set of items, as in ddmin
// (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002).
#pragma once

#include <cstddef>
#include <functional>
#include <set>

namespace mlc {

// Returns a set of the items 0 ... count - 1 for which `may_remove` returned true and to which no
// single further item can be added; empty if there is none. The remaining items are divided into
// chunks, which start with all items and halve. While there are few chunks, all items but one chunk
// are removed if possible, which helps where larger rests are not valid; then single chunks, the
// last ones first. Deterministic; about 2 log2(count) calls if a single item has to stay, at most
// quadratically many.
std::set<size_t> RemovableItems(size_t count,
                                const std::function<bool(const std::set<size_t>&)>& may_remove);

}  // namespace mlc
