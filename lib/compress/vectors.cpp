#include "lib/compress/vectors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lib/support/philox.h"

namespace mlc::compress {

namespace {

constexpr int kStarts = 3, kRounds = 25;
constexpr double kLeastGain = 1e-4;  // a round that gains less is the last

class Clustering {
 public:
  Clustering(std::span<const float> numbers, int64_t length, int64_t size)
      : numbers_(numbers),
        length_(length),
        size_(size),
        count_(static_cast<int64_t>(numbers.size()) / length) {}

  // Draws each vector with a probability proportional to its squared distance from those drawn
  // before (Arthur and Vassilvitskii 2007).
  void Draw(uint64_t seed) {
    uint64_t draws = 0;
    auto uniform = [&] { return static_cast<double>(Philox(seed, 0, draws++)[0]) * 0x1p-32; };
    table_.clear();
    std::vector<double> distance(static_cast<size_t>(count_),
                                 std::numeric_limits<double>::infinity());
    auto take = [&](int64_t at) {
      table_.insert(table_.end(), At(at), At(at) + length_);
      for (int64_t i = 0; i < count_; ++i)
        distance[i] = std::min(distance[i], SquaredDistance(At(i), At(at), length_));
    };
    take(static_cast<int64_t>(uniform() * static_cast<double>(count_)));
    while (std::ssize(table_) < size_ * length_) {
      double left = uniform() * std::accumulate(distance.begin(), distance.end(), 0.0);
      int64_t at = 0;
      for (; at + 1 < count_ && left >= distance[at]; ++at) left -= distance[at];
      take(at);
    }
  }

  // Returns the squared error of the table before it is moved to the means.
  double Move() {
    std::vector<double> sums(table_.size()), weights(static_cast<size_t>(size_));
    double error = 0;
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t nearest = NearestVector(table_, At(i), length_);
      error += SquaredDistance(At(i), &table_[nearest * length_], length_);
      weights[nearest] += 1;
      for (int64_t d = 0; d < length_; ++d)
        sums[nearest * length_ + d] += static_cast<double>(At(i)[d]);
    }
    for (int64_t k = 0; k < size_; ++k)
      for (int64_t d = 0; weights[k] > 0 && d < length_; ++d)
        table_[k * length_ + d] = static_cast<float>(sums[k * length_ + d] / weights[k]);
    return error;
  }

  const std::vector<float>& table() const { return table_; }

 private:
  const float* At(int64_t i) const { return &numbers_[i * length_]; }

  std::span<const float> numbers_;
  int64_t length_, size_, count_;
  std::vector<float> table_;
};

}  // namespace

double SquaredDistance(const float* a, const float* b, int64_t length) {
  double sum = 0;
  for (int64_t d = 0; d < length; ++d) {
    const double off = static_cast<double>(a[d]) - static_cast<double>(b[d]);
    sum += off * off;
  }
  return sum;
}

int64_t NearestVector(std::span<const float> table, const float* vector, int64_t length) {
  int64_t nearest = 0;
  float least = std::numeric_limits<float>::infinity();
  for (int64_t k = 0; k < std::ssize(table) / length; ++k) {
    float distance = 0;
    for (int64_t d = 0; d < length; ++d) {
      const float off = vector[d] - table[k * length + d];
      distance += off * off;
    }
    if (distance < least) {
      least = distance;
      nearest = k;
    }
  }
  return nearest;
}

std::vector<float> VectorTable(std::span<const float> numbers, int64_t length, int64_t size) {
  std::vector<float> best;
  double least = std::numeric_limits<double>::infinity();
  for (int start = 0; start < kStarts; ++start) {
    Clustering clustering(numbers, length, size);
    clustering.Draw(static_cast<uint64_t>(start));
    double error = clustering.Move();
    for (int round = 1; round < kRounds; ++round) {
      const double next = clustering.Move();
      const bool settled = next > error * (1 - kLeastGain);
      error = next;
      if (settled) break;
    }
    if (!(error < least)) continue;
    least = error;
    best = clustering.table();
  }
  // Sorted vectors make equal bytes of equal tables.
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  auto vector_at = [&](int64_t k) {
    return std::span(best).subspan(static_cast<size_t>(k * length), static_cast<size_t>(length));
  };
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return std::ranges::lexicographical_compare(vector_at(a), vector_at(b));
  });
  std::vector<float> sorted;
  for (const int64_t k : order)
    sorted.insert(sorted.end(), vector_at(k).begin(), vector_at(k).end());
  return sorted;
}

}  // namespace mlc::compress
