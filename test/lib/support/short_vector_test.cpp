#include "lib/support/short_vector.h"

#include <memory>
#include <string>

#include "test/catch.h"

namespace mlc {

namespace {
ShortVector<std::string> Numbers(int count) {
  ShortVector<std::string> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back("a text that is longer, " + std::to_string(i));
  return numbers;
}

bool Same(const ShortVector<std::string>& a, const ShortVector<std::string>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}
}  // namespace

TEST_CASE("short vector: zero, one and many elements", "[short-vector]") {
  for (int count : {0, 1, 2, 3, 17}) {
    for (int other : {0, 1, 2, 5}) {
      ShortVector<std::string> copied = Numbers(other), moved = Numbers(other);
      ShortVector<std::string> from = Numbers(count);
      copied = from;
      CHECK(Same(copied, Numbers(count)));
      moved = std::move(from);
      CHECK(Same(moved, copied));
      CHECK(from.empty());  // NOLINT: moved-from short vectors are empty
      from = Numbers(other);
      CHECK(Same(from, Numbers(other)));
    }
    ShortVector<std::string> numbers = Numbers(count);
    CHECK(static_cast<int>(numbers.size()) == count);
    CHECK(std::distance(numbers.rbegin(), numbers.rend()) == count);
    numbers.resize(2);
    CHECK(numbers.size() == 2);
    numbers.erase(numbers.begin());
    CHECK(numbers.size() == 1);
    CHECK(numbers.front() == (count > 1 ? Numbers(2)[1] : ""));
    numbers.clear();
    CHECK(numbers.empty());
  }
}

TEST_CASE("short vector: push_back of its own element", "[short-vector]") {
  ShortVector<std::string> numbers = Numbers(1);
  for (int i = 0; i < 9; ++i) numbers.push_back(numbers.front());
  for (const std::string& number : numbers) CHECK(number == Numbers(1)[0]);
}

TEST_CASE("short vector: move-only elements", "[short-vector]") {
  ShortVector<std::unique_ptr<int>> owners;
  for (int i = 0; i < 3; ++i) {
    ShortVector<std::unique_ptr<int>> grown = std::move(owners);
    grown.push_back(std::make_unique<int>(i));
    owners = std::move(grown);
  }
  for (int i = 0; i < 3; ++i) CHECK(*owners[static_cast<size_t>(i)] == i);
}

}  // namespace mlc
