#include "lib/compress/tables.h"

#include <algorithm>
#include <cmath>

#include "lib/compress/block_sums.h"
#include "lib/compress/clusters.h"

namespace mlc::compress {

namespace {

// Rounds the means of clusters to stored entries.
Table Rounded(const std::vector<double>& means, bool int8_entries, Stored stored) {
  Table table;
  if (!int8_entries) {
    for (const double mean : means)
      table.entries.push_back(RoundedTo(stored, static_cast<float>(mean)));
    return table;
  }
  double greatest = 0;
  for (const double mean : means) greatest = std::max(greatest, std::fabs(mean));
  table.scale = RoundedScale(stored, static_cast<float>(greatest / 127));
  for (const double mean : means) {
    const double steps = table.scale > 0 ? mean / static_cast<double>(table.scale) : 0;
    table.integers.push_back(static_cast<int8_t>(std::nearbyint(std::clamp(steps, -127.0, 127.0))));
    table.entries.push_back(table.scale * static_cast<float>(table.integers.back()));
  }
  return table;
}

// Assigns points to entries, sums up the error, and returns the means of those of each entry.
std::vector<double> Assigned(const Points& points, Table& table) {
  // Sums of several lanes, of which one addition need not wait for the other.
  using Doubles [[gnu::vector_size(4 * sizeof(double)), gnu::aligned(sizeof(double))]] = double;
  constexpr size_t kLanes = sizeof(Doubles) / sizeof(double);
  auto added = [](const Doubles& lanes) { return lanes[0] + lanes[1] + (lanes[2] + lanes[3]); };
  std::vector<double> means(table.entries.begin(), table.entries.end());
  table.error = points.inside;
  size_t at = 0;
  for (size_t entry = 0; entry < table.entries.size(); ++entry) {
    const auto value = static_cast<double>(table.entries[entry]);
    size_t end = points.values.size();
    if (entry + 1 < table.entries.size()) {
      const double until = (value + static_cast<double>(table.entries[entry + 1])) / 2;
      end = std::upper_bound(points.values.begin() + static_cast<ptrdiff_t>(at),
                             points.values.end(), until) -
            points.values.begin();
    }
    Doubles weights = {}, sums = {}, errors = {};
    auto add = [&](const Doubles& x, const Doubles& w) __attribute__((always_inline)) {
      const Doubles off = x - value;
      errors += w * off * off;
      weights += w;
      sums += w * x;
    };
    for (; at + kLanes <= end; at += kLanes)
      add(*reinterpret_cast<const Doubles*>(&points.values[at]),
          *reinterpret_cast<const Doubles*>(&points.weights[at]));
    for (; at < end; ++at) add(Doubles{points.values[at]}, Doubles{points.weights[at]});
    const double weight = added(weights);
    table.error += added(errors);
    if (weight > 0) means[entry] = added(sums) / weight;
  }
  return means;
}

}  // namespace

Table BestTable(const Points& points, int size, bool int8_entries, Stored stored) {
  std::vector<double> means = OptimalMeans(points.values, points.weights, size);
  if (means.empty()) means = {0};
  Table best = Rounded(means, int8_entries, stored);
  Table again = Rounded(Assigned(points, best), int8_entries, stored);
  if (std::ranges::is_sorted(again.entries)) {
    Assigned(points, again);
    if (again.error < best.error) best = std::move(again);
  }
  best.entries.resize(static_cast<size_t>(size), best.entries.back());
  if (int8_entries) best.integers.resize(static_cast<size_t>(size), best.integers.back());
  return best;
}

std::vector<float> MiddlesOf(std::span<const float> entries) {
  std::vector<float> middles;
  for (size_t i = 0; i + 1 < entries.size(); ++i)
    middles.push_back(entries[i] / 2 + entries[i + 1] / 2);
  return middles;
}

void AssignNearest(std::span<const float> middles, std::span<const float> numbers, std::byte* out) {
  // Counting the middles below is faster than a search, for several numbers at a time.
  if (middles.size() <= kMostCounted) return CountBelow(middles, numbers, out);
  for (size_t i = 0; i < numbers.size(); ++i) {
    // The number of middles is a power of two, minus 1.
    size_t index = 0;
    for (size_t step = (middles.size() + 1) / 2; step > 0; step /= 2)
      index += numbers[i] > middles[index + step - 1] ? step : 0;
    out[i] = static_cast<std::byte>(index);
  }
}

}  // namespace mlc::compress
