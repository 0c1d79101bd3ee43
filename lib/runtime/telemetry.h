// lib/runtime/telemetry.h - what happened to the predictions of a model: how many, how fast, how they
// failed, and what memory did meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/runtime/runtime.h"

namespace mlc {

// Of durations in milliseconds. Minimum, maximum, mean and deviation are exact, percentiles
// (nearest-rank) are within `relative_error` of the sample that they stand for, between 1 us and 3 h.
struct LatencySummary {
  int64_t count = 0;
  double min = 0, max = 0, mean = 0, stddev = 0;  // stddev: of the sample, n - 1
  double p50 = 0, p90 = 0, p95 = 0, p99 = 0;
  double relative_error = 0;
};

// Buckets whose bounds are a constant ratio apart. Not thread-safe.
class LatencyHistogram {
 public:
  static constexpr double kRelativeError = 0.01;
  void Add(double ms);
  double Percentile(double percent) const;  // 0 where there is no sample
  LatencySummary Summary() const;

 private:
  std::vector<int64_t> buckets_;  // none before the first sample
  int64_t count_ = 0;
  double min_ = 0, max_ = 0, mean_ = 0, squares_ = 0;
};

// How fast memory grows with a count (of predictions, of cycles): the samples in their order are cut
// into ten windows of equal length, of each the least counts, since what comes back is no growth;
// the slope is the median of those of all pairs of windows (Theil, Sen), which a few odd ones do not
// move. Holds at most kMost samples, every second of them when there were more.
class MemoryGrowth {
 public:
  static constexpr size_t kMost = 2000;
  static constexpr int kWindows = 10;
  void Add(int64_t count, int64_t bytes);  // counts ascend
  // Bytes per unit of the count. Nothing where there are fewer than two samples in each window.
  std::optional<double> Slope() const;
  int64_t high_water() const { return high_water_; }

 private:
  struct Sample {
    int64_t count, bytes;
  };
  std::vector<Sample> samples_;
  int64_t every_ = 1, seen_ = 0, high_water_ = 0;
};

struct Snapshot {
  // predictions = succeeded + fallbacks + failed + refused; a fallback gave the caller a result,
  // made by another engine.
  int64_t predictions = 0, succeeded = 0, fallbacks = 0, failed = 0, refused = 0;
  int64_t loads = 0;                                // the first of each model among them
  std::array<int64_t, kFailures> failures = {};     // by Failure; of loads and comparisons too
  std::optional<double> success_rate;               // succeeded / (succeeded + failed), 0..1
  LatencySummary predict, marshal_in, marshal_out;  // of those that succeeded
  LatencySummary fallback, load;
  int64_t resident_bytes = 0, resident_high_water = 0;
  std::optional<double> growth_per_100;  // bytes; nothing before there are enough samples
};

// Thread-safe.
class Telemetry {
 public:
  // `resident` reads the memory; by default ResidentBytes.
  explicit Telemetry(std::function<int64_t()> resident = {});

  void Succeeded(const PredictTimings& timings);
  void FellBack(double ms);  // counts as Failure::kFallback, too
  void Failed(Failure failure);
  void Revoked(Failure failure);  // what succeeded did not; its times stay
  void Refused();  // not begun: the breaker is open and nothing takes the model's place
  void Loaded(double ms);
  void Count(Failure failure);  // what no prediction was: of a load, a comparison

  int64_t resident_bytes() const;  // when the last prediction was over
  Snapshot snapshot() const;

 private:
  void Finished();
  mutable std::mutex mutex_;
  std::function<int64_t()> resident_;
  Snapshot counts_;
  LatencyHistogram predict_, marshal_in_, marshal_out_, fallback_, load_;
  MemoryGrowth growth_;
};

}  // namespace mlc
