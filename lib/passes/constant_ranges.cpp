#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "lib/ir/encoding.h"
#include "lib/passes/constant_ranges.h"
#include "lib/support/threads.h"

namespace mlc::passes {
namespace {

#if defined(__x86_64__)
// Returns the largest finite magnitude of `count` elements, a multiple of 32, possibly unaligned.
// The compiler does not vectorise the loop below in this way.
__attribute__((target("avx2"))) float MaxMagnitudeAvx2(const std::byte* values, int64_t count) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 infinite = _mm256_set1_ps(std::numeric_limits<float>::infinity());
  __m256 largest[4] = {};
  for (int64_t i = 0; i < count; i += 32)
    for (int k = 0; k < 4; ++k) {
      __m256 block = _mm256_loadu_ps(reinterpret_cast<const float*>(values + (i + k * 8) * 4));
      __m256 magnitude = _mm256_andnot_ps(sign, block);
      __m256 finite = _mm256_cmp_ps(magnitude, infinite, _CMP_LT_OQ);
      largest[k] = _mm256_max_ps(largest[k], _mm256_and_ps(magnitude, finite));
    }
  float lanes[32];
  for (int k = 0; k < 4; ++k) _mm256_storeu_ps(lanes + k * 8, largest[k]);
  return *std::max_element(lanes, lanes + 32);
}
#endif

float MaxMagnitude(const std::byte* values, int64_t count) {
  float largest = 0;
  int64_t i = 0;
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) largest = MaxMagnitudeAvx2(values, i = count / 32 * 32);
#endif
  for (; i < count; ++i) {
    float value;
    std::memcpy(&value, values + i * 4, 4);
    value = std::fabs(value);
    if (value < std::numeric_limits<float>::infinity() && value > largest) largest = value;
  }
  return largest;
}

double Largest(Tensor::Range range) {
  return std::max(std::fabs(range.low), std::fabs(range.high));
}

// Returns an upper bound of all finite magnitudes that is known without reading the elements.
std::optional<double> Most(const Tensor& tensor) {
  constexpr double kMostOfHalf = 65504;
  const Encoding* e = tensor.encoding();
  if (!e)
    return tensor.origin().held.dtype() == DType::kFp16 ? std::optional(kMostOfHalf) : std::nullopt;
  if (e->form != Encoding::Form::kAffine || e->mask || !IsInteger(e->data.dtype()) ||
      Bits(e->data.dtype()) > 8)
    return std::nullopt;
  double integer = std::ldexp(1, Bits(e->data.dtype()));
  for (const Tensor* part : {&e->scale, &e->offset, &e->bias})
    if (*part && (part->range().nan || part->range().low > part->range().high)) return std::nullopt;
  if (e->offset) integer += Largest(e->offset.range());
  return Largest(e->scale.range()) * integer + (e->bias ? Largest(e->bias.range()) : 0);
}

// Returns a magnitude between `low` and `high` that answers the caller; nothing if all elements
// must be read.
std::optional<double> Between(const Tensor& tensor, double low, double high) {
  constexpr int64_t kFirst = 4096;
  if (tensor.size() <= 16 * kFirst) return std::nullopt;
  const std::optional<double> most = Most(tensor);
  if (!most || !(*most < high)) return std::nullopt;
  std::vector<std::byte> values(static_cast<size_t>(kFirst) * 4);
  tensor.Read(0, kFirst, values.data());
  tensor.Release(0, kFirst);
  const double some = MaxMagnitude(values.data(), kFirst);
  return some >= low ? std::optional(some) : std::nullopt;
}

}  // namespace

std::vector<double> MaxMagnitudes(std::vector<Tensor> constants, double low, double high) {
  std::vector<std::optional<double>> known(constants.size());
  ParallelFor(std::ssize(constants), 0,
              [&](int64_t i) { known[i] = Between(constants[i], low, high); });
  struct Block {
    size_t constant;
    int64_t first, count;
    float largest = 0;
  };
  std::vector<Block> blocks;
  for (size_t i = 0; i < constants.size(); ++i) {
    if (known[i]) continue;
    Tensor& tensor = constants[i] = constants[i].Unordered();
    int64_t step = tensor.BlockElements(1 << 20);
    for (int64_t first = 0; first < tensor.size(); first += step)
      blocks.push_back({i, first, std::min(step, tensor.size() - first)});
  }
  ParallelFor(std::ssize(blocks), 0, [&](int64_t i) {
    Block& block = blocks[i];
    const Tensor& tensor = constants[block.constant];
    std::span<const std::byte> values = tensor.InPlace(block.first, block.count);
    std::unique_ptr<std::byte[]> copy;
    if (values.empty()) {
      copy.reset(new std::byte[static_cast<size_t>(block.count) * 4]);
      tensor.Read(block.first, block.count, copy.get());
      values = {copy.get(), static_cast<size_t>(block.count) * 4};
    }
    block.largest = MaxMagnitude(values.data(), block.count);
    tensor.Release(block.first, block.count);
  });
  std::vector<double> largest(constants.size());
  for (size_t i = 0; i < constants.size(); ++i) largest[i] = known[i].value_or(0);
  for (const Block& block : blocks)
    largest[block.constant] = std::max<double>(largest[block.constant], block.largest);
  return largest;
}

}  // namespace mlc::passes
