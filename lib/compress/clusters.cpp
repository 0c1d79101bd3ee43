#include "lib/compress/clusters.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

namespace mlc::compress {

namespace {

// Lanes in which costs are compared, whatever the processor, so that results depend on none.
constexpr int32_t kLanes = 8;

// Registers of some of the lanes, in memory of any alignment. g++ takes no size from a template.
template <int32_t kWidth>
struct Register;
template <>
struct Register<2> {
  using Numbers [[gnu::vector_size(16), gnu::aligned(8)]] = double;
  using Indices [[gnu::vector_size(16)]] = int64_t;
  static constexpr Indices kFirst = {0, 1};
};
template <>
struct Register<4> {
  using Numbers [[gnu::vector_size(32), gnu::aligned(8)]] = double;
  using Indices [[gnu::vector_size(32)]] = int64_t;
  static constexpr Indices kFirst = {0, 1, 2, 3};
};

// Lines of `size` + 1 numbers, with kLanes more before and after each, which vectors may read.
template <size_t kLines>
class Lines {
 public:
  explicit Lines(int32_t size) : length_(static_cast<size_t>(size) + 1 + 2 * kLanes) {
    numbers_ = std::make_unique_for_overwrite<double[]>(kLines * length_);
  }
  double* operator[](size_t line) { return numbers_.get() + line * length_ + kLanes; }
  // Sets the numbers before a line, and makes those after it 0.
  void Surround(size_t line, double before) {
    std::fill_n((*this)[line] - kLanes, kLanes, before);
    std::fill_n((*this)[line + 1] - 2 * kLanes, kLanes, 0.0);
  }

 private:
  size_t length_;
  std::unique_ptr<double[]> numbers_;
};

// Sums of the values before an index, taken relative to the mean of all, so that squares lose
// little precision.
struct Sums {
  explicit Sums(int32_t values) : size(values), lines(values) {
    // A start before the first value would have a cluster of positive weight.
    lines.Surround(0, -1);
    lines.Surround(1, 0);
    weight[0] = sum[0] = square[0] = 0;
  }
  // Those at some indices, from 0 to the last.
  Sums(const Sums& all, std::span<const int32_t> indices)
      : Sums(static_cast<int32_t>(indices.size()) - 1) {
    for (size_t i = 0; i < indices.size(); ++i) {
      weight[i] = all.weight[indices[i]];
      sum[i] = all.sum[indices[i]];
      square[i] = all.square[indices[i]];
    }
  }

  int32_t size;  // the number of values
  Lines<3> lines;
  double *weight = lines[0], *sum = lines[1], *square = lines[2];
};

// The squared error of the cluster between two indices.
double Cost(const Sums& sums, int32_t start, int32_t end) {
  const double sum = sums.sum[end] - sums.sum[start];
  return std::max(
      sums.square[end] - sums.square[start] - sum * sum / (sums.weight[end] - sums.weight[start]),
      0.0);
}

// Finds the partition that minimises squared error + penalty * number of clusters. The least cost
// of the values before an end is that of the values before the start of their last cluster, plus
// the error of that cluster and the penalty. The error of a cluster satisfies the quadrangle
// inequality, so the best start never falls from one end to the next (Galil and Park 1992, "Dynamic
// programming with convexity, concavity and sparsity"). A block of ends, so much shorter than
// clusters that the best starts of its ends are before it, is solved by halving. No branch depends
// on a single comparison of costs, because processors cannot predict those.
class Penalised {
 public:
  explicit Penalised(const Sums& sums)
      : size_(sums.size),
        weight_(sums.weight),
        sum_(sums.sum),
        square_(sums.square),
        lines_(size_) {
    // Starts before the first value are looked at, but are never the best.
    lines_.Surround(1, std::numeric_limits<double>::infinity());
    const size_t indices = static_cast<size_t>(size_) + 1;
    start_ = std::make_unique_for_overwrite<int32_t[]>(indices);
    count_ = std::make_unique_for_overwrite<int32_t[]>(indices);
    cost_[0] = base_[0] = 0;
    count_[0] = 0;
  }

  // Returns the number of clusters.
  int32_t Solve(double penalty) {
    penalty_ = penalty;
    kSolve(*this);
    return count_[size_];
  }

  // The squared error of the last solution.
  double error() const { return cost_[size_] - penalty_ * count_[size_]; }

  // Returns the starts of the clusters of the last solution.
  std::vector<int32_t> Starts() const {
    std::vector<int32_t> starts;
    for (int32_t end = size_; end > 0; end = start_[end]) starts.push_back(start_[end]);
    std::ranges::reverse(starts);
    return starts;
  }

 private:
  // Candidates in some of the lanes, as many as a register has. The cost less the penalty and the
  // squares of all values before the end is value / weight; fractions are compared by products,
  // because divisions take long.
  template <int32_t kWidth>
  struct Candidates {
    using Numbers = Register<kWidth>::Numbers;
    using Indices = Register<kWidth>::Indices;

    // The starts from one on, for an end.
    [[gnu::always_inline]] static Candidates Starts(const Penalised& of, int32_t from,
                                                    int32_t end) {
      const Numbers sum = of.sum_[end] - At(of.sum_ + from),
                    weight = of.weight_[end] - At(of.weight_ + from);
      return {At(of.base_ + from) * weight - sum * sum, weight, Register<kWidth>::kFirst + from};
    }

    // A start, for the ends from one on.
    [[gnu::always_inline]] static Candidates Ends(const Penalised& of, int32_t from, int32_t end) {
      const Numbers sum = At(of.sum_ + end) - of.sum_[from],
                    weight = At(of.weight_ + end) - of.weight_[from];
      return {of.base_[from] * weight - sum * sum, weight, Indices{} + from};
    }

    [[gnu::always_inline]] void Keep(const Candidates& other) {
      const auto better = other.value * weight < value * other.weight;
      value = better ? other.value : value;
      weight = better ? other.weight : weight;
      start = better ? other.start : start;
    }

    [[gnu::always_inline]] static const Numbers& At(const double* numbers) {
      return *reinterpret_cast<const Numbers*>(numbers);
    }

    Numbers value, weight;
    Indices start;
  };

  struct Best {
    double value;
    int32_t start;
  };

  // Returns the best start of the last cluster before an end, from `low`, or a little before, to
  // `high`.
  template <int32_t kWidth>
  [[gnu::always_inline]] Best BestStart(int32_t low, int32_t high, int32_t end) const {
    constexpr int32_t kParts = kLanes / kWidth;
    Candidates<kWidth> best[kParts];
    int32_t start = high - kLanes + 1;
#pragma GCC unroll 8
    for (int32_t p = 0; p < kParts; ++p)
      best[p] = Candidates<kWidth>::Starts(*this, start + p * kWidth, end);
    while (start > low) {
      start -= kLanes;
#pragma GCC unroll 8
      for (int32_t p = 0; p < kParts; ++p)
        best[p].Keep(Candidates<kWidth>::Starts(*this, start + p * kWidth, end));
    }
    Best result{std::numeric_limits<double>::infinity(), low};
#pragma GCC unroll 8
    for (int32_t p = 0; p < kParts; ++p) {
      best[p].value /= best[p].weight;
#pragma GCC unroll 8
      for (int32_t i = 0; i < kWidth; ++i) {
        const bool better = best[p].value[i] < result.value;
        result.value = better ? best[p].value[i] : result.value;
        result.start = better ? static_cast<int32_t>(best[p].start[i]) : result.start;
      }
    }
    return result;
  }

  [[gnu::always_inline]] void Set(int32_t end, const Best& best) {
    base_[end] = best.value + penalty_;
    cost_[end] = base_[end] + square_[end];
    start_[end] = best.start;
    count_[end] = count_[best.start] + 1;
  }

  // Solves the ends from `first` to `last`, whose best starts are from `low` to `high`.
  template <int32_t kWidth>
  [[gnu::always_inline]] void SolveBlock(int32_t first, int32_t last, int32_t low, int32_t high) {
    struct Part {
      int32_t first, last, low, high;
    };
    Part parts[32];
    int count = 0;
    parts[count++] = {first, last, low, high};
    while (count > 0) {
      const Part part = parts[--count];
      if (const int32_t size = part.last - part.first + 1; size > kLanes) {
        const int32_t half = (size / 2 + kLanes - 1) / kLanes * kLanes,
                      middle = part.first + half - 1,
                      start = BestStart<kWidth>(part.low, part.high, middle).start;
        parts[count++] = {middle + 1, part.last, start, part.high};
        parts[count++] = {part.first, middle, part.low, start};
        continue;
      }
      constexpr int32_t kParts = kLanes / kWidth;
      Candidates<kWidth> best[kParts];
#pragma GCC unroll 8
      for (int32_t p = 0; p < kParts; ++p)
        best[p] = Candidates<kWidth>::Ends(*this, part.low, part.first + p * kWidth);
      for (int32_t start = part.low + 1; start <= part.high; ++start) {
#pragma GCC unroll 8
        for (int32_t p = 0; p < kParts; ++p)
          best[p].Keep(Candidates<kWidth>::Ends(*this, start, part.first + p * kWidth));
      }
      for (int32_t p = 0; p < kParts; ++p) {
        best[p].value /= best[p].weight;
        const int32_t first_end = part.first + p * kWidth,
                      ends = std::min(kWidth, part.last - first_end + 1);
        for (int32_t i = 0; i < ends; ++i)
          Set(first_end + i, {best[p].value[i], static_cast<int32_t>(best[p].start[i])});
      }
    }
  }

  template <int32_t kWidth>
  [[gnu::always_inline]] void SolveAll() {
    int32_t done = 0, low = 0;  // the last end that is solved, and its best start
    while (done < size_) {
      int32_t length = std::clamp((done - low) / 2, 1, size_ - done);
      Best best;
      while (true) {
        // Starts whose own cost exceeds that with the start `low` need no look.
        const int32_t last = done + length;
        const double sum = sum_[last] - sum_[low], weight = weight_[last] - weight_[low],
                     enough = base_[low] - sum * sum / weight + square_[last];
        const auto high = std::upper_bound(cost_ + low + 1, cost_ + done + 1, enough) - cost_ - 1;
        best = BestStart<kWidth>(low, static_cast<int32_t>(high), last);
        // With a start after `done`, an end costs at least as much as `done`, and the penalty.
        if (length == 1 || best.value + square_[last] <= cost_[done]) break;
        length = std::max(length / 4, 1);
      }
      if (length == 1) {
        Set(done + 1, best);
      } else {
        SolveBlock<kWidth>(done + 1, done + length, low, best.start);
      }
      done += length;
      low = start_[done];
    }
  }

  static void SolveBaseline(Penalised& problem) { problem.SolveAll<2>(); }
#if defined(__x86_64__)
  [[gnu::target("avx2")]] static void SolveAvx2(Penalised& problem) { problem.SolveAll<4>(); }
#endif
  static void (*const kSolve)(Penalised&);

  int32_t size_;
  double penalty_ = 0;
  const double *weight_, *sum_, *square_;
  // By index: the least cost of the values before, and that less their squares; the start of the
  // last cluster, and the number of clusters.
  Lines<2> lines_;
  double *cost_ = lines_[0], *base_ = lines_[1];
  std::unique_ptr<int32_t[]> start_, count_;
};

#if defined(__x86_64__)
void (*const Penalised::kSolve)(Penalised&) = __builtin_cpu_supports("avx2") ? SolveAvx2
                                                                             : SolveBaseline;
#else
void (*const Penalised::kSolve)(Penalised&) = SolveBaseline;
#endif

// Searches for a penalty that gives a number of clusters, from a guess on. Near that number, errors
// of k clusters are taken for c / k^2 + d (Panter and Dite 1951, "Quantization distortion in
// pulse-count modulation with nonuniform spacing of levels").
class PenaltySearch {
 public:
  PenaltySearch(const Sums& sums, int32_t clusters, double guess)
      : problem_(sums), clusters_(clusters), penalty_(guess) {}

  // Returns false if no penalty gives the number of clusters: equal gains of several clusters, as of
  // values at equal distances.
  bool Find() {
    constexpr int kTrials = 60;
    for (int trial = 0; trial < kTrials; ++trial) {
      const int32_t found = problem_.Solve(penalty_);
      if (found != clusters_) (found > clusters_ ? low_ : high_) = penalty_;
      Improve(found);
      if (found == clusters_) return true;
      // Bisects if the estimate leaves the interval, or after many steps.
      const bool inside = penalty_ > low_ * (1 + 1e-12) && penalty_ < high_ * (1 - 1e-12);
      if (!inside || trial % 4 == 3)
        penalty_ = std::isinf(high_) ? low_ * 8 : low_ > 0 ? std::sqrt(low_ * high_) : high_ / 8;
      if (!(penalty_ > low_ && penalty_ < high_) || penalty_ == 0) return false;
    }
    return false;
  }

  // Returns the middle of the penalties that give the number of clusters, after it was found.
  double Middle() {
    const double ratio = clusters_ / (clusters_ + 1.0);
    Improve(problem_.Solve(penalty_ * ratio * ratio * ratio));
    return penalty_;
  }
  std::vector<int32_t> Starts() const { return problem_.Starts(); }

 private:
  // Sets the penalty to the middle of those that give the number of clusters, as far as the last
  // solution, which has `found`, and the one before tell.
  void Improve(int32_t found) {
    auto inverse_square = [](double k) { return 1 / (k * k); };
    const double k = clusters_, error = problem_.error();
    const double c =
        last_found_ > 0 && last_found_ != found
            ? (error - last_error_) / (inverse_square(found) - inverse_square(last_found_))
            : 0;
    if (c > 0) {
      penalty_ = c * (inverse_square(k - 1) - inverse_square(k + 1)) / 2;
    } else if (found != clusters_) {
      // The penalty was meant to be right, so it is near those that are.
      const double ratio = (found > clusters_ ? found - 0.5 : found + 0.5) / k;
      penalty_ *= ratio * ratio * ratio;
    }
    last_found_ = found;
    last_error_ = error;
  }

  Penalised problem_;
  int32_t clusters_, last_found_ = 0;
  double penalty_, last_error_ = 0, low_ = 0, high_ = std::numeric_limits<double>::infinity();
};

// Dynamic programming over the number of clusters: the start of the last of k clusters is monotonic
// in its end, so the range of starts is halved together with the range of ends (Groenlund et al.
// 2017, "Fast exact k-means, k-medians and Bregman divergence clustering in 1D", section 2).
class ByCount {
 public:
  ByCount(const Sums& sums, int32_t most) : most_(most), size_(sums.size), sums_(sums) {}

  std::vector<int32_t> Starts() {
    cost_.resize(size_ + 1);
    for (int32_t end = 1; end <= size_; ++end) cost_[end] = Cost(sums_, 0, end);
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
      const double own = Cost(sums_, begin, end);
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
  const Sums& sums_;
  std::vector<double> cost_;  // by end, for group_ clusters
  double* next_ = nullptr;
  // Starts of the last cluster, by the number of clusters - 1 and the end.
  std::vector<std::vector<uint16_t>> begins_;
  int group_ = 0;
};

// The cube root of a positive number, to a twentieth: a third of its bits, which are about its
// logarithm.
float CubeRoot(float x) {
  // Two thirds of the bits of 1, less half of the largest error.
  constexpr uint32_t kBias = 0x2A514067;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) / 3 + kBias);
}

// Finds a penalty on a coarser problem, in which clusters begin at some of the values only.
double CoarsePenalty(std::span<const double> values, const Sums& sums, int32_t clusters) {
  // The error of k equal clusters of a uniform distribution falls like 1 / k^2.
  const double k = clusters, penalty = std::max(2 * Cost(sums, 0, sums.size) / (k * k * k),
                                                std::numeric_limits<double>::min());
  constexpr int32_t kStarts = 12, kPlaces = 4;  // per cluster, per start
  const int32_t stride = std::max(sums.size / (clusters * kStarts * kPlaces), 1),
                places = (sums.size - 1) / stride;
  if (sums.size < 2 * kStarts * clusters) return penalty;
  // Optimal clusters hold equal parts of the integral of the cube root of the density.
  auto part_of = [&](int32_t from, int32_t to) {
    const double distance = values[to] - values[from], weight = sums.weight[to] - sums.weight[from];
    return CubeRoot(static_cast<float>(weight * distance * distance));
  };
  std::vector<float> parts(static_cast<size_t>(places));
  float all = 0;
  for (int32_t i = 0; i < places; ++i) all += parts[i] = part_of(i * stride, (i + 1) * stride);
  const float least = all / static_cast<float>(kStarts * clusters);
  std::vector<int32_t> starts = {0};
  float part = 0;
  auto add = [&](float more, int32_t end) {
    part += more;
    if (part < least) return;
    starts.push_back(end);
    part = std::min(part - least, least);
  };
  for (int32_t i = 0; i < places; ++i) {
    if (const int32_t to = (i + 1) * stride; parts[i] < least)
      add(parts[i], to);
    else
      for (int32_t at = i * stride; at < to; ++at) add(part_of(at, at + 1), at + 1);
  }
  starts.push_back(sums.size);
  const Sums coarse(sums, starts);
  PenaltySearch search(coarse, clusters, penalty);
  return search.Find() ? search.Middle() : penalty;
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
  Sums sums(static_cast<int32_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i] - middle, w = weights[i];
    sums.weight[i + 1] = sums.weight[i] + w;
    sums.sum[i + 1] = sums.sum[i] + w * x;
    sums.square[i + 1] = sums.square[i] + w * x * x;
  }
  PenaltySearch search(sums, clusters, CoarsePenalty(values, sums, clusters));
  std::vector<int32_t> starts = search.Find() ? search.Starts() : ByCount(sums, clusters).Starts();
  std::vector<double> means;
  starts.push_back(sums.size);
  for (size_t k = 0; k + 1 < starts.size(); ++k) {
    const int32_t a = starts[k], b = starts[k + 1];
    means.push_back(middle + (sums.sum[b] - sums.sum[a]) / (sums.weight[b] - sums.weight[a]));
  }
  return means;
}

}  // namespace mlc::compress
