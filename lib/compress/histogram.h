// lib/compress/histogram.h - how often a tensor has values of each size, to choose the range of an
// activation in int8.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mlc::compress {

// Counts of float values by sign, exponent and the first bits of the fraction: a bin is at most 1/16
// of its values wide, whatever the range is, so that histograms of parts add up to that of the whole.
class Histogram {
 public:
  static constexpr int64_t kBins = int64_t{1} << 13;

  Histogram() : counts_(kBins) {}

  void Add(std::span<const float> values);  // NaN and infinities are ignored
  void Add(const Histogram& other);

  int64_t count() const;
  float low() const { return low_; }    // the least value; 0 without values
  float high() const { return high_; }  // the greatest value

  // The least value that at least a share of the values do not exceed, to within a bin.
  double Quantile(double share) const;
  // The mean squared error of rounding the values to multiples of `scale` and clipping them to
  // [least, most] * scale.
  double Error(double scale, double least, double most) const;

  // The parts, for files.
  std::span<int64_t> counts() { return counts_; }
  std::span<const int64_t> counts() const { return counts_; }
  void SetRange(float low, float high) {
    low_ = low;
    high_ = high;
  }

 private:
  std::vector<int64_t> counts_;
  float low_ = 0, high_ = 0;
};

}  // namespace mlc::compress
