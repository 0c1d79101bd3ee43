#include "lib/compress/tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "test/catch.h"

namespace mlc::compress {
namespace {

// The least error of fp16 tables for any division of the points into `size` ranges.
double LeastError(const Points& points, size_t size, size_t begin = 0) {
  const size_t count = points.values.size();
  if (begin == count) return 0;
  if (size == 0) return std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity();
  for (size_t end = begin + 1; end <= count; ++end) {
    double weight = 0, sum = 0, error = 0;
    for (size_t i = begin; i < end; ++i) {
      weight += points.weights[i];
      sum += points.weights[i] * points.values[i];
    }
    const auto entry =
        static_cast<double>(RoundedTo(Stored::kFp16, static_cast<float>(sum / weight)));
    for (size_t i = begin; i < end; ++i) {
      const double off = points.values[i] - entry;
      error += points.weights[i] * off * off;
    }
    least = std::min(least, error + LeastError(points, size - 1, end));
  }
  return least;
}

Points Drawn(std::mt19937& random, size_t count, double from, double size) {
  std::uniform_real_distribution<double> uniform(0, 1);
  Points points;
  for (size_t i = 0; i < count; ++i) points.values.push_back(from + size * uniform(random));
  std::ranges::sort(points.values);
  for (size_t i = 0; i < count; ++i) points.weights.push_back(std::floor(1 + 4 * uniform(random)));
  return points;
}

}  // namespace

TEST_CASE("tables: entries are the best ones that can be stored, also where rounding is coarse") {
  // fp16 numbers between 1024 and 2048 are 1 apart.
  std::mt19937 random(1);
  int best = 0;
  constexpr int kCases = 400;
  for (int i = 0; i < kCases; ++i) {
    const size_t count = 4 + random() % 7;
    const int size = 2 + static_cast<int>(random() % 3);
    const Points points = Drawn(random, count, 1100, 12);
    const Table table = BestTable(points, size, false, Stored::kFp16);
    const double least = LeastError(points, static_cast<size_t>(size));
    CHECK(table.error >= least * (1 - 1e-9));
    if (table.error <= least * (1 + 1e-9)) ++best;
  }
  CHECK(best == kCases);
  const Points many = Drawn(random, 17, 1100, 12);  // more than eight for each of two entries
  const double error = BestTable(many, 2, false, Stored::kFp16).error, least = LeastError(many, 2);
  CHECK(error >= least * (1 - 1e-9));
  CHECK(error < least * 1.05);
}

TEST_CASE("tables: the error is that of the nearest entries") {
  std::mt19937 random(2);
  for (const bool int8_entries : {false, true})
    for (const double from : {-0.5, 1100.0}) {
      const Points points = Drawn(random, 200, from, 1);
      const Table table = BestTable(points, 16, int8_entries, Stored::kFp16);
      double error = 0;
      for (size_t i = 0; i < points.values.size(); ++i) {
        double off = std::numeric_limits<double>::infinity();
        for (const float entry : table.entries)
          off = std::min(off, std::fabs(points.values[i] - static_cast<double>(entry)));
        error += points.weights[i] * off * off;
      }
      CHECK(table.error == Approx(error).epsilon(1e-9));
      CHECK(std::ranges::is_sorted(table.entries));
      if (!int8_entries) continue;
      for (size_t i = 0; i < table.entries.size(); ++i)
        CHECK(table.entries[i] == table.scale * static_cast<float>(table.integers[i]));
    }
}

}  // namespace mlc::compress
