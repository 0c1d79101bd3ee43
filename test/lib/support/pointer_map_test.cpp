#include "lib/support/pointer_map.h"

#include <deque>

#include "test/catch.h"

namespace mlc {

TEST_CASE("pointer map: lookup and insertion order", "[pointer-map]") {
  std::deque<int> keys(1000);
  PointerMap<int, size_t> map;
  CHECK(map.empty());
  CHECK(!map.contains(&keys[0]));
  for (size_t i = 0; i < keys.size(); i += 2) map[&keys[i]] = i;
  for (size_t i = 0; i < keys.size(); ++i) {
    CHECK(map.contains(&keys[i]) == (i % 2 == 0));
    if (i % 2 == 0) CHECK(map.find(&keys[i])->second == i);
  }
  CHECK(map.find(nullptr) == map.end());
  auto [again, made] = map.try_emplace(&keys[4]);
  CHECK(!made);
  CHECK(again->second == 4);
  size_t next = 0;
  for (const auto& [key, number] : map) {
    CHECK(key == &keys[next]);
    CHECK(number == next);
    next += 2;
  }
  CHECK(map.size() == keys.size() / 2);
}

}  // namespace mlc
