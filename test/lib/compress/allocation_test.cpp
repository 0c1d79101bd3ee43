#include "lib/compress/allocation.h"

#include <random>

#include "test/catch.h"

using namespace mlc::compress;

namespace {

// The least cost of at most `most` bytes, by trying everything.
double Least(const std::vector<std::vector<Choice>>& weights, size_t from, int64_t most) {
  if (from == weights.size()) return 0;
  double best = 1e300;
  for (const Choice& choice : weights[from])
    if (static_cast<int64_t>(choice.bytes) <= most)
      best = std::min(
          best, choice.cost + Least(weights, from + 1, most - static_cast<int64_t>(choice.bytes)));
  return best;
}

}  // namespace

TEST_CASE("allocation: near the best of all combinations, within the size") {
  std::mt19937 random(4);
  double ours = 0, best = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<Choice>> weights(4);
    uint64_t smallest = 0, largest = 0;
    for (auto& choices : weights) {
      uint64_t low = 1000, high = 0;
      for (int i = 0; i < 5; ++i) {
        const uint64_t bytes = 10 + random() % 90;
        choices.push_back({bytes, 1000.0 / static_cast<double>(bytes) * (1 + random() % 7)});
        low = std::min(low, bytes);
        high = std::max(high, bytes);
      }
      smallest += low;
      largest += high;
    }
    const uint64_t most = smallest + random() % (largest - smallest + 1);
    const Allocation made = AllocationFor(weights, most);
    INFO("round " << round);
    REQUIRE(made.bytes <= most);
    uint64_t bytes = 0;
    double cost = 0;
    for (size_t w = 0; w < weights.size(); ++w) {
      bytes += weights[w][made.chosen[w]].bytes;
      cost += weights[w][made.chosen[w]].cost;
    }
    CHECK(bytes == made.bytes);
    CHECK(cost == Approx(made.cost));
    const double least = Least(weights, 0, static_cast<int64_t>(most));
    CHECK(cost >= least * 0.999);
    ours += cost, best += least;
  }
  // The difference is what single steps that do not fit cost; it vanishes with many weights.
  CHECK(ours < 1.15 * best);
}

TEST_CASE("allocation: the smallest choices if nothing fits, everything if all does") {
  const std::vector<std::vector<Choice>> weights = {{{10, 5}, {20, 1}}, {{30, 2}, {40, 2}}};
  CHECK(AllocationFor(weights, 5).chosen == std::vector<size_t>{0, 0});
  CHECK(AllocationFor(weights, 50).chosen == std::vector<size_t>{1, 0});
  CHECK(AllocationFor(weights, 1000).chosen == std::vector<size_t>{1, 0});  // no gain, no bytes
}
