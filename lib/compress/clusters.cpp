#include "lib/compress/clusters.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

namespace mlc::compress {

namespace {

// Sums of the values before an index, taken relative to the mean of all, so that squares lose
// little precision.
struct Sums {
  double weight = 0, sum = 0, square = 0;
};

// The squared error of the cluster between two indices.
double Cost(const Sums& a, const Sums& b) {
  const double sum = b.sum - a.sum;
  return std::max(b.square - a.square - sum * sum / (b.weight - a.weight), 0.0);
}

// Finds the partition that minimises squared error + penalty * number of clusters. The error of a
// cluster satisfies the quadrangle inequality, so of two starts of the last cluster, the later one
// is better from some end on: a queue holds the starts that will be best, and where each takes over
// (Galil and Park 1992, "Dynamic programming with convexity, concavity and sparsity").
class Penalised {
 public:
  explicit Penalised(std::span<const Sums> sums)
      : sums_(sums), size_(static_cast<int32_t>(sums.size()) - 1) {
    for (auto* indices : {&start_, &count_, &queue_, &takes_over_})
      indices->resize(static_cast<size_t>(size_) + 1);
    cost_.resize(static_cast<size_t>(size_) + 1);
    for (const Sums& one : sums) {
      weight_.push_back(one.weight);
      sum_.push_back(one.sum);
    }
  }

  // Returns the number of clusters.
  int32_t Solve(double penalty) {
    int32_t first = 0, last = 0, guess = 1;
    queue_[0] = 0;
    for (int32_t end = 1; end <= size_; ++end) {
      while (first < last && takes_over_[first + 1] <= end) ++first;
      const int32_t start = queue_[first];
      cost_[end] = At(start, end) + penalty;
      start_[end] = start;
      count_[end] = count_[start] + 1;
      if (end == size_) break;
      // The start `end` is of use if it takes over from the last one before the end. Starts that it
      // replaces before they take over are of no use.
      while (last > first && Comparison(*this, queue_[last], end).Better(takes_over_[last])) --last;
      const int32_t from = TakesOver(queue_[last], end, guess);
      guess = std::min(from + 1, size_);
      if (from > size_) continue;
      queue_[++last] = end;
      takes_over_[last] = from;
    }
    return count_[size_];
  }

  // Returns the starts of the clusters of the last solution.
  std::vector<int32_t> Starts() const {
    std::vector<int32_t> starts;
    for (int32_t end = size_; end > 0; end = start_[end]) starts.push_back(start_[end]);
    std::ranges::reverse(starts);
    return starts;
  }

 private:
  double At(int32_t start, int32_t end) const {
    return cost_[start] + Cost(sums_[start], sums_[end]);
  }

  // Two starts a < b of the last cluster.
  struct Comparison {
    Comparison(const Penalised& of, int32_t a, int32_t b)
        : weight(of.weight_.data()),
          sum(of.sum_.data()),
          weight_a(weight[a]),
          weight_b(weight[b]),
          sum_a(sum[a]),
          sum_b(sum[b]),
          gap((of.cost_[b] - of.sums_[b].square) - (of.cost_[a] - of.sums_[a].square)) {}

    // At(b, end) < At(a, end), multiplied by the weights of both clusters.
    bool Better(int32_t end) const {
      const double wa = weight[end] - weight_a, wb = weight[end] - weight_b, da = sum[end] - sum_a,
                   db = sum[end] - sum_b;
      return gap * wa * wb < db * db * wa - da * da * wb;
    }

    const double *weight, *sum;
    double weight_a, weight_b, sum_a, sum_b, gap;
  };

  // Returns the first end from which start b > a is better; size_ + 1 if there is none. `guess` is
  // near it.
  int32_t TakesOver(int32_t a, int32_t b, int32_t guess) const {
    const Comparison comparison(*this, a, b);
    auto better = [&](int32_t end) { return comparison.Better(end); };
    int32_t low = b, high = size_ + 1;  // not better at low, better at high
    int32_t at = std::clamp(guess, b + 1, size_), step = 1;
    if (better(at)) {
      high = at;
      while (high - step > low && better(high - step)) high -= step, step *= 2;
      low = std::max(low, high - step);
    } else {
      low = at;
      while (low + step < high && !better(low + step)) low += step, step *= 2;
      high = std::min(high, low + step);
    }
    while (high - low > 1) {
      const int32_t middle = low + (high - low) / 2;
      (better(middle) ? high : low) = middle;
    }
    return high;
  }

  std::span<const Sums> sums_;
  int32_t size_;
  std::vector<double> weight_, sum_;  // those of sums_
  std::vector<double> cost_;          // of the values before an end
  std::vector<int32_t> start_, count_, queue_, takes_over_;
};

// Searches for a penalty that gives this number of clusters, from a guess on, which becomes it. The
// number falls about like the cube root of the penalty. nullopt if no penalty gives it: equal
// gains of several clusters, as of values at equal distances.
std::optional<std::vector<int32_t>> WithClusters(std::span<const Sums> sums, int32_t clusters,
                                                 double& penalty, int32_t tolerance = 0) {
  constexpr int kTrials = 60;
  Penalised problem(sums);
  double low = 0, high = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial < kTrials; ++trial) {
    const int32_t found = problem.Solve(penalty);
    if (std::abs(found - clusters) <= tolerance) return problem.Starts();
    (found > clusters ? low : high) = penalty;
    const double ratio = (found + 0.0) / clusters;
    double next = penalty * ratio * ratio * ratio;
    // Bisects if the estimate leaves the interval, or after many steps.
    const bool inside = next > low * (1 + 1e-12) && next < high * (1 - 1e-12);
    if (!inside || trial % 4 == 3)
      next = std::isinf(high) ? penalty * 8 : low > 0 ? std::sqrt(low * high) : high / 8;
    if (!(next > low && next < high) || next == 0) return std::nullopt;
    penalty = next;
  }
  return std::nullopt;
}

// Dynamic programming over the number of clusters: the start of the last of k clusters is monotonic
// in its end, so the range of starts is halved together with the range of ends (Groenlund et al.
// 2017, "Fast exact k-means, k-medians and Bregman divergence clustering in 1D", section 2).
class ByCount {
 public:
  ByCount(std::span<const Sums> sums, int32_t most)
      : most_(most), size_(static_cast<int32_t>(sums.size()) - 1), sums_(sums) {}

  std::vector<int32_t> Starts() {
    cost_.resize(size_ + 1);
    for (int32_t end = 1; end <= size_; ++end) cost_[end] = Cost(sums_[0], sums_[end]);
    begins_.assign(most_, std::vector<uint16_t>(size_ + 1, 0));
    std::vector<double> next(size_ + 1);
    for (group_ = 1; group_ < most_; ++group_) {
      next_ = next.data();
      Halve(group_ + 1, size_, group_, size_ - 1);
      cost_.swap(next);
    }
    std::vector<int32_t> starts(most_);
    for (int32_t k = most_, end = size_; k-- > 0; end = starts[k])
      starts[k] = k > 0 ? begins_[k][end] : 0;
    return starts;
  }

 private:
  // Solves for prefixes of `first` to `last` values, given that their last clusters begin in
  // [low, high].
  void Halve(int32_t first, int32_t last, int32_t low, int32_t high) {
    if (first > last) return;
    const int32_t end = first + (last - first) / 2;
    // With one cluster fewer, the last cluster starts no later: its start is a lower bound.
    int32_t best = -1;
    double least = 0;
    const int32_t to = std::min(high, end - 1),
                  from = std::min(std::max<int32_t>(low, begins_[group_ - 1][end]), to);
    for (int32_t begin = to; begin >= from; --begin) {
      const double own = Cost(sums_[begin], sums_[end]);
      if (best >= 0 && own > least) break;  // the error grows with the length
      if (const double cost = cost_[begin] + own; best < 0 || cost < least) {
        least = cost;
        best = begin;
      }
    }
    next_[end] = least;
    begins_[group_][end] = static_cast<uint16_t>(best);
    Halve(first, end - 1, low, best);
    Halve(end + 1, last, best, high);
  }

  int32_t most_, size_;
  std::span<const Sums> sums_;
  std::vector<double> cost_;  // by end, for group_ clusters
  double* next_ = nullptr;
  std::vector<std::vector<uint16_t>>
      begins_;  // starts of the last cluster, by cluster count - 1 and end
  int group_ = 0;
};

// Finds a penalty on a coarser problem, in which clusters begin at some of the values only.
double CoarsePenalty(std::span<const Sums> sums, int32_t clusters) {
  const Sums& all = sums.back();
  // The error of k equal clusters of a uniform distribution falls like 1 / k^2.
  double penalty = 2 * (all.square - all.sum * all.sum / all.weight) /
                   (static_cast<double>(clusters) * clusters * clusters);
  penalty = std::max(penalty, std::numeric_limits<double>::min());
  constexpr size_t kLeast = 24;  // values per cluster
  const size_t step = sums.size() / (kLeast * static_cast<size_t>(clusters));
  if (step < 2) return penalty;
  std::vector<Sums> coarse;
  for (size_t i = 0; i + 1 < sums.size(); i += step) coarse.push_back(sums[i]);
  coarse.push_back(sums.back());
  double found = penalty;
  return WithClusters(coarse, clusters, found, clusters / 64) ? found : penalty;
}

}  // namespace

std::vector<double> OptimalMeans(std::span<const double> values, std::span<const double> weights,
                                 int most) {
  if (values.empty()) return {};
  const auto clusters = static_cast<int32_t>(std::min<size_t>(most, values.size()));
  if (values.size() <= static_cast<size_t>(most)) return {values.begin(), values.end()};
  double all = 0, sum = 0;
  for (size_t i = 0; i < values.size(); ++i) all += weights[i], sum += weights[i] * values[i];
  const double middle = sum / all;
  std::vector<Sums> sums(values.size() + 1);
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i] - middle, w = weights[i];
    sums[i + 1] = {sums[i].weight + w, sums[i].sum + w * x, sums[i].square + w * x * x};
  }
  double penalty = CoarsePenalty(sums, clusters);
  std::optional<std::vector<int32_t>> starts = WithClusters(sums, clusters, penalty);
  if (!starts) starts = ByCount(sums, clusters).Starts();
  std::vector<double> means;
  starts->push_back(static_cast<int32_t>(values.size()));
  for (size_t k = 0; k + 1 < starts->size(); ++k) {
    const Sums &a = sums[(*starts)[k]], &b = sums[(*starts)[k + 1]];
    means.push_back(middle + (b.sum - a.sum) / (b.weight - a.weight));
  }
  return means;
}

}  // namespace mlc::compress
