#include "lib/compress/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace mlc::compress {

namespace {

constexpr int kShift = 19;  // leaves the sign, the exponent and 4 bits of the fraction

double Edge(int64_t bin) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bin) << kShift));
}

}  // namespace

void Histogram::Add(std::span<const float> values) {
  bool any = count() > 0;
  for (const float x : values) {
    if (!std::isfinite(x)) continue;
    ++counts_[std::bit_cast<uint32_t>(x) >> kShift];
    low_ = any ? std::min(low_, x) : x;
    high_ = any ? std::max(high_, x) : x;
    any = true;
  }
}

void Histogram::Add(const Histogram& other) {
  if (other.count() == 0) return;
  const bool any = count() > 0;
  low_ = any ? std::min(low_, other.low_) : other.low_;
  high_ = any ? std::max(high_, other.high_) : other.high_;
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

int64_t Histogram::count() const {
  return std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
}

double Histogram::Quantile(double share) const {
  const auto most = static_cast<int64_t>(share * static_cast<double>(count()));
  int64_t below = 0;
  for (int64_t i = 0; i < kBins; ++i) {
    // Negative values come first, the largest magnitudes before the others.
    const int64_t half = kBins / 2, bin = i < half ? kBins - 1 - i : i - half;
    below += counts_[bin];
    if (below > most) return Edge(bin);
  }
  return static_cast<double>(high_);
}

double Histogram::Error(double scale, double least, double most) const {
  double sum = 0;
  int64_t all = 0;
  for (int64_t bin = 0; bin < kBins; ++bin) {
    const int64_t count = counts_[bin];
    if (count == 0) continue;
    all += count;
    // Values at a few places of the bin, which represent those between them.
    constexpr int kPlaces = 4;
    const double from = Edge(bin), to = Edge(bin + 1), width = std::isfinite(to) ? to - from : 0;
    double error = 0;
    for (int i = 0; i < kPlaces; ++i) {
      const double x = from == 0 ? 0 : from + width * (i + 0.5) / kPlaces;
      const double d = x - scale * std::clamp(std::round(x / scale), least, most);
      error += d * d;
    }
    sum += static_cast<double>(count) * error / kPlaces;
  }
  return all > 0 ? sum / static_cast<double>(all) : 0;
}

}  // namespace mlc::compress
