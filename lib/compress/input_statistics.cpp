#include "lib/compress/input_statistics.h"

#include <algorithm>
#include <cmath>

#include "lib/support/threads.h"

namespace mlc::compress {

Fixed ToFixed(double x) {
  if (std::isnan(x)) return 0;
  return static_cast<Fixed>(std::clamp(x, -0x1p62, 0x1p62) * 0x1p64);
}

double FromFixed(Fixed x) { return static_cast<double>(x) * 0x1p-64; }

InputSums::InputSums(int64_t sets, int64_t columns, bool products)
    : sets_(sets),
      columns_(columns),
      counts_(static_cast<size_t>(sets)),
      sums_(static_cast<size_t>(sets * columns)),
      square_sums_(sums_.size()) {
  if (products) products_.resize(static_cast<size_t>(sets * triangle()));
}

void InputSums::Add(int64_t set, std::span<const float> vectors, int threads) {
  const int64_t count = std::ssize(vectors) / columns_;
  counts_[set] += count;
  std::vector<double> sums(static_cast<size_t>(columns_)), squares(sums.size());
  for (int64_t v = 0; v < count; ++v)
    for (int64_t c = 0; c < columns_; ++c) {
      const auto x = static_cast<double>(vectors[v * columns_ + c]);
      sums[c] += x;
      squares[c] += x * x;
    }
  for (int64_t c = 0; c < columns_; ++c) {
    sums_[set * columns_ + c] += ToFixed(sums[c]);
    square_sums_[set * columns_ + c] += ToFixed(squares[c]);
  }
  if (products_.empty()) return;
  // Tiles of the upper triangle that stay in the cache.
  constexpr int64_t kTileRows = 32, kTileColumns = 512;
  const int64_t row_tiles = (columns_ + kTileRows - 1) / kTileRows;
  Fixed* products = &products_[set * triangle()];
  ParallelFor(row_tiles, threads, [&](int64_t index) {
    const int64_t begin = index * kTileRows, end = std::min(begin + kTileRows, columns_);
    std::vector<float> tile(kTileRows * kTileColumns);
    for (int64_t from = begin; from < columns_; from += kTileColumns) {
      const int64_t to = std::min(from + kTileColumns, columns_);
      std::ranges::fill(tile, 0.0F);
      for (int64_t v = 0; v < count; ++v) {
        const float* vector = &vectors[v * columns_];
        for (int64_t r = begin; r < end; ++r) {
          const float x = vector[r];
          if (x == 0) continue;  // such as after a ReLU
          float* row = &tile[(r - begin) * kTileColumns];
          for (int64_t c = from; c < to; ++c) row[c - from] += x * vector[c];
        }
      }
      for (int64_t r = begin; r < end; ++r) {
        // Row r of the triangle begins with the column r.
        Fixed* row = products + r * columns_ - r * (r - 1) / 2 - r;
        for (int64_t c = std::max(from, r); c < to; ++c)
          row[c] += ToFixed(static_cast<double>(tile[(r - begin) * kTileColumns + c - from]));
      }
    }
  });
}

void InputSums::Add(const InputSums& other) {
  auto add = [](auto& to, const auto& from) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  };
  add(counts_, other.counts_);
  add(sums_, other.sums_);
  add(square_sums_, other.square_sums_);
  add(products_, other.products_);
}

InputStatistics InputSums::Means() const {
  InputStatistics means{.sets = sets_, .columns = columns_};
  if (counts_.empty()) return means;
  means.count = *std::ranges::min_element(counts_);
  if (means.count == 0) return means;
  means.mean.resize(sums_.size());
  means.square.resize(sums_.size());
  if (has_products()) means.products.resize(static_cast<size_t>(sets_ * columns_ * columns_));
  for (int64_t set = 0; set < sets_; ++set) {
    const auto count = static_cast<double>(counts_[set]);
    auto mean = [&](Fixed sum) { return static_cast<float>(FromFixed(sum) / count); };
    for (int64_t c = set * columns_; c < (set + 1) * columns_; ++c) {
      means.mean[c] = mean(sums_[c]);
      means.square[c] = mean(square_sums_[c]);
    }
    if (products_.empty()) continue;
    const Fixed* from = &products_[set * triangle()];
    float* to = &means.products[set * columns_ * columns_];
    for (int64_t r = 0; r < columns_; ++r)
      for (int64_t c = r; c < columns_; ++c)
        to[r * columns_ + c] = to[c * columns_ + r] = mean(*from++);
  }
  return means;
}

void ShrinkCovariances(InputStatistics& inputs) {
  const int64_t columns = inputs.columns;
  if (inputs.products.empty() || columns < 2) return;
  for (int64_t set = 0; set < inputs.sets; ++set) {
    float* products = &inputs.products[set * columns * columns];
    const float* means = &inputs.mean[set * columns];
    auto of_means = [&](int64_t r, int64_t c) {
      return static_cast<double>(means[r]) * static_cast<double>(means[c]);
    };
    double trace = 0, squares = 0;  // of the matrix of covariances
    for (int64_t r = 0; r < columns; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const double covariance = static_cast<double>(products[r * columns + c]) - of_means(r, c);
        squares += covariance * covariance;
        if (r == c) trace += covariance;
      }
    // The oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero, "Shrinkage algorithms for MMSE
    // covariance estimation", 2010, equation 23, but towards the variances of the columns.
    const auto p = static_cast<double>(columns), n = static_cast<double>(inputs.count);
    const double apart = (n + 1 - 2 / p) * (squares - trace * trace / p);
    const double share =
        apart > 0 ? std::min(((1 - 2 / p) * squares + trace * trace) / apart, 1.0) : 1;
    for (int64_t r = 0; r < columns; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        if (r == c) continue;
        float& product = products[r * columns + c];
        const double mean = of_means(r, c);
        product = static_cast<float>(mean + (1 - share) * (static_cast<double>(product) - mean));
      }
  }
}

}  // namespace mlc::compress
