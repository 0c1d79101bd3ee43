#include "lib/precision/activation_stats.h"

#include <algorithm>
#include <bit>

#include "lib/precision/error_stats.h"
#include "lib/support/half.h"

namespace mlc::precision {

namespace {

constexpr double kWild = 65504 / 16;  // smaller values are not treated as outliers
constexpr size_t kFewLooks = 4;

// The bit patterns of magnitudes have the order of the numbers; infinity is the smallest non-finite
// one.
template <class Bits>
void UpdateStats(const Pin<Bits>& values, Bits infinity, const auto& number_of,
                 ActivationStats& seen) {
  Bits most = 0, largest = 0;
  for (Bits value : values) {
    const auto magnitude = static_cast<Bits>(value & static_cast<Bits>(Bits{0} - 1) >> 1);
    most = std::max(most, magnitude);
    largest = std::max(largest, magnitude < infinity ? magnitude : Bits{0});
  }
  seen.finite = most < infinity;
  seen.largest = number_of(largest);
}

}  // namespace

void UpdateStats(const Tensor& tensor, ActivationStats& seen) {
  ActivationStats once;
  if (tensor.dtype() == DType::kFp32)
    UpdateStats(
        tensor.data<uint32_t>(), 0x7F800000u, [](uint32_t x) { return std::bit_cast<float>(x); },
        once);
  if (tensor.dtype() == DType::kFp16)
    UpdateStats(tensor.data<uint16_t>(), uint16_t{0x7C00}, Half::ToFloat, once);
  seen.largest = std::max(seen.largest, once.largest);
  seen.finite = seen.finite && once.finite;
  seen.of_each.push_back(once.largest);
}

double ExtrapolatedMagnitude(const ActivationStats& seen) {
  if (seen.largest < kWild || seen.of_each.size() < kFewLooks) return seen.largest;
  return seen.largest * seen.largest / std::max(Median(seen.of_each), 1.0);
}

}  // namespace mlc::precision
