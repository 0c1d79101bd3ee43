#include "lib/support/delta_debugging.h"

#include <algorithm>

#include "test/catch.h"

namespace mlc::test {
namespace {

struct Search {
  std::set<size_t> kept;
  int calls = 0;
};

// Searches for the items that the set `needed` leaves.
Search SearchFor(size_t count, const std::set<size_t>& needed) {
  Search search;
  const std::set<size_t> removed = RemovableItems(count, [&](const std::set<size_t>& items) {
    ++search.calls;
    return std::none_of(needed.begin(), needed.end(),
                        [&](size_t item) { return items.contains(item); });
  });
  for (size_t i = 0; i < count; ++i)
    if (!removed.contains(i)) search.kept.insert(i);
  return search;
}

}  // namespace

TEST_CASE("delta debugging: exactly the needed items stay") {
  for (const std::set<size_t>& needed :
       {std::set<size_t>{}, {0}, {999}, {500}, {0, 999}, {1, 2, 3, 500, 998}})
    CHECK(SearchFor(1000, needed).kept == needed);
  CHECK(SearchFor(0, {}).kept.empty());
  CHECK(SearchFor(1, {0}).kept == std::set<size_t>{0});
}

TEST_CASE("delta debugging: one needed item takes about two calls per halving") {
  for (size_t item : {size_t{0}, size_t{313}, size_t{999}})
    CHECK(SearchFor(1000, {item}).calls <= 30);
  CHECK(SearchFor(1000, {}).calls == 1);
}

TEST_CASE("delta debugging: an item that depends on another is removed after it") {
  // Items 4 and 6 have to stay; item 7 can be removed only after item 5, which is tried later.
  const std::set<size_t> removed = RemovableItems(8, [](const std::set<size_t>& items) {
    return !items.contains(4) && !items.contains(6) && (!items.contains(7) || items.contains(5));
  });
  CHECK(removed == std::set<size_t>{0, 1, 2, 3, 5, 7});
}

TEST_CASE("delta debugging: a small valid rest is found where larger ones are not valid") {
  // Item 70 has to stay; a rest of more than 20 items is not valid.
  int calls = 0;
  const std::set<size_t> removed = RemovableItems(100, [&](const std::set<size_t>& items) {
    ++calls;
    return !items.contains(70) && items.size() >= 80;
  });
  CHECK(removed.size() == 99);
  CHECK(calls < 60);
}

TEST_CASE("delta debugging: nothing is removed if nothing may be") {
  CHECK(RemovableItems(20, [](const std::set<size_t>&) { return false; }).empty());
}

}  // namespace mlc::test
