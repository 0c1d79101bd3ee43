// lib/runtime/telemetry.h - statistics about the predictions of a model: counts, latencies,
// failures and memory.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "lib/runtime/runtime.h"

namespace mlc::runtime {

// Durations in milliseconds. Minimum, maximum, mean and deviation are exact; percentiles
// (nearest-rank) are within `relative_error` of the true sample, for durations from 1 us to 3 h.
struct LatencySummary {
  int64_t count = 0;
  double min = 0, max = 0, mean = 0, stddev = 0;  // stddev: sample standard deviation (n - 1)
  double p50 = 0, p90 = 0, p95 = 0, p99 = 0;
  double relative_error = 0;
};

// Buckets with a constant ratio between their bounds. Not thread-safe.
class LatencyHistogram {
 public:
  static constexpr double kRelativeError = 0.01;
  void Add(double ms);
  double Percentile(double percent) const;  // 0 if there are no samples
  LatencySummary Summary() const;

 private:
  std::vector<int64_t> buckets_;  // empty before the first sample
  int64_t count_ = 0;
  double min_ = 0, max_ = 0, mean_ = 0, squares_ = 0;
};

// Estimates the growth of memory over a count (of predictions or cycles). The samples are cut into
// ten windows of equal length, in order. The minimum of each window counts, since memory that is
// released again is not growth. The slope is the median over all pairs of windows (Theil, Sen),
// which is robust against outliers. Holds at most kMost samples; when it is full, every second one
// is dropped.
class MemoryGrowth {
 public:
  static constexpr size_t kMost = 2000;
  static constexpr int kWindows = 10;
  void Add(int64_t count, int64_t bytes);  // counts must ascend
  // Bytes per unit of the count; nothing with fewer than two samples in each window.
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
  // predictions = succeeded + fallbacks + failed + refused. A fallback is a result computed by
  // another engine.
  int64_t predictions = 0, succeeded = 0, fallbacks = 0, failed = 0, refused = 0;
  int64_t loads = 0;  // includes the first load of each model
  std::array<int64_t, kFailures> failures =
      {};                              // indexed by Failure; includes loads and comparisons
  std::optional<double> success_rate;  // succeeded / (succeeded + failed), 0 to 1
  LatencySummary predict, marshal_in, marshal_out;  // successful predictions only
  LatencySummary fallback, load;
  int64_t resident_bytes = 0, resident_high_water = 0;
  std::optional<double> growth_per_100;  // bytes; nothing without enough samples
};

// Thread-safe.
class Telemetry {
 public:
  // `resident` returns the resident memory; defaults to ResidentBytes.
  explicit Telemetry(std::function<int64_t()> resident = {});

  void Succeeded(const PredictTimings& timings);
  void FellBack(double ms);  // also counts as Failure::kFallback
  void Failed(Failure failure);
  void Revoked(Failure failure);  // turns a success into a failure; its latency stays
  void Refused();                 // not started: the breaker is open and there is no fallback
  void Loaded(double ms);
  void Count(Failure failure);  // a failure outside predictions: a load, a comparison

  int64_t resident_bytes() const;  // at the end of the last prediction
  Snapshot snapshot() const;

 private:
  void Finished();
  mutable std::mutex mutex_;
  std::function<int64_t()> resident_;
  Snapshot counts_;
  LatencyHistogram predict_, marshal_in_, marshal_out_, fallback_, load_;
  MemoryGrowth growth_;
};

}  // namespace mlc::runtime
