#include "lib/compress/clusters.h"

#include <limits>
#include <random>

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
  for (int round = 0; round < 300; ++round) {
    const size_t size = 1 + random() % 12;
    std::vector<double> values, counts;
    double at = -3;
    for (size_t i = 0; i < size; ++i) {
      at += step(random) * (random() % 4 == 0 ? 5 : 1);
      values.push_back(at);
      counts.push_back(static_cast<double>(1 + random() % 9));
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

TEST_CASE("clusters: no precision is lost for large values and counts") {
  const std::vector<double> values = {1000, 1000.5, 2000, 2000.25}, counts = {1e6, 1e6, 1, 1};
  CHECK(OptimalMeans(values, counts, 2) == std::vector<double>{1000.25, 2000.125});
  CHECK(OptimalMeans({}, {}, 2).empty());
}
