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
  Clustering(std::span<const float> numbers, std::span<const float> weights, int64_t length,
             int64_t size)
      : numbers_(numbers),
        weights_(weights),
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
        distance[i] = std::min(distance[i], Weight(i) * SquaredDistance(At(i), At(at), length_));
    };
    take(static_cast<int64_t>(uniform() * static_cast<double>(count_)));
    while (std::ssize(table_) < size_ * length_) {
      double left = uniform() * std::accumulate(distance.begin(), distance.end(), 0.0);
      int64_t at = 0;
      for (; at + 1 < count_ && left >= distance[at]; ++at) left -= distance[at];
      take(at);
    }
    Sort();
  }

  // Returns the squared error of the table before it is moved to the means.
  double Move() {
    std::vector<double> sums(table_.size()), weights(static_cast<size_t>(size_));
    double error = 0;
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t nearest = NearestVector(table_, At(i), length_);
      const double weight = Weight(i);
      error += weight * SquaredDistance(At(i), &table_[nearest * length_], length_);
      weights[nearest] += weight;
      for (int64_t d = 0; d < length_; ++d)
        sums[nearest * length_ + d] += weight * static_cast<double>(At(i)[d]);
    }
    for (int64_t k = 0; k < size_; ++k)
      for (int64_t d = 0; weights[k] > 0 && d < length_; ++d)
        table_[k * length_ + d] = static_cast<float>(sums[k * length_ + d] / weights[k]);
    Sort();
    return error;
  }

  const std::vector<float>& table() const { return table_; }

 private:
  const float* At(int64_t i) const { return &numbers_[i * length_]; }
  double Weight(int64_t i) const { return weights_.empty() ? 1 : static_cast<double>(weights_[i]); }

  // Lexicographic order, which also makes equal bytes of equal tables.
  void Sort() {
    std::vector<std::vector<float>> vectors;
    for (int64_t k = 0; k < size_; ++k)
      vectors.emplace_back(&table_[k * length_], &table_[k * length_] + length_);
    std::ranges::sort(vectors);
    for (int64_t k = 0; k < size_; ++k) std::ranges::copy(vectors[k], &table_[k * length_]);
  }

  std::span<const float> numbers_, weights_;
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
  const int64_t size = std::ssize(table) / length;
  // The first vector whose first element is not less.
  int64_t above = 0;
  for (int64_t count = size; count > 0;) {
    const int64_t half = count / 2;
    const bool less = table[(above + half) * length] < vector[0];
    if (less) above += half + 1;
    count = less ? count - half - 1 : half;
  }
  int64_t below = above - 1, nearest = 0;
  float least = std::numeric_limits<float>::infinity();
  auto first = [&](int64_t k) {
    const float off = vector[0] - table[k * length];
    return off * off;
  };
  auto examine = [&](int64_t k) {
    float distance = 0;
    for (int64_t d = 0; d < length; ++d) {
      const float off = vector[d] - table[k * length + d];
      distance += off * off;
    }
    if (distance > least || (distance == least && k > nearest)) return;
    least = distance;
    nearest = k;
  };
  while (above < size && first(above) <= least) {
    examine(above++);
    if (below >= 0 && first(below) <= least) examine(below--);
  }
  while (below >= 0 && first(below) <= least) examine(below--);
  return nearest;
}

std::vector<float> VectorTable(std::span<const float> numbers, std::span<const float> weights,
                               int64_t length, int64_t size) {
  std::vector<float> best;
  double least = std::numeric_limits<double>::infinity();
  for (int start = 0; start < kStarts; ++start) {
    Clustering clustering(numbers, weights, length, size);
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
  return best;
}

}  // namespace mlc::compress
