#include "lib/ir/tensor_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "lib/support/half.h"

namespace mlc {

namespace {

// Elements per block; a multiple of 8.
constexpr int64_t kBlock = int64_t{1} << 16;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor::Range RangeOfAny(const Tensor& tensor) {
  Tensor::Range range{kInfinity, -kInfinity, false};
  Tensor wide = tensor.Cast(DType::kFp64);
  const int64_t block = tensor.BlockElements(kBlock);
  std::vector<double> values(static_cast<size_t>(std::min(tensor.size(), block)));
  for (int64_t first = 0; first < tensor.size(); first += block) {
    int64_t count = std::min(block, tensor.size() - first);
    tensor.MapIn(first, count);
    wide.Read(first, count, reinterpret_cast<std::byte*>(values.data()));
    tensor.Release(first, count);
    for (int64_t i = 0; i < count; ++i) {
      range.nan |= std::isnan(values[i]);
      if (values[i] < range.low) range.low = values[i];
      if (values[i] > range.high) range.high = values[i];
    }
  }
  return range;
}

// Maps the bits of an fp16 number to an integer with the same order: magnitudes are ordered like
// their bits.
int16_t PlaceOfHalf(int16_t bits) {
  const auto magnitude = static_cast<int16_t>(bits & 0x7FFF),
             sign = static_cast<int16_t>(bits >> 15);
  return static_cast<int16_t>((magnitude ^ sign) - sign);
}

Tensor::Range RangeOfHalves(const Tensor& tensor) {
  constexpr int16_t kInfinite = 0x7C00;
  constexpr int64_t kAtOnce = 32;  // allows the compiler to vectorise
  int16_t low = kInfinite + 1, high = -low;
  bool nan = false;
  const int64_t block = tensor.BlockElements(kBlock);
  std::vector<int16_t> values(static_cast<size_t>(std::min(tensor.size(), block) + kAtOnce));
  for (int64_t first = 0; first < tensor.size(); first += block) {
    int64_t count = std::min(block, tensor.size() - first);
    tensor.MapIn(first, count);
    tensor.Read(first, count, reinterpret_cast<std::byte*>(values.data()));
    tensor.Release(first, count);
    std::fill_n(values.begin() + count, kAtOnce, values[0]);
    std::array<int16_t, kAtOnce> lows, highs;
    lows.fill(PlaceOfHalf(values[0]));
    highs = lows;
    for (int64_t i = 0; i < count; i += kAtOnce)
      for (int64_t k = 0; k < kAtOnce; ++k) {
        const int16_t place = PlaceOfHalf(values[i + k]);
        lows[k] = std::min(lows[k], place);
        highs[k] = std::max(highs[k], place);
      }
    const int16_t lowest = std::ranges::min(lows), highest = std::ranges::max(highs);
    if (lowest >= -kInfinite && highest <= kInfinite) {
      low = std::min(low, lowest), high = std::max(high, highest);
      continue;
    }
    nan = true;
    for (int64_t i = 0; i < count; ++i) {
      const int16_t place = PlaceOfHalf(values[i]);
      if (std::abs(place) <= kInfinite) low = std::min(low, place), high = std::max(high, place);
    }
  }
  auto number = [](int place) {
    const double size = Half::ToFloat(static_cast<uint16_t>(std::abs(place)));
    return place < 0 ? -size : size;
  };
  if (low > high) return {kInfinity, -kInfinity, nan};
  return {number(low), number(high), nan};
}

}  // namespace

bool Tensor::Range::finite() const {
  return !nan && (low > high || (std::isfinite(low) && std::isfinite(high)));
}

Tensor::Range RangeOf(const Tensor& tensor) {
  return tensor.dtype() == DType::kFp16 ? RangeOfHalves(tensor) : RangeOfAny(tensor);
}

Error NotFinite(std::string_view name) {
  return Error("bad-constant", "constant \"{}\" contains NaN or infinity", name)
      .Expected("finite numbers")
      .Help("results may become NaN; check the weights of the source model");
}

}  // namespace mlc
