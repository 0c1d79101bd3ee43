#include "tools/driver/timing_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mlc::driver {

Statistics StatisticsOf(std::vector<double> times) {
  if (times.empty()) return {};
  std::ranges::sort(times);
  const auto count = static_cast<double>(times.size());
  auto at = [&](double q) {
    const auto rank = static_cast<size_t>(std::ceil(q * count));
    return times[std::clamp<size_t>(rank, 1, times.size()) - 1];
  };
  Statistics found{.count = static_cast<int64_t>(times.size()),
                   .min = times.front(),
                   .max = times.back(),
                   .mean = std::accumulate(times.begin(), times.end(), 0.0) / count,
                   .p50 = at(0.50),
                   .p90 = at(0.90),
                   .p95 = at(0.95),
                   .p99 = at(0.99)};
  double squares = 0;
  for (double time : times) squares += (time - found.mean) * (time - found.mean);
  if (times.size() > 1) found.stddev = std::sqrt(squares / (count - 1));
  return found;
}

TimeRatio RatioOf(const Statistics& slow, const Statistics& fast) {
  if (slow.mean <= 0 || fast.mean <= 0) return {};
  const double mean = slow.mean / fast.mean;
  return {mean, mean * std::hypot(slow.stddev / slow.mean, fast.stddev / fast.mean)};
}

std::vector<std::string> Doubts(const std::vector<double>& times, int64_t warmup) {
  // With fewer than 20 runs, p95 is the maximum.
  constexpr size_t kFew = 20;
  // hyperfine detects slow first runs and outliers by their distance in standard deviations; in a
  // few runs a single outlier dominates the deviation, so quartiles are used here.
  constexpr double kFar = 5, kScatter = 0.1;
  std::vector<std::string> doubts;
  if (times.size() < 2) return doubts;
  if (times.size() < kFew)
    doubts.push_back(
        fmt::format("{} runs are too few for percentiles: p95 and p99 are the slowest "
                    "run; use --iterations {} or more",
                    times.size(), kFew));
  std::vector<double> sorted = times;
  std::ranges::sort(sorted);
  const double quarter = sorted[sorted.size() / 4], middle = sorted[sorted.size() / 2],
               three = sorted[3 * sorted.size() / 4];
  const double far = three + kFar * std::max(three - quarter, 0.01 * middle);
  if (times.front() > far)
    doubts.push_back(
        fmt::format("the first run took {:.2f} ms, the median is {:.2f} ms; try --warmup {}",
                    times.front(), middle, std::max<int64_t>(3, 2 * warmup)));
  const auto slow =
      std::count_if(times.begin() + 1, times.end(), [&](double time) { return time > far; });
  if (slow > 0)
    doubts.push_back(
        fmt::format("{} of {} runs took more than {:.2f} ms, the median is {:.2f} ms: "
                    "other processes are running, or the machine is throttled; try --iterations {}",
                    slow, times.size(), far, middle, 4 * times.size()));
  else if (three - quarter > kScatter * middle)
    doubts.push_back(
        fmt::format("timings vary widely (interquartile range {:.0f} %): other processes "
                    "may be running; try --iterations {}",
                    100 * (three - quarter) / middle, 4 * times.size()));
  return doubts;
}

}  // namespace mlc::driver
