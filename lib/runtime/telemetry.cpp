#include "lib/runtime/telemetry.h"

#include <algorithm>
#include <cmath>

#include "lib/support/memory_use.h"

namespace mlc::runtime {
namespace {

// With this ratio between the bounds of a bucket, every sample is within kRelativeError of the
// representative of its bucket (DDSketch, Masson and others, 2019, section 2).
constexpr double kRatio =
    (1 + LatencyHistogram::kRelativeError) / (1 - LatencyHistogram::kRelativeError);
constexpr double kLeast = 1e-3, kGreatest = 1.08e7;  // ms: 1 us, 3 h
const double kLogRatio = std::log(kRatio);

size_t BucketOf(double ms) {
  const double within = std::clamp(ms, kLeast, kGreatest);
  return static_cast<size_t>(std::ceil(std::log(within / kLeast) / kLogRatio));
}
double Middle(size_t bucket) {
  return kLeast * 2 * std::pow(kRatio, static_cast<double>(bucket)) / (kRatio + 1);
}

}  // namespace

void LatencyHistogram::Add(double ms) {
  if (std::isnan(ms)) return;
  if (buckets_.empty()) buckets_.resize(BucketOf(kGreatest) + 1);
  ++buckets_[BucketOf(ms)];
  min_ = count_ == 0 ? ms : std::min(min_, ms);
  max_ = count_ == 0 ? ms : std::max(max_, ms);
  // Welford's algorithm.
  ++count_;
  const double off = ms - mean_;
  mean_ += off / static_cast<double>(count_);
  squares_ += off * (ms - mean_);
}

double LatencyHistogram::Percentile(double percent) const {
  if (count_ == 0) return 0;
  const auto rank = std::clamp<int64_t>(
      static_cast<int64_t>(std::ceil(percent / 100 * static_cast<double>(count_))), 1, count_);
  if (rank == 1) return min_;
  if (rank == count_) return max_;
  int64_t below = 0;
  size_t bucket = 0;
  while ((below += buckets_[bucket]) < rank) ++bucket;
  return std::clamp(Middle(bucket), min_, max_);
}

LatencySummary LatencyHistogram::Summary() const {
  return {.count = count_,
          .min = min_,
          .max = max_,
          .mean = mean_,
          .stddev = count_ > 1 ? std::sqrt(squares_ / static_cast<double>(count_ - 1)) : 0,
          .p50 = Percentile(50),
          .p90 = Percentile(90),
          .p95 = Percentile(95),
          .p99 = Percentile(99),
          .relative_error = kRelativeError};
}

void MemoryGrowth::Add(int64_t count, int64_t bytes) {
  high_water_ = std::max(high_water_, bytes);
  if (seen_++ % every_ != 0) return;
  samples_.push_back({count, bytes});
  if (samples_.size() < kMost) return;
  for (size_t i = 0; i < samples_.size() / 2; ++i) samples_[i] = samples_[2 * i];
  samples_.resize(samples_.size() / 2);
  every_ *= 2;
}

std::optional<double> MemoryGrowth::Slope() const {
  if (samples_.size() < 2 * kWindows) return std::nullopt;
  std::array<Sample, kWindows> least;
  for (size_t w = 0; w < kWindows; ++w) {
    const auto begin = samples_.begin() + static_cast<int64_t>(samples_.size() * w / kWindows);
    const auto end = samples_.begin() + static_cast<int64_t>(samples_.size() * (w + 1) / kWindows);
    least[w] = *std::min_element(
        begin, end, [](const Sample& a, const Sample& b) { return a.bytes < b.bytes; });
  }
  std::vector<double> slopes;
  for (size_t i = 0; i < kWindows; ++i)
    for (size_t k = i + 1; k < kWindows; ++k)
      if (least[k].count > least[i].count)
        slopes.push_back(static_cast<double>(least[k].bytes - least[i].bytes) /
                         static_cast<double>(least[k].count - least[i].count));
  if (slopes.empty()) return std::nullopt;
  const auto middle = slopes.begin() + static_cast<int64_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  return *middle;
}

Telemetry::Telemetry(std::function<int64_t()> resident)
    : resident_(resident ? std::move(resident) : ResidentBytes) {}

void Telemetry::Finished() {
  ++counts_.predictions;
  counts_.resident_bytes = resident_();
  growth_.Add(counts_.predictions, counts_.resident_bytes);
}

void Telemetry::Succeeded(const PredictTimings& timings) {
  std::lock_guard lock(mutex_);
  ++counts_.succeeded;
  predict_.Add(timings.predict_ms);
  marshal_in_.Add(timings.marshal_in_ms);
  marshal_out_.Add(timings.marshal_out_ms);
  Finished();
}

void Telemetry::FellBack(double ms) {
  std::lock_guard lock(mutex_);
  ++counts_.fallbacks;
  ++counts_.failures[static_cast<size_t>(Failure::kFallback)];
  fallback_.Add(ms);
  Finished();
}

void Telemetry::Failed(Failure failure) {
  std::lock_guard lock(mutex_);
  ++counts_.failed;
  ++counts_.failures[static_cast<size_t>(failure)];
  Finished();
}

void Telemetry::Revoked(Failure failure) {
  std::lock_guard lock(mutex_);
  --counts_.succeeded;
  ++counts_.failed;
  ++counts_.failures[static_cast<size_t>(failure)];
}

void Telemetry::Refused() {
  std::lock_guard lock(mutex_);
  ++counts_.refused;
  Finished();
}

void Telemetry::Loaded(double ms) {
  std::lock_guard lock(mutex_);
  ++counts_.loads;
  load_.Add(ms);
}

void Telemetry::Count(Failure failure) {
  std::lock_guard lock(mutex_);
  ++counts_.failures[static_cast<size_t>(failure)];
}

int64_t Telemetry::resident_bytes() const {
  std::lock_guard lock(mutex_);
  return counts_.resident_bytes;
}

Snapshot Telemetry::snapshot() const {
  std::lock_guard lock(mutex_);
  Snapshot snapshot = counts_;
  const int64_t tried = counts_.succeeded + counts_.failed;
  if (tried > 0)
    snapshot.success_rate = static_cast<double>(counts_.succeeded) / static_cast<double>(tried);
  snapshot.predict = predict_.Summary();
  snapshot.marshal_in = marshal_in_.Summary();
  snapshot.marshal_out = marshal_out_.Summary();
  snapshot.fallback = fallback_.Summary();
  snapshot.load = load_.Summary();
  snapshot.resident_high_water = growth_.high_water();
  if (const auto slope = growth_.Slope()) snapshot.growth_per_100 = *slope * 100;
  return snapshot;
}

}  // namespace mlc::runtime
