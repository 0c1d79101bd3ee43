#include "lib/compress/input_statistics.h"

#include <algorithm>

#include "lib/support/threads.h"

namespace mlc::compress {

InputSums::InputSums(int64_t sets, int64_t columns, bool products)
    : sets_(sets),
      columns_(columns),
      counts_(static_cast<size_t>(sets)),
      sums_(static_cast<size_t>(sets * columns)),
      square_sums_(sums_.size()) {
  if (products) products_.resize(static_cast<size_t>(sets * columns * columns));
}

void InputSums::Add(int64_t set, std::span<const float> vectors, int threads) {
  const int64_t count = std::ssize(vectors) / columns_;
  counts_[set] += count;
  double* sums = &sums_[set * columns_];
  double* squares = &square_sums_[set * columns_];
  for (int64_t v = 0; v < count; ++v)
    for (int64_t c = 0; c < columns_; ++c) {
      const auto x = static_cast<double>(vectors[v * columns_ + c]);
      sums[c] += x;
      squares[c] += x * x;
    }
  if (products_.empty()) return;
  // Tiles of the upper triangle that stay in the cache.
  constexpr int64_t kTileRows = 32, kTileColumns = 512;
  const int64_t row_tiles = (columns_ + kTileRows - 1) / kTileRows;
  float* products = &products_[set * columns_ * columns_];
  ParallelFor(row_tiles, threads, [&](int64_t tile) {
    const int64_t begin = tile * kTileRows, end = std::min(begin + kTileRows, columns_);
    for (int64_t from = begin; from < columns_; from += kTileColumns) {
      const int64_t to = std::min(from + kTileColumns, columns_);
      for (int64_t v = 0; v < count; ++v) {
        const float* vector = &vectors[v * columns_];
        for (int64_t r = begin; r < end; ++r) {
          const float x = vector[r];
          if (x == 0) continue;  // such as after a ReLU
          float* row = products + r * columns_;
          for (int64_t c = from; c < to; ++c) row[c] += x * vector[c];
        }
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
  means.products.resize(products_.size());
  for (int64_t set = 0; set < sets_; ++set) {
    const auto count = static_cast<double>(counts_[set]);
    for (int64_t c = set * columns_; c < (set + 1) * columns_; ++c) {
      means.mean[c] = static_cast<float>(sums_[c] / count);
      means.square[c] = static_cast<float>(square_sums_[c] / count);
    }
    if (products_.empty()) continue;
    const float* from = &products_[set * columns_ * columns_];
    float* to = &means.products[set * columns_ * columns_];
    for (int64_t r = 0; r < columns_; ++r)
      for (int64_t c = r; c < columns_; ++c)
        to[r * columns_ + c] = to[c * columns_ + r] =
            static_cast<float>(static_cast<double>(from[r * columns_ + c]) / count);
  }
  return means;
}

}  // namespace mlc::compress
