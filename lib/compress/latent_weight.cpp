#include "lib/compress/latent_weight.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/compress/rounding.h"
#include "lib/compress/weight_view.h"

namespace mlc::compress {

namespace {

std::vector<int64_t> StridesOf(const Dims& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

// The cell of a grid for each element of a tensor, in order.
std::vector<int32_t> CellsOf(const Dims& dims, const Dims& grid) {
  const std::vector<int64_t> strides = StridesOf(dims), cell_strides = StridesOf(grid);
  std::vector<int32_t> cells(static_cast<size_t>(ElementCount(dims)));
  for (size_t i = 0; i < cells.size(); ++i) {
    int64_t cell = 0, rest = static_cast<int64_t>(i);
    for (size_t d = 0; d < dims.size(); ++d) {
      cell += rest / strides[d] / (dims[d] / grid[d]) * cell_strides[d];
      rest %= strides[d];
    }
    cells[i] = static_cast<int32_t>(cell);
  }
  return cells;
}

std::vector<int32_t> IntegersOf(const Tensor& tensor) {
  const std::vector<int64_t> wide = tensor.Ints();
  return {wide.begin(), wide.end()};
}

std::vector<float> FloatsOf(const Tensor& tensor) { return ReadFloats(tensor, 0, tensor.size()); }

}  // namespace

void LatentWeight::Trained::Resize(size_t size) {
  numbers.resize(size);
  mean.resize(size);
  square.resize(size);
}

void LatentWeight::Trained::Step(size_t i, double gradient, double rate, double correct_mean,
                                 double correct_square) {
  constexpr double kMean = 0.9, kSquare = 0.99, kLeast = 1e-30;
  const double m = kMean * static_cast<double>(mean[i]) + (1 - kMean) * gradient,
               v = kSquare * static_cast<double>(square[i]) + (1 - kSquare) * gradient * gradient;
  mean[i] = static_cast<float>(m);
  square[i] = static_cast<float>(v);
  const double step = m * correct_mean / (std::sqrt(v * correct_square) + kLeast);
  numbers[i] = static_cast<float>(static_cast<double>(numbers[i]) - rate * step);
}

bool LatentWeight::Knows(const Tensor& encoded) {
  const Encoding* encoding = encoded.encoding();
  if (!encoding || encoding->mask || encoding->form == Encoding::Form::kSparse) return false;
  if (encoding->form == Encoding::Form::kPalette) return !encoding->table.encoding();
  const Encoding* inner = encoding->data.encoding();
  if (!inner)
    return !encoding->bias && IsInteger(encoding->data.dtype()) &&
           Bits(encoding->data.dtype()) <= 8;
  // A palette with scales, which stay as they are.
  return inner->form == Encoding::Form::kPalette && !inner->mask && !inner->table.encoding() &&
         !encoding->offset && !encoding->bias;
}

std::optional<LatentWeight> LatentWeight::Of(const Tensor& encoded, const Tensor& source) {
  if (!Knows(encoded)) return std::nullopt;
  const Encoding* encoding = encoded.encoding();
  LatentWeight weight;
  weight.encoded_ = encoded;
  weight.form_ = encoding->form;
  weight.latent_.Resize(static_cast<size_t>(encoded.size()));
  if (weight.is_palette()) {
    weight.SetPalette(*encoding);
  } else if (const Encoding* inner = encoding->data.encoding()) {
    weight.form_ = Encoding::Form::kPalette;
    weight.SetPalette(*inner);
    const std::vector<float> scales = FloatsOf(encoding->scale);
    if (std::ranges::find(scales, 0.0F) != scales.end()) return std::nullopt;
    const std::vector<int32_t> cells = CellsOf(encoded.dims(), encoding->scale.dims());
    for (const int32_t cell : cells) weight.factors_.push_back(scales[cell]);
  } else {
    const DType integer = encoding->data.dtype();
    weight.codes_ = IntegersOf(encoding->data);
    weight.cells_ = CellsOf(encoded.dims(), encoding->scale.dims());
    const bool is_signed = integer == DType::kInt4 || integer == DType::kInt8;
    weight.low_ = is_signed ? -(1 << (Bits(integer) - 1)) : 0;
    weight.high_ = weight.low_ + (1 << Bits(integer)) - 1;
    if (encoding->offset) weight.offsets_ = IntegersOf(encoding->offset);
    weight.stored_ = encoding->scale.dtype();
    weight.entries_.numbers = FloatsOf(encoding->scale);
    weight.entries_.Resize(weight.entries_.numbers.size());
    if (std::ranges::find(weight.entries_.numbers, 0.0F) != weight.entries_.numbers.end())
      return std::nullopt;
  }
  weight.digits_ =
      weight.stored_ == DType::kFp32 && std::ranges::all_of(weight.entries_.numbers, [](float x) {
        return RoundedTo(Stored::kFp16Digits, x) == x;
      });
  const std::vector<float> wanted = FloatsOf(source);
  double square = 0;
  for (const float x : wanted) square += static_cast<double>(x) * static_cast<double>(x);
  weight.size_ = std::sqrt(square / static_cast<double>(wanted.size()));
  weight.latent_.numbers = wanted;
  return weight;
}

void LatentWeight::SetPalette(const Encoding& palette) {
  const Dims &dims = encoded_.dims(), &indices = palette.data.dims();
  Dims grid = palette.table.dims();
  grid.resize(grid.size() - 2);
  codes_ = IntegersOf(palette.data);
  cells_ = CellsOf(indices, grid);
  vector_ = palette.vector();
  entry_count_ = palette.entries();
  stored_ = palette.table.dtype();
  entries_.numbers = FloatsOf(palette.table);
  entries_.Resize(entries_.numbers.size());
  const std::vector<int64_t> strides = StridesOf(dims), index_strides = StridesOf(indices);
  const auto axis = static_cast<size_t>(palette.vector_axis);
  stride_ = vector_ > 1 ? strides[axis] : 1;
  firsts_.resize(codes_.size());
  for (size_t i = 0; i < codes_.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i);
    for (size_t d = 0; d < dims.size(); ++d) {
      firsts_[i] += rest / index_strides[d] * (d == axis ? vector_ : 1) * strides[d];
      rest %= index_strides[d];
    }
  }
}

float LatentWeight::Rounded(float number) const {
  if (stored_ == DType::kFp16) return RoundedTo(Stored::kFp16, number);
  return RoundedTo(digits_ ? Stored::kFp16Digits : Stored::kFp32, number);
}

std::vector<float> LatentWeight::Values() {
  std::vector<float> values(latent_.numbers.size());
  if (is_palette()) {
    if (!keeps_codes_) AssignEntries();
    for (size_t i = 0; i < codes_.size(); ++i) {
      const float* entry =
          &entries_.numbers[(cells_[i] * entry_count_ + codes_[i]) * static_cast<int64_t>(vector_)];
      for (int64_t k = 0; k < vector_; ++k) {
        const int64_t at = firsts_[i] + k * stride_;
        values[at] = Rounded(entry[k]) * (factors_.empty() ? 1 : factors_[at]);
      }
    }
    return values;
  }
  if (!keeps_codes_) AssignIntegers();
  for (size_t i = 0; i < values.size(); ++i) {
    const int32_t cell = cells_[i], steps = codes_[i] - (offsets_.empty() ? 0 : offsets_[cell]);
    values[i] = Rounded(entries_.numbers[cell]) * static_cast<float>(steps);
  }
  return values;
}

void LatentWeight::AssignEntries() {
  const auto cells = std::ssize(entries_.numbers) / (entry_count_ * vector_);
  auto latent = [&](int64_t at) {
    return factors_.empty() ? latent_.numbers[at] : latent_.numbers[at] / factors_[at];
  };
  if (vector_ > 1) {
    std::vector<float> wanted(static_cast<size_t>(vector_));
    for (size_t i = 0; i < codes_.size(); ++i) {
      for (int64_t k = 0; k < vector_; ++k) wanted[k] = latent(firsts_[i] + k * stride_);
      const float* table = &entries_.numbers[cells_[i] * entry_count_ * vector_];
      float least = INFINITY;
      for (int64_t e = 0; e < entry_count_; ++e) {
        float distance = 0;
        for (int64_t k = 0; k < vector_; ++k) {
          const float off = table[e * vector_ + k] - wanted[k];
          distance += off * off;
        }
        if (distance < least) {
          least = distance;
          codes_[i] = static_cast<int32_t>(e);
        }
      }
    }
    return;
  }
  // By cell: the entries in ascending order, and the middles between them.
  std::vector<int32_t> order(entries_.numbers.size());
  std::vector<float> middles(entries_.numbers.size());
  for (int64_t cell = 0; cell < cells; ++cell) {
    const float* table = &entries_.numbers[cell * entry_count_];
    const auto own = std::span(order).subspan(static_cast<size_t>(cell * entry_count_),
                                              static_cast<size_t>(entry_count_));
    std::iota(own.begin(), own.end(), 0);
    std::ranges::stable_sort(own, {}, [&](int32_t e) { return table[e]; });
    for (int64_t e = 0; e + 1 < entry_count_; ++e)
      middles[cell * entry_count_ + e] = table[own[e]] / 2 + table[own[e + 1]] / 2;
  }
  for (size_t i = 0; i < codes_.size(); ++i) {
    const float* first = &middles[cells_[i] * entry_count_];
    const auto place =
        std::lower_bound(first, first + entry_count_ - 1, latent(firsts_[i])) - first;
    codes_[i] = order[cells_[i] * entry_count_ + place];
  }
}

void LatentWeight::AssignIntegers() {
  for (size_t i = 0; i < codes_.size(); ++i) {
    const int32_t cell = cells_[i], offset = offsets_.empty() ? 0 : offsets_[cell];
    const float steps = std::nearbyint(latent_.numbers[i] / entries_.numbers[cell]);
    codes_[i] = static_cast<int32_t>(std::clamp(
        steps + static_cast<float>(offset), static_cast<float>(low_), static_cast<float>(high_)));
  }
}

void LatentWeight::Step(std::span<const float> gradient, double rate) {
  std::vector<double> sums(entries_.numbers.size());
  if (is_palette()) {
    for (size_t i = 0; i < codes_.size(); ++i) {
      double* sum = &sums[(cells_[i] * entry_count_ + codes_[i]) * vector_];
      for (int64_t k = 0; k < vector_; ++k) {
        const int64_t at = firsts_[i] + k * stride_;
        sum[k] += static_cast<double>(gradient[at] * (factors_.empty() ? 1 : factors_[at]));
      }
    }
  } else {
    for (size_t i = 0; i < codes_.size(); ++i) {
      const int32_t steps = codes_[i] - (offsets_.empty() ? 0 : offsets_[cells_[i]]);
      sums[cells_[i]] += static_cast<double>(gradient[i] * static_cast<float>(steps));
    }
  }
  ++steps_;
  const double mean = 1 / (1 - std::pow(0.9, steps_)), square = 1 / (1 - std::pow(0.99, steps_));
  for (size_t i = 0; !keeps_codes_ && i < latent_.numbers.size(); ++i)
    latent_.Step(i, static_cast<double>(gradient[i]), rate * size_, mean, square);
  // A scale multiplies integers up to half of their range; entries are in units of their factors.
  double factor = 1;
  if (!is_palette()) {
    factor = 4.0 / (high_ - low_ + 1);
  } else if (!factors_.empty()) {
    double sum = 0;
    for (const float x : factors_) sum += std::fabs(static_cast<double>(x));
    factor = static_cast<double>(factors_.size()) / sum;
  }
  for (size_t i = 0; i < sums.size(); ++i)
    entries_.Step(i, sums[i], rate * size_ * factor, mean, square);
}

Tensor LatentWeight::Encoded() const {
  std::vector<float> rounded(entries_.numbers.size());
  for (size_t i = 0; i < rounded.size(); ++i) rounded[i] = Rounded(entries_.numbers[i]);
  Encoding encoding = *encoded_.encoding();
  const std::vector<int32_t>& codes = codes_;
  if (encoding.form == Encoding::Form::kAffine && encoding.data.encoding()) {
    Encoding inner = *encoding.data.encoding();
    inner.data = Tensor::Of(inner.data.dims(), codes).Cast(inner.data.dtype()).InMemory();
    inner.table = Tensor::Of(inner.table.dims(), rounded).Cast(stored_).InMemory();
    encoding.data = Tensor::Encoded(std::move(inner));
  } else if (is_palette()) {
    encoding.data = Tensor::Of(encoding.data.dims(), codes).Cast(encoding.data.dtype()).InMemory();
    encoding.table = Tensor::Of(encoding.table.dims(), rounded).Cast(stored_).InMemory();
  } else {
    encoding.data = Tensor::Of(encoding.data.dims(), codes).Cast(encoding.data.dtype()).InMemory();
    encoding.scale = Tensor::Of(encoding.scale.dims(), rounded).Cast(stored_).InMemory();
  }
  // A constant in fp32 may have tables in fp16.
  return Tensor::Encoded(std::move(encoding)).Cast(encoded_.dtype());
}

}  // namespace mlc::compress
