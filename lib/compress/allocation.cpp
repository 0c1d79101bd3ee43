#include "lib/compress/allocation.h"

#include <algorithm>
#include <numeric>

namespace mlc::compress {

namespace {

// The choices of the lower convex hull, by ascending bytes.
std::vector<size_t> HullOf(const std::vector<Choice>& choices) {
  std::vector<size_t> order(choices.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return choices[a].bytes != choices[b].bytes ? choices[a].bytes < choices[b].bytes
                                                : choices[a].cost < choices[b].cost;
  });
  auto slope = [&](size_t a, size_t b) {
    return (choices[b].cost - choices[a].cost) /
           static_cast<double>(choices[b].bytes - choices[a].bytes);
  };
  std::vector<size_t> hull;
  for (const size_t next : order) {
    if (!hull.empty() && choices[next].bytes == choices[hull.back()].bytes) continue;
    if (!hull.empty() && !(choices[next].cost < choices[hull.back()].cost)) continue;
    while (hull.size() > 1 && slope(hull[hull.size() - 2], hull.back()) >= slope(hull.back(), next))
      hull.pop_back();
    hull.push_back(next);
  }
  return hull;
}

// A step of one weight to its next choice.
struct Step {
  size_t weight, to;
  double gain;  // per byte
};

struct Curve {
  Allocation smallest;
  std::vector<Step> steps;  // those that gain most first
};

Curve CurveOf(const std::vector<std::vector<Choice>>& weights) {
  Curve curve;
  for (size_t w = 0; w < weights.size(); ++w) {
    const std::vector<size_t> hull = HullOf(weights[w]);
    const Choice& first = weights[w][hull[0]];
    curve.smallest.chosen.push_back(hull[0]);
    curve.smallest.bytes += first.bytes;
    curve.smallest.cost += first.cost;
    for (size_t i = 1; i < hull.size(); ++i) {
      const Choice &a = weights[w][hull[i - 1]], &b = weights[w][hull[i]];
      curve.steps.push_back(
          {w, hull[i], (a.cost - b.cost) / static_cast<double>(b.bytes - a.bytes)});
    }
  }
  // The steps of one weight stay in order, because gains fall along a hull.
  std::ranges::stable_sort(curve.steps,
                           [](const Step& a, const Step& b) { return a.gain > b.gain; });
  return curve;
}

}  // namespace

Allocation AllocationFor(const std::vector<std::vector<Choice>>& weights, uint64_t most_bytes) {
  const Curve curve = CurveOf(weights);
  Allocation allocation = curve.smallest;
  for (const Step& step : curve.steps) {
    const Choice &from = weights[step.weight][allocation.chosen[step.weight]],
                 &to = weights[step.weight][step.to];
    // After a step that did not fit, a later one of the same weight may gain nothing.
    if (allocation.bytes + to.bytes - from.bytes > most_bytes || !(to.cost < from.cost)) continue;
    allocation.bytes += to.bytes - from.bytes;
    allocation.cost += to.cost - from.cost;
    allocation.chosen[step.weight] = step.to;
  }
  return allocation;
}

}  // namespace mlc::compress
