#include "lib/compress/clusters.h"

#include <algorithm>

namespace mlc::compress {

namespace {

class Groups {
 public:
  Groups(std::span<const double> values, std::span<const double> counts, int most)
      : most_(std::min(most, static_cast<int>(values.size()))),
        size_(static_cast<int32_t>(values.size())),
        sums_(values.size() + 1) {
    // Values are taken relative to their mean, so that squares lose little precision.
    double all = 0, sum = 0;
    for (size_t i = 0; i < values.size(); ++i) all += counts[i], sum += counts[i] * values[i];
    middle_ = all > 0 ? sum / all : 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = values[i] - middle_, c = counts[i];
      sums_[i + 1] = {sums_[i].count + c, sums_[i].sum + c * x, sums_[i].square + c * x * x};
    }
  }

  std::vector<double> Means() {
    cost_.resize(size_ + 1);
    for (int32_t end = 1; end <= size_; ++end) cost_[end] = Cost(0, end);
    begins_.assign(most_, std::vector<int32_t>(size_ + 1, 0));
    std::vector<double> next(size_ + 1);
    for (group_ = 1; group_ < most_; ++group_) {
      next_ = next.data();
      Halve(group_ + 1, size_, group_, size_ - 1);
      cost_.swap(next);
    }
    std::vector<double> means(most_);
    for (int32_t k = most_, end = size_; k-- > 0;) {
      const int32_t begin = k > 0 ? begins_[k][end] : 0;
      means[k] =
          middle_ + (sums_[end].sum - sums_[begin].sum) / (sums_[end].count - sums_[begin].count);
      end = begin;
    }
    return means;
  }

 private:
  struct Sums {
    double count = 0, sum = 0, square = 0;
  };

  double Cost(int32_t begin, int32_t end) const {
    const Sums &a = sums_[begin], &b = sums_[end];
    const double sum = b.sum - a.sum;
    return std::max(b.square - a.square - sum * sum / (b.count - a.count), 0.0);
  }

  // Solves for prefixes of `first` to `last` values, given that their last clusters begin in
  // [low, high].
  void Halve(int32_t first, int32_t last, int32_t low, int32_t high) {
    if (first > last) return;
    const int32_t end = first + (last - first) / 2;
    // With one cluster fewer, the last cluster starts no later: its start is a lower bound.
    int32_t best = -1;
    double least = 0;
    const int32_t to = std::min(high, end - 1),
                  from = std::min(std::max(low, begins_[group_ - 1][end]), to);
    for (int32_t begin = to; begin >= from; --begin) {
      const double own = Cost(begin, end);
      if (best >= 0 && own > least) break;  // the error grows with the length
      if (const double cost = cost_[begin] + own; best < 0 || cost < least) {
        least = cost;
        best = begin;
      }
    }
    next_[end] = least;
    begins_[group_][end] = best;
    Halve(first, end - 1, low, best);
    Halve(end + 1, last, best, high);
  }

  int most_;
  int32_t size_;
  double middle_ = 0;
  std::vector<Sums> sums_;    // sums of the values before each index
  std::vector<double> cost_;  // by end, for group_ clusters
  double* next_ = nullptr;
  std::vector<std::vector<int32_t>>
      begins_;  // starts of the last cluster, by cluster count - 1 and end
  int group_ = 0;
};

}  // namespace

std::vector<double> OptimalMeans(std::span<const double> values, std::span<const double> counts,
                                 int most) {
  if (values.empty()) return {};
  return Groups(values, counts, most).Means();
}

}  // namespace mlc::compress
