#include "lib/compress/scales.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace mlc::compress {

namespace {

constexpr float kWhole = 0x1.8p23F;  // adding it rounds to an integer (below 2^22)

// 0 if x is so small that its reciprocal overflows.
float Inverse(float scale) {
  const float inverse = 1 / scale;
  return std::isfinite(inverse) ? inverse : 0;
}

// Elementwise and summed in a fixed order, so that results are the same on every processor.
typedef float Lanes __attribute__((vector_size(16), aligned(4), may_alias));
constexpr size_t kLanes = 4;

float Sum(Lanes x) { return (x[0] + x[1]) + (x[2] + x[3]); }

// A block in vector lanes. One that does not fill them is padded with zeros of weight 0.
class Block {
 public:
  Block(std::span<const float> values, std::span<const float> weights, const Integers& integers)
      : low_(integers.low()), high_(integers.high()), values_(values), weights_(weights) {
    if (values.size() % kLanes == 0) return;
    const size_t size = (values.size() + kLanes - 1) / kLanes * kLanes;
    for (auto [part, padded] : {std::pair(&values_, &padded_), {&weights_, &padded_weights_}}) {
      if (part->empty()) continue;
      padded->assign(part->begin(), part->end());
      padded->resize(size);
      *part = *padded;
    }
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  double Error(Scale scale) const {
    return Sums([&](size_t i, Lanes(&sums)[2]) {
      const Lanes x = At(values_, i);
      const Lanes off = x - scale.scale * (Rounded(x, scale) - scale.zero);
      sums[0] += weights_.empty() ? off * off : off * off * At(weights_, i);
    })[0];
  }

  // The least-squares scale for the integers that a scale produces; 0 if all are 0.
  float Fitted(Scale scale) const {
    const auto [along, squares] = Sums([&](size_t i, Lanes(&sums)[2]) {
      const Lanes x = At(values_, i), q = Rounded(x, scale) - scale.zero,
                  weighted = weights_.empty() ? q : q * At(weights_, i);
      sums[0] += x * weighted;
      sums[1] += q * weighted;
    });
    return squares > 0 ? static_cast<float>(along / squares) : 0;
  }

 private:
  // Long blocks are summed in parts, since sums of floats lose precision.
  static constexpr size_t kPart = 1024;

  template <class F>
  std::array<double, 2> Sums(F&& add) const {
    std::array<double, 2> all = {};
    for (size_t begin = 0; begin < values_.size(); begin += kPart) {
      Lanes sums[2] = {};
      const size_t end = std::min(begin + kPart, values_.size());
      for (size_t i = begin; i < end; i += kLanes) add(i, sums);
      all[0] += static_cast<double>(Sum(sums[0]));
      all[1] += static_cast<double>(Sum(sums[1]));
    }
    return all;
  }

  Lanes Rounded(Lanes x, Scale scale) const {
    const Lanes low = Lanes{} + low_, high = Lanes{} + high_;
    x = x * Inverse(scale.scale) + scale.zero;
    x = x < high ? x : high;
    x = x > low ? x : low;
    return x + kWhole - kWhole;
  }

  static const Lanes& At(std::span<const float> from, size_t i) {
    return *reinterpret_cast<const Lanes*>(&from[i]);
  }

  float low_, high_;
  std::span<const float> values_, weights_;
  std::vector<float> padded_, padded_weights_;
};

// The best of the scales that were tried.
class Search {
 public:
  Search(const Block& block, Stored stored) : block_(block), stored_(stored) {}

  bool Try(Scale scale) {
    scale.scale = RoundedScale(stored_, scale.scale);
    if (scale.scale == 0) return false;
    const double error = block_.Error(scale);
    if (!(error < least_)) return false;
    least_ = error;
    best_ = scale;
    return true;
  }
  void Refit(int rounds) {
    for (int i = 0; i < rounds; ++i)
      if (!Try({block_.Fitted(best_), best_.zero})) break;
  }
  Scale best() const { return best_; }

 private:
  const Block& block_;
  const Stored stored_;
  Scale best_;
  double least_ = std::numeric_limits<double>::infinity();
};

// Shares of the range of a block that the integers cover. Longer blocks have longer tails.
constexpr float kFewShares[] = {1, 1.08F, 1.143F, 0.93F, 0.86F, 0.79F},
                kManyShares[] = {1,     1.08F, 1.143F, 0.93F, 0.86F, 0.79F, 0.72F,
                                 0.65F, 0.59F, 0.53F,  0.47F, 0.42F, 0.37F, 0.32F},
                kNearShares[] = {1, 1.008F, 0.97F, 0.9F};
constexpr size_t kLong = 64;

std::span<const float> SharesFor(const Integers& integers, size_t size) {
  if (integers.bits == 8) return kNearShares;
  return size > kLong ? std::span<const float>(kManyShares) : kFewShares;
}

}  // namespace

float Integers::low() const {
  if (asymmetric) return 0;
  return bits == 8 ? -127 : -8;
}
float Integers::high() const {
  if (asymmetric) return bits == 8 ? 255 : 15;
  return bits == 8 ? 127 : 7;
}

Scale BestScale(std::span<const float> numbers, std::span<const float> weights,
                const Integers& integers, Stored stored) {
  float least = 0, greatest = 0;
  for (const float x : numbers) {
    least = std::min(least, x);
    greatest = std::max(greatest, x);
  }
  if (least == 0 && greatest == 0)
    return {stored == Stored::kFp32 ? std::numeric_limits<float>::min() : kLeastNormalHalf, 0};
  const Block block(numbers, weights, integers);
  Search search(block, stored);
  if (integers.asymmetric) {
    const float steps = integers.high();
    auto range = [&](float low, float high) {
      const float scale = RoundedScale(stored, (high - low) / steps);
      if (scale == 0) return;
      const float zero = std::nearbyint(std::clamp(-low / scale, 0.0F, steps));
      search.Try({scale, zero});
    };
    for (const float share : SharesFor(integers, numbers.size())) {
      range(least * share, greatest * share);
      if (share == 1) continue;
      range(least, greatest * share);
      range(least * share, greatest);
    }
  } else {
    const float extreme = -least > greatest ? least : greatest;
    // The extreme is at -127, or at 127 if it is positive; that of int4 at -8.
    const float whole = integers.bits == 8 ? std::fabs(extreme) / 127 : extreme / integers.low();
    for (const float share : SharesFor(integers, numbers.size())) search.Try({whole * share, 0});
  }
  search.Refit(3);
  return search.best();
}

void ToIntegers(std::span<const float> numbers, const Scale& scale, const Integers& integers,
                std::byte* out) {
  const float inverse = Inverse(scale.scale), low = integers.low(), high = integers.high();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const float x = numbers[i] * inverse + scale.zero;
    out[i] = static_cast<std::byte>(
        static_cast<int>(std::max(low, std::min(high, x)) + kWhole - kWhole));
  }
}

double ErrorOf(std::span<const float> numbers, std::span<const float> weights, const Scale& scale,
               const Integers& integers) {
  const float inverse = Inverse(scale.scale), low = integers.low(), high = integers.high();
  double sum = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const float q = std::max(low, std::min(high, numbers[i] * inverse + scale.zero)) + kWhole -
                    kWhole - scale.zero;
    const double off =
        static_cast<double>(numbers[i]) - static_cast<double>(scale.scale) * static_cast<double>(q);
    sum += off * off * (weights.empty() ? 1 : static_cast<double>(weights[i]));
  }
  return sum;
}

}  // namespace mlc::compress
