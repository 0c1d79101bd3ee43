#include "lib/compress/clusters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>

#include "test/catch.h"

using namespace mlc;
using namespace mlc::compress;

namespace {

// The minimum cost over all partitions of values[first ...] into `groups` groups.
double Least(const std::vector<double>& values, const std::vector<double>& counts, size_t first,
             int groups) {
  if (first == values.size()) return 0;
  if (groups == 0) return std::numeric_limits<double>::infinity();
  double best = std::numeric_limits<double>::infinity();
  for (size_t end = first + 1; end <= values.size(); ++end) {
    double count = 0, mean = 0, cost = 0;
    for (size_t i = first; i < end; ++i) count += counts[i], mean += counts[i] * values[i];
    mean /= count;
    for (size_t i = first; i < end; ++i)
      cost += counts[i] * (values[i] - mean) * (values[i] - mean);
    best = std::min(best, cost + Least(values, counts, end, groups - 1));
  }
  return best;
}

double CostOf(const std::vector<double>& values, const std::vector<double>& counts,
              const std::vector<double>& means) {
  double cost = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    double nearest = std::numeric_limits<double>::infinity();
    for (double mean : means) nearest = std::min(nearest, (values[i] - mean) * (values[i] - mean));
    cost += counts[i] * nearest;
  }
  return cost;
}

}  // namespace

TEST_CASE("clusters: the clustering is optimal") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> step(0.01, 1);
  for (int round = 0; round < 10000; ++round) {
    const size_t size = 1 + random() % 12;
    std::vector<double> values, counts;
    double at = -3;
    for (size_t i = 0; i < size; ++i) {
      // Some cases have values at equal distances, for which several numbers of clusters gain alike.
      at += round % 3 == 0 ? 1 : step(random) * (random() % 4 == 0 ? 5 : 1);
      values.push_back(at);
      counts.push_back(round % 6 == 0 ? 1 : static_cast<double>(1 + random() % 9) * step(random));
    }
    for (int groups = 1; groups <= 4; ++groups) {
      std::vector<double> means = OptimalMeans(values, counts, groups);
      INFO("round " << round << ", " << size << " values, " << groups << " groups");
      REQUIRE(means.size() == std::min<size_t>(groups, size));
      CHECK(std::is_sorted(means.begin(), means.end()));
      CHECK(CostOf(values, counts, means) <= Least(values, counts, 0, groups) * (1 + 1e-9) + 1e-12);
    }
  }
}

TEST_CASE("clusters: large problems have the cost of dynamic programming over all starts") {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  // Numbers of values for which clusters are shorter and much longer than the blocks that are solved
  // at once; cubes have values far from all others.
  for (const auto& [size, groups, power] : {std::tuple<size_t, int, int>{300, 2, 1},
                                            {300, 5, 1},
                                            {300, 16, 1},
                                            {300, 40, 1},
                                            {300, 16, 3},
                                            {2000, 3, 1},
                                            {2000, 12, 3},
                                            {2000, 12, 1}}) {
    std::vector<double> values, counts;
    for (size_t i = 0; i < size; ++i) values.push_back(std::pow(normal(random), power));
    std::sort(values.begin(), values.end());
    for (size_t i = 0; i < size; ++i) counts.push_back(static_cast<double>(1 + random() % 5));
    std::vector<double> least(size + 1, std::numeric_limits<double>::infinity());
    least[0] = 0;
    for (int group = 0; group < groups; ++group) {
      std::vector<double> next(size + 1, std::numeric_limits<double>::infinity());
      for (size_t begin = 0; begin < size; ++begin) {
        double weight = 0, sum = 0, square = 0;
        for (size_t end = begin + 1; end <= size; ++end) {
          weight += counts[end - 1];
          sum += counts[end - 1] * values[end - 1];
          square += counts[end - 1] * values[end - 1] * values[end - 1];
          next[end] = std::min(next[end], least[begin] + square - sum * sum / weight);
        }
      }
      least = next;
    }
    INFO(size << " values, " << groups << " groups, power " << power);
    CHECK(CostOf(values, counts, OptimalMeans(values, counts, groups)) ==
          Approx(least[size]).epsilon(1e-9));
  }
}

TEST_CASE("clusters: no precision is lost for large values and counts") {
  const std::vector<double> values = {1000, 1000.5, 2000, 2000.25}, counts = {1e6, 1e6, 1, 1};
  CHECK(OptimalMeans(values, counts, 2) == std::vector<double>{1000.25, 2000.125});
  CHECK(OptimalMeans({}, {}, 2).empty());
}
