#include "lib/compress/sparsity.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "lib/ir/subbyte.h"

namespace mlc::compress {

namespace {

constexpr int64_t kChunk = int64_t{1} << 16;

// The bits of magnitudes, which are ordered like the magnitudes.
std::vector<uint32_t> Magnitudes(const Tensor& tensor, int64_t first, int64_t count,
                                 std::span<const float> importance) {
  const std::vector<float> numbers = ReadFloats(tensor, first, count);
  std::vector<uint32_t> bits(numbers.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    const float factor =
        importance.empty() ? 1 : importance[(static_cast<size_t>(first) + i) % importance.size()];
    bits[i] = std::bit_cast<uint32_t>(std::fabs(numbers[i]) * factor);
  }
  return bits;
}

class MaskWriter {
 public:
  explicit MaskWriter(const Dims& dims) : mask_(Tensor::Allocate(DType::kUint1, dims, &bits_)) {
    std::fill_n(bits_, mask_.byte_size(), std::byte{0});
  }
  void Keep(int64_t i) { bits_[i / 8] |= static_cast<std::byte>(1U << (i % 8)); }
  const Tensor& mask() const { return mask_; }

 private:
  std::byte* bits_ = nullptr;
  Tensor mask_;
};

Tensor LargestOfAll(const Tensor& tensor, double share, std::span<const float> importance) {
  constexpr int kHalf = 16;
  auto zeros = static_cast<int64_t>(share * static_cast<double>(tensor.size()));
  // Finds the magnitude of the last zero, the upper half of its bits before the lower.
  uint32_t upper = 0, limit = 0;
  int64_t left = zeros;  // zeros among the magnitudes equal to those found so far
  for (const bool first_half : {true, false}) {
    std::vector<int64_t> counts(size_t{1} << kHalf);
    for (int64_t first = 0; first < tensor.size(); first += kChunk)
      for (const uint32_t bits :
           Magnitudes(tensor, first, std::min(kChunk, tensor.size() - first), importance))
        if (first_half || bits >> kHalf == upper)
          ++counts[first_half ? bits >> kHalf : bits & 0xFFFF];
    uint32_t at = 0;
    for (; at + 1 < counts.size() && left > counts[at]; ++at) left -= counts[at];
    (first_half ? upper : limit) = at;
  }
  limit |= upper << kHalf;
  MaskWriter writer(tensor.dims());
  for (int64_t first = 0; first < tensor.size(); first += kChunk) {
    const std::vector<uint32_t> bits =
        Magnitudes(tensor, first, std::min(kChunk, tensor.size() - first), importance);
    for (size_t i = 0; i < bits.size(); ++i) {
      const bool zero = bits[i] < limit || (bits[i] == limit && left-- > 0);
      if (!zero) writer.Keep(first + static_cast<int64_t>(i));
    }
  }
  return writer.mask();
}

Tensor LargestOfFew(const WeightView& view, const Scheme& scheme,
                    std::span<const float> importance) {
  const Tensor& tensor = view.tensor();
  const int64_t inputs = view.size(view.batch() + 1), columns = view.columns(),
                kernel = columns / inputs, among = scheme.zeros_among;
  MaskWriter writer(tensor.dims());
  std::vector<int64_t> order;
  for (int64_t row = 0; row < view.rows(); ++row) {
    const std::vector<uint32_t> bits = Magnitudes(tensor, row * columns, columns, importance);
    for (int64_t k = 0; k < kernel; ++k)
      for (int64_t begin = 0; begin < inputs; begin += among) {
        const int64_t count = std::min(among, inputs - begin),
                      zeros = scheme.zeros_of * count / among;
        order.resize(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; ++i) order[i] = (begin + i) * kernel + k;
        std::ranges::stable_sort(order, {}, [&](int64_t at) { return bits[at]; });
        for (int64_t i = zeros; i < count; ++i) writer.Keep(row * columns + order[i]);
      }
  }
  return writer.mask();
}

}  // namespace

Tensor MaskOfLargest(const WeightView& view, const Scheme& scheme,
                     std::span<const float> importance) {
  return scheme.zeros_among > 0 ? LargestOfFew(view, scheme, importance)
                                : LargestOfAll(view.tensor(), scheme.zeros, importance);
}

Tensor Masked(const Tensor& numbers, const Tensor& mask) {
  return Tensor::Lazy(
      DType::kFp32, numbers.dims(),
      [=](int64_t first, int64_t count, std::byte* out) {
        std::vector<float> values = ReadFloats(numbers, first, count);
        std::vector<std::byte> set(static_cast<size_t>(count));
        ReadBytes(mask, first, count, set.data());
        for (size_t i = 0; i < values.size(); ++i)
          if (set[i] == std::byte{0}) values[i] = 0;
        std::memcpy(out, values.data(), values.size() * sizeof(float));
      },
      numbers);
}

}  // namespace mlc::compress
