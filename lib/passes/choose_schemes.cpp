#include "lib/passes/choose_schemes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lib/compress/allocation.h"
#include "lib/support/threads.h"

namespace mlc::passes {

namespace {

using compress::Allocation;
using compress::Choice;
using compress::CurvePoint;
using compress::Loss;
using compress::Quantised;
using compress::Scheme;

// A scheme that is legal for a weight.
struct Possible {
  Scheme scheme;
  uint64_t bytes = 0;
  double error = 0;  // relative
};

class Chooser {
 public:
  Chooser(Program& program, const Scheme& goal, const std::vector<Candidate*>& candidates,
          DType plain, Opset target, compress::Compression& compression, const QuantiseFn& quantise)
      : program_(program),
        goal_(goal),
        candidates_(candidates),
        plain_(plain),
        target_(target),
        compression_(compression),
        quantise_(quantise) {}

  std::optional<Alternative> Run() {
    Estimate();
    Weigh();
    for (const Candidate* candidate : candidates_) {
      elements_ += static_cast<double>(candidate->tensor.size());
      plain_bytes_ += candidate->report.bytes_before;
    }
    goal_.goal == Scheme::Goal::kSnr ? ChooseByNoise() : ChooseBySize();
    return std::move(alternative_);
  }

 private:
  // ---- estimates

  void Estimate() {
    const std::vector<Scheme> schemes = compress::Choices(target_);
    possible_.resize(candidates_.size());
    // Large weights use all threads one by one.
    ParallelFor(std::ssize(candidates_), 0, [&](int64_t i) {
      Candidate& candidate = *candidates_[i];
      const uint64_t dense = ByteCount(plain_, candidate.tensor.size());
      std::set<std::string> seen;
      for (const Scheme& scheme : schemes) {
        if (scheme.values == Scheme::Values::kPlain) {
          // Unchanged: a weight that is encoded keeps its encoding.
          possible_[i].push_back({{}, candidate.report.bytes_before, 0});
          continue;
        }
        const WeightOperand axes = candidate.axes.value_or(WeightOperand());
        const Scheme legal = compress::LegalScheme(scheme, candidate.tensor.dims(), axes);
        if (!seen.insert(compress::Text(legal)).second) continue;
        const Quantised made = quantise_(candidate, legal, 1);
        if (!made.refused.empty() || made.bytes >= dense) continue;
        possible_[i].push_back({legal, made.bytes,
                                made.output_energy > 0 ? made.output_error / made.output_energy
                                : made.energy > 0      ? made.error / made.energy
                                                       : 0});
      }
    });
  }

  // The schemes of a weight whose errors are nearest to 20 dB, which is well above rounding and
  // still small.
  std::vector<const Possible*> Probes(size_t weight, size_t count) const {
    constexpr double kWanted = 1e-2;
    std::vector<const Possible*> probes;
    for (const Possible& possible : possible_[weight])
      if (possible.error > 0) probes.push_back(&possible);
    std::ranges::stable_sort(
        probes, {}, [&](const Possible* p) { return std::fabs(std::log(p->error / kWanted)); });
    probes.resize(std::min(probes.size(), count));
    return probes;
  }

  // Measures how much the program loses by the error of one weight.
  void Weigh() {
    sensitivity_.assign(candidates_.size(), 1);
    if (!compression_.evaluate || std::ssize(candidates_) + kPoints > compression_.most_evaluations)
      return;
    // If outputs are few numbers, one probe may happen to change them little.
    constexpr double kFewNumbers = 32;
    constexpr int64_t kMostProbes = 4;
    const int64_t most =
        std::clamp((compression_.most_evaluations - kPoints) / std::ssize(candidates_), int64_t{1},
                   kMostProbes);
    double sum = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      double reaction = 0, tried = 0, numbers = 0;
      for (const Possible* probe : Probes(i, static_cast<size_t>(most))) {
        if (tried > 0 && numbers > kFewNumbers) break;
        const Loss loss = LossWith({{i, quantise_(*candidates_[i], probe->scheme, 0)}});
        reaction += loss.cost() / probe->error;
        numbers = loss.numbers;
        ++tried;
      }
      if (tried == 0) continue;
      sensitivity_[i] = reaction / tried;
      sum += sensitivity_[i];
    }
    // Outputs that do not depend on any weight, as where all samples are clamped, say nothing.
    if (!(sum > 0)) return sensitivity_.assign(candidates_.size(), 1);
    // What the samples do not show may still count.
    const double least = sum / static_cast<double>(candidates_.size()) * 1e-3;
    for (double& sensitivity : sensitivity_) sensitivity = std::max(sensitivity, least);
  }

  // Runs the program with some weights quantised, and their biases corrected as they will be.
  Loss LossWith(const std::map<size_t, Quantised>& weights) {
    std::vector<std::pair<Operation*, Tensor>> before;
    auto remember = [&](Operation* op) { before.emplace_back(op, op->val); };
    for (const auto& [i, made] : weights) {
      const Candidate& candidate = *candidates_[i];
      for (Value* value : candidate.values) {
        remember(value->def);
        value->def->val = made.tensor;
      }
      if (made.bias.empty() || made.error == 0) continue;
      Operation* bias = BiasOf(candidate);
      remember(bias);
      CorrectBias(*bias, made.bias);
    }
    const Loss loss = compression_.evaluate(program_);
    for (auto& [op, tensor] : before) op->val = std::move(tensor);
    return loss;
  }

  // ---- points

  struct Point {
    std::string uniform;
    std::vector<Scheme> schemes;
    uint64_t bytes = 0;
    double cost = 0;  // estimated
    Loss loss;
  };

  std::vector<std::vector<Choice>> Choices() const {
    std::vector<std::vector<Choice>> choices(candidates_.size());
    for (size_t i = 0; i < choices.size(); ++i)
      for (const Possible& possible : possible_[i])
        choices[i].push_back({possible.bytes, possible.error * sensitivity_[i]});
    return choices;
  }

  Point PointFor(uint64_t most_bytes) const {
    const Allocation allocation = compress::AllocationFor(Choices(), most_bytes);
    Point point{.bytes = allocation.bytes, .cost = allocation.cost};
    for (size_t i = 0; i < candidates_.size(); ++i)
      point.schemes.push_back(possible_[i][allocation.chosen[i]].scheme);
    return point;
  }

  // The same scheme for all weights, as far as it is legal.
  std::optional<Point> Uniform(const Scheme& scheme) const {
    Point point{.uniform = compress::Text(scheme)};
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const WeightOperand axes = candidates_[i]->axes.value_or(WeightOperand());
      const Scheme legal = compress::LegalScheme(scheme, candidates_[i]->tensor.dims(), axes);
      auto found = std::ranges::find(possible_[i], legal, &Possible::scheme);
      if (found == possible_[i].end()) found = possible_[i].begin();  // unchanged
      point.schemes.push_back(found->scheme);
      point.bytes += found->bytes;
      point.cost += found->error * sensitivity_[i];
    }
    return point;
  }

  // Runs the program with the schemes of a point.
  void Measure(Point& point) {
    std::map<size_t, Quantised> weights;
    for (size_t i = 0; i < candidates_.size(); ++i)
      if (point.schemes[i].values != Scheme::Values::kKept)
        weights.emplace(i, quantise_(*candidates_[i], point.schemes[i], 0));
    point.loss = LossWith(weights);
  }

  void Record(const Point& point, bool chosen) {
    compression_.curve.push_back({.scheme = point.uniform,
                                  .bytes = point.bytes,
                                  .bits = 8 * static_cast<double>(point.bytes) / elements_,
                                  .loss = point.loss,
                                  .chosen = chosen});
  }

  void Choose(const Point& point) {
    for (size_t i = 0; i < candidates_.size(); ++i) candidates_[i]->scheme = point.schemes[i];
  }

  // ---- goals

  void ChooseBySize() {
    const double most = goal_.goal == Scheme::Goal::kBits
                            ? goal_.wanted * elements_ / 8
                            : goal_.wanted / 100 * static_cast<double>(plain_bytes_);
    const auto budget = static_cast<uint64_t>(most);
    Point best = PointFor(budget);
    if (!compression_.evaluate || compression_.most_evaluations < kPoints) return Choose(best);
    std::vector<Point> points;
    for (const double share : {0.6, 0.75, 0.9, 0.97, 1.0, 1.1, 1.3, 1.6})
      points.push_back(PointFor(static_cast<uint64_t>(most * share)));
    // The uniform schemes of the least estimated loss that fit.
    std::vector<Point> uniform;
    for (const Scheme& scheme : compress::Choices(target_))
      if (scheme.values != Scheme::Values::kPlain)
        if (std::optional<Point> point = Uniform(scheme); point && point->bytes <= budget)
          uniform.push_back(std::move(*point));
    std::ranges::stable_sort(uniform, {}, &Point::cost);
    if (uniform.size() > kUniform) uniform.resize(kUniform);
    points.insert(points.end(), uniform.begin(), uniform.end());
    std::optional<size_t> chosen;
    // A few samples can flatter a point, so that the estimate counts, too, and the more, the fewer
    // numbers were compared: the variance of the logarithm of a mean of n squares is about 2 / n, that
    // of the estimate was found to be about a half.
    auto lost = [&](size_t i) {
      const double share = 0.5 + 4 / std::max(points[i].loss.numbers, 1.0);
      return std::pair(points[i].loss.cost() * std::pow(points[i].cost, share), points[i].cost);
    };
    for (size_t i = 0; i < points.size(); ++i) {
      Measure(points[i]);
      if (points[i].bytes <= budget && (!chosen || lost(i) < lost(*chosen))) chosen = i;
    }
    // Nothing fits: the smallest is the best that can be done.
    if (!chosen) chosen = 0;
    std::optional<size_t> other;
    for (size_t i = 0; i < points.size(); ++i)
      if (points[i].schemes != points[*chosen].schemes && !points[i].uniform.empty() &&
          points[i].bytes <= budget &&
          points[i].loss.cost() < kNear * points[*chosen].loss.cost() &&
          (!other || lost(i) < lost(*other)))
        other = i;
    Finish(points, *chosen, other);
  }

  void ChooseByNoise() {
    const double most = std::pow(10, -goal_.wanted / 10);
    uint64_t low = 0, high = 0;  // bytes
    for (const auto& possible : possible_) {
      uint64_t least = UINT64_MAX, greatest = 0;
      for (const Possible& one : possible) {
        least = std::min(least, one.bytes);
        greatest = std::max(greatest, one.bytes);
      }
      low += least;
      high += greatest;
    }
    auto noise = [&](Point& point) {
      if (!compression_.evaluate) return point.cost;
      Measure(point);
      return point.loss.noise;
    };
    std::vector<Point> points;
    points.push_back(PointFor(high));
    if (compression_.evaluate) Measure(points.back());
    constexpr int kBisections = 10;
    for (int i = 0; i < kBisections && high - low > high / 200; ++i) {
      const uint64_t middle = low + (high - low) / 2;
      points.push_back(PointFor(middle));
      (noise(points.back()) <= most ? high : low) = middle;
    }
    size_t chosen = 0;
    for (size_t i = 1; i < points.size(); ++i) {
      const double lost = compression_.evaluate ? points[i].loss.noise : points[i].cost;
      if (lost <= most && points[i].bytes < points[chosen].bytes) chosen = i;
    }
    Finish(points, chosen);
  }

  void Finish(const std::vector<Point>& points, size_t chosen,
              std::optional<size_t> other = std::nullopt) {
    Choose(points[chosen]);
    if (!compression_.evaluate) return;
    std::vector<size_t> order(points.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](size_t i) { return points[i].bytes; });
    const auto same = [&](size_t a, size_t b) {
      return points[a].uniform == points[b].uniform && points[a].schemes == points[b].schemes;
    };
    size_t at = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i] != chosen && same(order[i], chosen)) continue;
      if (i > 0 && same(order[i], order[i - 1]) && order[i] != chosen) continue;
      if (order[i] == chosen) at = compression_.curve.size();
      if (order[i] == other)
        alternative_ = {.candidates = candidates_,
                        .schemes = points[*other].schemes,
                        .point = compression_.curve.size()};
      Record(points[order[i]], order[i] == chosen);
    }
    if (alternative_) alternative_->chosen = at;
  }

  static constexpr int kPoints = 14;
  static constexpr size_t kUniform = 5;
  // How much larger the loss of an alternative may be at first.
  static constexpr double kNear = 4;

  Program& program_;
  const Scheme& goal_;
  const std::vector<Candidate*>& candidates_;
  const DType plain_;
  const Opset target_;
  compress::Compression& compression_;
  const QuantiseFn& quantise_;
  std::vector<std::vector<Possible>> possible_;
  std::vector<double> sensitivity_;
  double elements_ = 0;
  uint64_t plain_bytes_ = 0;
  std::optional<Alternative> alternative_;
};

}  // namespace

std::optional<Alternative> ChooseSchemes(Program& program, const compress::Scheme& goal,
                                         const std::vector<Candidate*>& candidates, DType plain,
                                         Opset target, compress::Compression& compression,
                                         const QuantiseFn& quantise) {
  return Chooser(program, goal, candidates, plain, target, compression, quantise).Run();
}

}  // namespace mlc::passes
