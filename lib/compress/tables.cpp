#include "lib/compress/tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/compress/block_sums.h"
#include "lib/compress/clusters.h"

namespace mlc::compress {

namespace {

// The integer of an int8 table for a number.
double Steps(double number, float scale) {
  const double steps = scale > 0 ? number / static_cast<double>(scale) : 0;
  return std::nearbyint(std::clamp(steps, -127.0, 127.0));
}

// The entry that is stored for a number; `scale` is that of an int8 table, or 0.
float Entry(double number, float scale, Stored stored) {
  return scale > 0 ? scale * static_cast<float>(Steps(number, scale))
                   : RoundedTo(stored, static_cast<float>(number));
}

// Rounds the means of clusters to stored entries.
Table Rounded(const std::vector<double>& means, bool int8_entries, Stored stored) {
  Table table;
  if (int8_entries) {
    double greatest = 0;
    for (const double mean : means) greatest = std::max(greatest, std::fabs(mean));
    table.scale = RoundedScale(stored, static_cast<float>(greatest / 127));
    for (const double mean : means)
      table.integers.push_back(static_cast<int8_t>(Steps(mean, table.scale)));
  }
  for (const double mean : means) table.entries.push_back(Entry(mean, table.scale, stored));
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
  table.rounding = 0;
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
    table.rounding += weight * (means[entry] - value) * (means[entry] - value);
  }
  return means;
}

// Returns the means of clusters whose entries, rounded, lose less together. What clusters lose least
// before rounding is not always best: rounding costs more than it seems to if the points are as
// close as the numbers that can be stored. All borders may move at once, each within a window: a
// cluster that merges and one far away that divides move those between them by one point.
std::vector<double> MeansWithMovedBorders(const Points& points, const Table& table, Stored stored) {
  const auto count = std::ssize(points.values);
  std::vector<double> weights(points.values.size() + 1), sums(weights.size()),
      squares(weights.size());
  for (size_t i = 0; i < points.values.size(); ++i) {
    const double x = points.values[i], w = points.weights[i];
    weights[i + 1] = weights[i] + w;
    sums[i + 1] = sums[i] + w * x;
    squares[i + 1] = squares[i] + w * x * x;
  }
  auto loss = [&](int64_t begin, int64_t end) {
    const double weight = weights[end] - weights[begin], sum = sums[end] - sums[begin];
    const auto entry = static_cast<double>(Entry(sum / weight, table.scale, stored));
    return squares[end] - squares[begin] + entry * (entry * weight - 2 * sum);
  };
  // The first point of each entry that has some, and their end.
  std::vector<int64_t> borders = {0};
  for (const float middle : MiddlesOf(table.entries)) {
    const auto border = std::ranges::upper_bound(points.values, static_cast<double>(middle)) -
                        points.values.begin();
    if (border > borders.back() && border < count) borders.push_back(border);
  }
  borders.push_back(count);
  const auto clusters = std::ssize(borders) - 1;
  constexpr double kMostLosses = 1 << 16;
  constexpr int kMostMoves = 8;
  const auto window =
      static_cast<int64_t>((std::sqrt(kMostLosses / static_cast<double>(clusters)) - 1) / 2);
  // By cluster and border after it: the least loss up to there, and the border before.
  struct Best {
    double loss;
    int64_t before;
  };
  std::vector<std::vector<Best>> best(static_cast<size_t>(clusters) + 1);
  auto first = [&](int64_t k) {
    return k == 0 || k == clusters ? borders[k] : std::max(borders[k] - window, k);
  };
  best[0] = {{0, 0}};
  for (int move = 0; move < kMostMoves; ++move) {
    for (int64_t k = 1; k <= clusters; ++k) {
      const int64_t last =
          k == clusters ? count : std::min(borders[k] + window, count - (clusters - k));
      best[k].clear();
      for (int64_t end = first(k); end <= last; ++end) {
        Best least{std::numeric_limits<double>::infinity(), 0};
        for (size_t i = 0; i < best[k - 1].size(); ++i) {
          const int64_t begin = first(k - 1) + static_cast<int64_t>(i);
          if (begin >= end) break;
          const double all = best[k - 1][i].loss + loss(begin, end);
          if (all < least.loss) least = {all, begin};
        }
        best[k].push_back(least);
      }
    }
    std::vector<int64_t> moved = borders;
    for (int64_t k = clusters; k > 1; --k) moved[k - 1] = best[k][moved[k] - first(k)].before;
    if (moved == borders) break;
    borders = std::move(moved);
  }
  std::vector<double> means;
  for (int64_t k = 0; k < clusters; ++k)
    means.push_back((sums[borders[k + 1]] - sums[borders[k]]) /
                    (weights[borders[k + 1]] - weights[borders[k]]));
  return means;
}

}  // namespace

Table BestTable(const Points& points, int size, bool int8_entries, Stored stored) {
  std::vector<double> means = OptimalMeans(points.values, points.weights, size);
  if (means.empty()) means = {0};
  Table best = Rounded(means, int8_entries, stored);
  auto improve = [&](const std::vector<double>& by) {
    Table made = Rounded(by, int8_entries, stored);
    if (!std::ranges::is_sorted(made.entries)) return;
    Assigned(points, made);
    if (made.error < best.error) best = std::move(made);
  };
  improve(Assigned(points, best));
  // Many points for each entry leave little to gain.
  constexpr double kTolerated = 1e-3;
  constexpr size_t kFew = 8;
  if (best.rounding > kTolerated * best.error && points.values.size() <= kFew * means.size())
    improve(MeansWithMovedBorders(points, best, stored));
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
