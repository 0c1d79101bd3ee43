#include "lib/compress/quantisers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "lib/compress/clusters.h"
#include "lib/ir/encoding.h"
#include "lib/support/threads.h"

namespace mlc {

namespace {

constexpr float kLeastScale = 0x1p-14f;  // fp16's least normal number: devices take less for 0
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// The largest part of `most` that divides a size.
int64_t LargestPart(int64_t size, int64_t most) {
  int64_t part = std::min(size, most);
  while (size % part != 0) --part;
  return part;
}

// As fp16 holds it; 0 only for 0.
float StoredScale(float scale) {
  if (scale != 0 && std::fabs(scale) < kLeastScale) return std::copysign(kLeastScale, scale);
  return static_cast<float>(Half(scale));
}

std::vector<float> Floats(const Tensor& floats, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  floats.Read(first, count, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

// Integers that share a scale in blocks of neighbours.
struct Affine {
  float (*scale)(const float* block, int64_t size);
  int low, high;
  DType stored;
};

// To the nearest of low to high, ties to even; of what is no number some integer.
void Round(const Affine& affine, float scale, const float* block, int64_t size, int8_t* out) {
  // Adding it leaves no digits behind the point (below 2^22).
  constexpr float kWhole = 0x1.8p23f;
  const float inverse = scale != 0 ? 1 / scale : 0, low = static_cast<float>(affine.low),
              high = static_cast<float>(affine.high);
  for (int64_t i = 0; i < size; ++i)
    out[i] = static_cast<int8_t>(std::max(low, std::min(high, block[i] * inverse)) + kWhole - kWhole);
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

// The one sign has 8 steps, the other 7: the longer side gets 8.
float LeastErrorScale(const float* block, int64_t size) {
  float extreme = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (!std::isfinite(block[i])) return kNone;
    if (std::fabs(block[i]) > std::fabs(extreme)) extreme = block[i];
  }
  if (extreme == 0) return 0;
  std::vector<int8_t> q(static_cast<size_t>(size)), best_q(q);
  float best = 0;
  double least = std::numeric_limits<double>::infinity();
  auto attempt = [&](float scale) {
    scale = StoredScale(scale);
    Round(kInt4, scale, block, size, q.data());
    // Four sums side by side.
    std::array<double, 4> sums = {};
    for (int64_t i = 0; i < size; ++i) {
      const float off = block[i] - scale * static_cast<float>(q[i]);
      sums[i % 4] += static_cast<double>(off * off);
    }
    const double error = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    if (!(error < least)) return false;
    least = error;
    best = scale;
    best_q.swap(q);
    return true;
  };
  // What is cut off against what is rounded: from all of the extreme on, a tenth more and a third less.
  for (float share : {1.0F, 1.06F, 1.12F, 0.95F, 0.9F, 0.85F, 0.8F, 0.75F, 0.7F})
    attempt(extreme / -8 * share);
  // The best scale for given integers is theirs by least squares.
  for (int round = 0; round < 2; ++round) {
    double along = 0, square = 0;
    for (int64_t i = 0; i < size; ++i) {
      along += static_cast<double>(block[i]) * best_q[i];
      square += static_cast<double>(best_q[i]) * best_q[i];
    }
    if (square == 0 || !attempt(static_cast<float>(along / square))) break;
  }
  return best;
}

Tensor InBlocks(const Affine& affine, const Tensor& weights, int64_t block) {
  Tensor floats = weights.Cast(DType::kFp32);
  Dims grid = weights.dims();
  grid.back() /= block;
  const Affine* row = &affine;
  Encoding encoding{.dtype = DType::kFp16};
  encoding.scale = Tensor::Lazy(
      DType::kFp16, grid,
      [=](int64_t first, int64_t count, std::byte* out) {
        for (int64_t i = 0; i < count; ++i) {
          Half scale(row->scale(Floats(floats, (first + i) * block, block).data(), block));
          std::memcpy(out + 2 * i, &scale.bits, 2);
        }
      },
      floats);
  Tensor integers = Tensor::Lazy(
      DType::kInt8, weights.dims(),
      [=](int64_t first, int64_t count, std::byte* out) {
        std::vector<int8_t> q(static_cast<size_t>(block));
        for (const int64_t end = first + count; first < end;) {
          const int64_t begin = first / block * block, used = first - begin,
                        n = std::min(block - used, end - first);
          std::vector<float> values = Floats(floats, begin, block);
          Round(*row, row->scale(values.data(), block), values.data(), block, q.data());
          std::memcpy(out, q.data() + used, static_cast<size_t>(n));
          out += n, first += n;
        }
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

// Tables of neighbouring elements, of `group` each, computed when the first is asked for and kept: they are
// small, and what they cost is not.
class Tables {
 public:
  Tables(Tensor floats, int64_t group) : floats_(std::move(floats)), group_(group) {}

  std::span<const Half> Of(int64_t group) {
    std::call_once(once_, [this] {
      entries_.resize(static_cast<size_t>(floats_.size() / group_ * kEntries));
      ParallelFor(floats_.size() / group_, 0, [this](int64_t i) { Make(i); });
    });
    return std::span(entries_).subspan(static_cast<size_t>(group * kEntries), kEntries);
  }
  std::span<const Half> All() {
    Of(0);
    return entries_;
  }

 private:
  void Make(int64_t group) {
    constexpr int64_t kChunk = int64_t{1} << 16;
    std::vector<uint32_t> histogram(1 << 16);
    for (int64_t at = 0; at < group_; at += kChunk)
      for (float value : Floats(floats_, group * group_ + at, std::min(kChunk, group_ - at)))
        ++histogram[Half(value).bits];
    floats_.Release(group * group_, group_);
    std::vector<double> values, counts;
    bool finite = true;
    auto take = [&](uint32_t bits) {
      if (histogram[bits] == 0) return;
      double value(Half::FromBits(static_cast<uint16_t>(bits)));
      finite = finite && std::isfinite(value);
      if (!values.empty() && values.back() == value) {
        counts.back() += histogram[bits];  // of -0 and 0
        return;
      }
      values.push_back(value);
      counts.push_back(histogram[bits]);
    };
    for (uint32_t bits = 1 << 16; bits-- > 1 << 15;) take(bits);  // negative ones, the least first
    for (uint32_t bits = 0; bits < 1 << 15; ++bits) take(bits);
    std::vector<double> means(1, static_cast<double>(kNone));
    if (finite) means = OptimalMeans(values, counts, kEntries);
    means.resize(kEntries, means.back());
    std::transform(means.begin(), means.end(), entries_.begin() + group * kEntries,
                   [](double mean) { return Half(mean); });
  }

  const Tensor floats_;
  const int64_t group_;
  std::once_flag once_;
  std::vector<Half> entries_;
};

// Index of the nearest of ascending entries, the lower one where two are.
void Nearest(std::span<const Half> entries, std::span<const float> values, std::byte* out) {
  std::array<float, kEntries - 1> middles;
  for (size_t i = 0; i < middles.size(); ++i)
    middles[i] = (static_cast<float>(entries[i]) + static_cast<float>(entries[i + 1])) / 2;
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
      Tensor::Lazy(DType::kFp16, grid, [tables](int64_t first, int64_t count, std::byte* out) {
        std::memcpy(out, tables->All().data() + first, static_cast<size_t>(count) * sizeof(Half));
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

Tensor AsFp16(const Tensor& weights) {
  if (!weights.encoding()) return weights;
  return Tensor::Lazy(
      weights.dtype(), weights.dims(),
      [weights](int64_t first, int64_t count, std::byte* out) { weights.Read(first, count, out); },
      weights);
}

constexpr Quantiser kQuantisers[] = {
    {"fp16", "no integers", Opset::kIos15, AsFp16},
    {"int8", "a scale for each row", Opset::kIos16, AsInt8},
    {"int4", "a scale for 32 elements of a row", Opset::kIos18, AsInt4},
    {"lut4", "16 values for 32 rows", Opset::kIos18, AsLut4},
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

}  // namespace mlc
