#include "lib/compress/quantisers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>

#include "lib/compress/clusters.h"
#include "lib/ir/encoding.h"
#include "lib/support/threads.h"

namespace mlc::compress {

namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// The largest divisor of a size that is at most `most`.
int64_t LargestPart(int64_t size, int64_t most) {
  int64_t part = std::min(size, most);
  while (size % part != 0) --part;
  return part;
}

// Rounds to the precision of fp16, ties to even, with unlimited range: the caller checks that fp16
// represents it.
float StoredScale(float scale) {
  constexpr uint32_t kDropped = 13;  // dropped bits of fp32's 23-bit mantissa
  const auto bits = std::bit_cast<uint32_t>(scale);
  const uint32_t kept = bits >> kDropped, rounded = bits + (1U << (kDropped - 1)) - 1 + (kept & 1);
  const float whole = std::bit_cast<float>(rounded >> kDropped << kDropped);
  return std::isfinite(whole) ? whole : std::bit_cast<float>(kept << kDropped);
}

std::vector<float> Floats(const Tensor& floats, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  floats.Read(first, count, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

// A quantisation scheme for blocks of consecutive elements that share one scale, without a zero
// point. Integers are in [low, high] and have the type `stored`.
struct Affine {
  float (*scale)(const float* block, int64_t size);
  float low, high;
  DType stored;
};

constexpr float kWhole = 0x1.8p23f;  // adding it rounds to an integer (below 2^22)

// Rounds to the nearest integer in [low, high], ties to even; NaN gives an arbitrary one.
float Rounded(const Affine& affine, float x) {
  return std::max(affine.low, std::min(affine.high, x)) + kWhole - kWhole;
}

// 0 if x is so small that its reciprocal overflows.
float Inverse(float scale) {
  const float inverse = 1 / scale;
  return std::isfinite(inverse) ? inverse : 0;
}

float GreatestScale(const float* block, int64_t size) {
  float greatest = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (!std::isfinite(block[i])) return kNone;
    greatest = std::max(greatest, std::fabs(block[i]));
  }
  return StoredScale(greatest / 127);
}

float LeastErrorScale(const float* block, int64_t size);
constexpr Affine kInt8 = {GreatestScale, -127, 127, DType::kInt8};
constexpr Affine kInt4 = {LeastErrorScale, -8, 7, DType::kInt4};

// Elementwise and summed in a fixed order, so that results are the same on every processor.
typedef float Lanes __attribute__((vector_size(16), aligned(4), may_alias));
constexpr int64_t kLanes = 4;

// A block in vector lanes, padded with zeros, which do not affect the sums.
class Block {
 public:
  Block(const float* values, int64_t size) : values_(values, values + size) {
    values_.resize(static_cast<size_t>((size + kLanes - 1) / kLanes * kLanes));
  }

  // The sum of squared errors.
  float Error(float scale) const {
    Lanes sums = {};
    const float inverse = Inverse(scale);
    for (size_t i = 0; i < values_.size(); i += kLanes) {
      const Lanes x = At(i), off = x - scale * Integers(x * inverse);
      sums += off * off;
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  // The least-squares scale for the integers that a scale produces; 0 if all are 0.
  float Fitted(float scale) const {
    Lanes along = {}, squares = {};
    const float inverse = Inverse(scale);
    for (size_t i = 0; i < values_.size(); i += kLanes) {
      const Lanes x = At(i), q = Integers(x * inverse);
      along += x * q;
      squares += q * q;
    }
    const float square = (squares[0] + squares[1]) + (squares[2] + squares[3]);
    return square > 0 ? ((along[0] + along[1]) + (along[2] + along[3])) / square : 0;
  }

 private:
  static Lanes Integers(Lanes x) {
    const Lanes low = Lanes{} + kInt4.low, high = Lanes{} + kInt4.high;
    x = x < high ? x : high;
    x = x > low ? x : low;
    return x + kWhole - kWhole;
  }

  const Lanes& At(size_t i) const { return *reinterpret_cast<const Lanes*>(&values_[i]); }

  std::vector<float> values_;
};

// Returns the scale of signed 4-bit integers (-8 to 7) with the smallest error found; kNone if a
// value is not finite. The first candidate maps the value with the largest magnitude to -8.
float LeastErrorScale(const float* values, int64_t size) {
  float extreme = 0;
  bool finite = true;
  for (int64_t i = 0; i < size; ++i) {
    finite = finite && std::isfinite(values[i]);
    extreme = std::fabs(values[i]) > std::fabs(extreme) ? values[i] : extreme;
  }
  if (!finite) return kNone;
  if (extreme == 0) return 0;
  const Block block(values, size);
  float best = StoredScale(extreme / -8), least = std::numeric_limits<float>::infinity();
  auto attempt = [&](float scale) {
    scale = StoredScale(scale);
    const float error = block.Error(scale);
    if (!(error < least)) return false;
    least = error;
    best = scale;
    return true;
  };
  // Candidates trade clipping error for rounding error.
  for (float share : {1.0F, 1.08F, 0.93F, 0.86F, 0.79F}) attempt(extreme / -8 * share);
  for (int round = 0; round < 2; ++round)
    if (!attempt(block.Fitted(best))) break;
  return best;
}

// Calls f(block, values) for the blocks of `size` elements that overlap [first, first + count), in
// order.
template <class F>
void ForBlocks(const Tensor& floats, int64_t size, int64_t first, int64_t count, F&& f) {
  const int64_t end = (first + count + size - 1) / size,
                most = std::max<int64_t>((int64_t{1} << 14) / size, 1);
  for (int64_t block = first / size; block < end;) {
    const int64_t n = std::min(most, end - block);
    std::vector<float> values = Floats(floats, block * size, n * size);
    for (int64_t i = 0; i < n; ++i, ++block) f(block, values.data() + i * size);
  }
}

Tensor InBlocks(const Affine& affine, const Tensor& weights, int64_t block) {
  Tensor floats = weights.Cast(DType::kFp32);
  Dims grid = weights.dims();
  grid.back() /= block;
  const Affine* row = &affine;
  Encoding encoding;
  encoding.scale = Tensor::Lazy(
      DType::kFp32, grid,
      [=](int64_t first, int64_t count, std::byte* out) {
        ForBlocks(floats, block, first * block, count * block, [&](int64_t i, const float* values) {
          const float scale = row->scale(values, block);
          std::memcpy(out + static_cast<int64_t>(sizeof scale) * (i - first), &scale, sizeof scale);
        });
      },
      floats);
  Tensor integers = Tensor::Lazy(
      DType::kInt8, weights.dims(),
      [=](int64_t first, int64_t count, std::byte* out) {
        ForBlocks(floats, block, first, count, [&](int64_t i, const float* values) {
          const float inverse = Inverse(row->scale(values, block));
          const int64_t begin = i * block, from = std::max(begin, first),
                        to = std::min(begin + block, first + count);
          for (int64_t at = from; at < to; ++at)
            out[at - first] = static_cast<std::byte>(
                static_cast<int8_t>(Rounded(*row, values[at - begin] * inverse)));
        });
      },
      floats);
  encoding.data = integers.Cast(affine.stored);
  return Tensor::Encoded(std::move(encoding)).Cast(weights.dtype());
}

Tensor AsInt8(const Tensor& weights) { return InBlocks(kInt8, weights, weights.dims().back()); }

Tensor AsInt4(const Tensor& weights) {
  const int64_t row = weights.dims().back(), part = LargestPart(row, 32);
  return InBlocks(kInt4, weights, part < 8 ? row : part);
}

constexpr int kEntries = 16;

// Tables for groups of `group` consecutive elements, computed on first use and cached: they are
// small but expensive.
class Tables {
 public:
  Tables(Tensor floats, int64_t group) : floats_(std::move(floats)), group_(group) {}

  std::span<const float> Of(int64_t group) {
    std::call_once(once_, [this] {
      entries_.resize(static_cast<size_t>(floats_.size() / group_ * kEntries));
      ParallelFor(floats_.size() / group_, 0, [this](int64_t i) { Make(i); });
    });
    return std::span(entries_).subspan(static_cast<size_t>(group * kEntries), kEntries);
  }
  std::span<const float> All() {
    Of(0);
    return entries_;
  }

 private:
  void Make(int64_t group) {
    std::vector<uint32_t> histogram(1 << 16);
    const float greatest = Count(group, 0, histogram);
    // A power of two scales numbers that are subnormal or out of range in fp16 to its normal range.
    int exponent = 0;
    if (greatest > 0 && std::isfinite(greatest) && (greatest < kSmall || greatest >= kGreat)) {
      exponent = kComfortable - std::ilogb(greatest);
      std::fill(histogram.begin(), histogram.end(), 0);
      Count(group, exponent, histogram);
    }
    floats_.Release(group * group_, group_);
    std::vector<double> values, counts;
    auto take = [&](uint32_t bits) {
      if (histogram[bits] == 0) return;
      double value(Half::FromBits(static_cast<uint16_t>(bits)));
      if (!values.empty() && values.back() == value) {
        counts.back() += histogram[bits];  // -0 and 0
        return;
      }
      values.push_back(value);
      counts.push_back(histogram[bits]);
    };
    for (uint32_t bits = 1 << 16; bits-- > 1 << 15;)
      take(bits);  // negative ones in ascending order
    for (uint32_t bits = 0; bits < 1 << 15; ++bits) take(bits);
    std::vector<double> means(1, static_cast<double>(kNone));
    if (std::isfinite(greatest)) means = OptimalMeans(values, counts, kEntries);
    means.resize(kEntries, means.back());
    std::transform(
        means.begin(), means.end(), entries_.begin() + group * kEntries,
        [&](double mean) { return std::ldexp(static_cast<float>(Half(mean)), -exponent); });
  }

  // Builds a histogram of the numbers times 2^exponent by their fp16 bits. Returns the largest
  // magnitude of the numbers; infinity if one is not finite.
  float Count(int64_t group, int exponent, std::vector<uint32_t>& histogram) const {
    constexpr int64_t kChunk = int64_t{1} << 16;
    float greatest = 0;
    bool finite = true;
    for (int64_t at = 0; at < group_; at += kChunk)
      for (float value : Floats(floats_, group * group_ + at, std::min(kChunk, group_ - at))) {
        finite = finite && std::isfinite(value);
        greatest = std::max(greatest, std::fabs(value));
        if (exponent != 0) value = std::ldexp(value, exponent);
        ++histogram[Half(value).bits];
      }
    return finite ? greatest : std::numeric_limits<float>::infinity();
  }

  // Below 2^-10, the rounding error of fp16's smallest numbers is significant relative to the
  // largest weight.
  static constexpr float kSmall = 0x1p-10F, kGreat = 65504;
  static constexpr int kComfortable = 14;

  const Tensor floats_;
  const int64_t group_;
  std::once_flag once_;
  std::vector<float> entries_;
};

// The index of the nearest of ascending entries; the lower one for ties.
void Nearest(std::span<const float> entries, std::span<const float> values, std::byte* out) {
  std::array<float, kEntries - 1> middles;
  for (size_t i = 0; i < middles.size(); ++i) middles[i] = entries[i] / 2 + entries[i + 1] / 2;
  for (size_t i = 0; i < values.size(); ++i) {
    int index = 0;
    for (float middle : middles) index += values[i] > middle ? 1 : 0;
    out[i] = static_cast<std::byte>(index);
  }
}

Tensor AsLut4(const Tensor& weights) {
  Tensor floats = weights.Cast(DType::kFp32);
  const size_t rows = weights.dims().size() - 2;
  const int64_t part = LargestPart(weights.dims()[rows], 32), group = part * weights.dims().back();
  auto tables = std::make_shared<Tables>(floats, group);
  Dims grid = weights.dims();
  grid[rows] /= part;
  grid.back() = 1;
  grid.insert(grid.end(), {kEntries, 1});
  Tensor table =
      Tensor::Lazy(DType::kFp32, grid, [tables](int64_t first, int64_t count, std::byte* out) {
        std::memcpy(out, tables->All().data() + first, static_cast<size_t>(count) * sizeof(float));
      });
  Tensor indices = Tensor::Lazy(
      DType::kUint8, weights.dims(),
      [tables, floats, group](int64_t first, int64_t count, std::byte* out) {
        constexpr int64_t kChunk = int64_t{1} << 14;
        for (const int64_t end = first + count; first < end;) {
          const int64_t n = std::min({end - first, group - first % group, kChunk});
          Nearest(tables->Of(first / group), Floats(floats, first, n), out);
          out += n, first += n;
        }
      },
      floats);
  return Tensor::Encoded({.form = Encoding::Form::kPalette,
                          .data = indices.Cast(DType::kUint4),
                          .table = std::move(table)})
      .Cast(weights.dtype());
}

constexpr Quantiser kQuantisers[] = {
    {"fp16", "floats", Opset::kIos15, Dense},
    {"int8", "one scale per row", Opset::kIos16, AsInt8},
    {"int4", "one scale per 32 elements of a row", Opset::kIos18, AsInt4},
    {"lut4", "16 values per 32 rows", Opset::kIos18, AsLut4},
};

}  // namespace

std::span<const Quantiser> Quantisers() { return kQuantisers; }

const Quantiser* FindQuantiser(std::string_view name) {
  for (const Quantiser& row : kQuantisers)
    if (row.name == name) return &row;
  return nullptr;
}

double RelativeError(const Tensor& made, const Tensor& weights) {
  constexpr int64_t kChunk = 1024, kMost = int64_t{1} << 17;
  Tensor to = made.Cast(DType::kFp32), from = weights.Cast(DType::kFp32);
  const int64_t size = from.size(), chunks = (size + kChunk - 1) / kChunk,
                step = std::max<int64_t>(chunks / (kMost / kChunk), 1);
  double errors = 0, squares = 0;
  for (int64_t chunk = 0; chunk < chunks; chunk += step) {
    const int64_t first = chunk * kChunk, count = std::min(kChunk, size - first);
    std::vector<float> x = Floats(to, first, count), y = Floats(from, first, count);
    for (size_t i = 0; i < x.size(); ++i) {
      const double off = static_cast<double>(x[i]) - static_cast<double>(y[i]);
      errors += off * off;
      squares += static_cast<double>(y[i]) * static_cast<double>(y[i]);
    }
  }
  from.Release(0, size);
  return errors > 0 ? std::sqrt(errors / squares) : 0;
}

}  // namespace mlc::compress
