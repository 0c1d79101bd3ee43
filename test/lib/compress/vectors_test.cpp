#include "lib/compress/vectors.h"

#include <random>

#include "test/catch.h"

using namespace mlc::compress;

namespace {

// Small integers have many equal distances and equal first elements.
std::vector<float> Integers(int64_t count, int most, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(random() % most));
  return numbers;
}

}  // namespace

TEST_CASE("vectors: the nearest is that of a search through the whole table") {
  for (const int64_t length : {1, 2, 4})
    for (unsigned seed = 0; seed < 30; ++seed) {
      const std::vector<float> numbers = Integers(64 * length, 12, seed);
      const std::vector<float> table = VectorTable(numbers, {}, length, 16);
      for (int64_t i = 0; i < 64; ++i) {
        const float* vector = &numbers[i * length];
        int64_t nearest = 0;
        for (int64_t k = 1; k < 16; ++k)
          if (SquaredDistance(vector, &table[k * length], length) <
              SquaredDistance(vector, &table[nearest * length], length))
            nearest = k;
        const int64_t found = NearestVector(table, vector, length);
        INFO("length " << length << ", seed " << seed << ", vector " << i);
        CHECK(SquaredDistance(vector, &table[found * length], length) ==
              Approx(SquaredDistance(vector, &table[nearest * length], length)).margin(1e-6));
      }
    }
}

TEST_CASE("vectors: of equal entries, the lowest") {
  const std::vector<float> table = {0, 0, 1, 0, 1, 0, 1, 2, 3, 1};
  const std::vector<float> vector = {1, 1};
  CHECK(NearestVector(table, vector.data(), 2) == 1);
}

TEST_CASE("vectors: a weight of n counts like n equal vectors") {
  std::vector<float> numbers = Integers(40, 9, 1), repeated, weights;
  for (size_t i = 0; i < 20; ++i) {
    weights.push_back(static_cast<float>(1 + i % 3));
    for (size_t n = 0; n < 1 + i % 3; ++n)
      repeated.insert(repeated.end(), {numbers[2 * i], numbers[2 * i + 1]});
  }
  auto error = [&](const std::vector<float>& table) {
    double sum = 0;
    for (size_t i = 0; i < repeated.size(); i += 2)
      sum += SquaredDistance(&repeated[i], &table[NearestVector(table, &repeated[i], 2) * 2], 2);
    return sum;
  };
  const std::vector<float> weighted = VectorTable(numbers, weights, 2, 8);
  CHECK(error(weighted) < error(VectorTable(numbers, {}, 2, 8)));
  CHECK(error(weighted) < 1.3 * error(VectorTable(repeated, {}, 2, 8)));
}
