#include "lib/passes/choose_schemes.h"

#include <algorithm>
#include <cmath>
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

  void Run() {
    Estimate();
    Weigh();
    for (const Candidate* candidate : candidates_) {
      elements_ += static_cast<double>(candidate->tensor.size());
      plain_bytes_ += candidate->report.bytes_before;
    }
    goal_.goal == Scheme::Goal::kSnr ? ChooseByNoise() : ChooseBySize();
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

  // Measures how much the program loses by the error of one weight.
  void Weigh() {
    sensitivity_.assign(candidates_.size(), 1);
    if (!compression_.evaluate || std::ssize(candidates_) + kPoints > compression_.most_evaluations)
      return;
    double sum = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      // An error of about 20 dB is well above rounding and still small.
      constexpr double kWanted = 1e-2;
      const Possible* probe = nullptr;
      auto distance = [](const Possible& p) { return std::fabs(std::log(p.error / kWanted)); };
      for (const Possible& possible : possible_[i])
        if (possible.error > 0 && (!probe || distance(possible) < distance(*probe)))
          probe = &possible;
      if (!probe) continue;
      Candidate& candidate = *candidates_[i];
      const Tensor made = quantise_(candidate, probe->scheme, 0).tensor;
      SetAll({{i, made}});
      sensitivity_[i] = compression_.evaluate(program_).cost() / probe->error;
      Restore({i});
      sum += sensitivity_[i];
    }
    // Outputs that do not depend on any weight, as where all samples are clamped, say nothing.
    if (!(sum > 0)) return sensitivity_.assign(candidates_.size(), 1);
    // What the samples do not show may still count.
    const double least = sum / static_cast<double>(candidates_.size()) * 1e-3;
    for (double& sensitivity : sensitivity_) sensitivity = std::max(sensitivity, least);
  }

  void SetAll(const std::vector<std::pair<size_t, Tensor>>& tensors) {
    for (const auto& [i, tensor] : tensors)
      for (Value* value : candidates_[i]->values) value->def->val = tensor;
  }
  void Restore(const std::vector<size_t>& which) {
    for (const size_t i : which)
      for (Value* value : candidates_[i]->values) value->def->val = candidates_[i]->tensor;
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
    std::vector<std::pair<size_t, Tensor>> tensors;
    std::vector<size_t> all;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      all.push_back(i);
      if (point.schemes[i].values == Scheme::Values::kKept) continue;
      tensors.emplace_back(i, quantise_(*candidates_[i], point.schemes[i], 0).tensor);
    }
    SetAll(tensors);
    point.loss = compression_.evaluate(program_);
    Restore(all);
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
    // A few samples can flatter a point, so that the estimate counts, too.
    auto lost = [&](size_t i) {
      return std::pair(points[i].loss.cost() * std::sqrt(points[i].cost), points[i].cost);
    };
    for (size_t i = 0; i < points.size(); ++i) {
      Measure(points[i]);
      if (points[i].bytes <= budget && (!chosen || lost(i) < lost(*chosen))) chosen = i;
    }
    // Nothing fits: the smallest is the best that can be done.
    if (!chosen) chosen = 0;
    Finish(points, *chosen);
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

  void Finish(const std::vector<Point>& points, size_t chosen) {
    Choose(points[chosen]);
    if (!compression_.evaluate) return;
    std::vector<size_t> order(points.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](size_t i) { return points[i].bytes; });
    const auto same = [&](size_t a, size_t b) {
      return points[a].uniform == points[b].uniform && points[a].schemes == points[b].schemes;
    };
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i] != chosen && same(order[i], chosen)) continue;
      if (i > 0 && same(order[i], order[i - 1]) && order[i] != chosen) continue;
      Record(points[order[i]], order[i] == chosen);
    }
  }

  static constexpr int kPoints = 14;
  static constexpr size_t kUniform = 5;

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
};

}  // namespace

void ChooseSchemes(Program& program, const compress::Scheme& goal,
                   const std::vector<Candidate*>& candidates, DType plain, Opset target,
                   compress::Compression& compression, const QuantiseFn& quantise) {
  Chooser(program, goal, candidates, plain, target, compression, quantise).Run();
}

}  // namespace mlc::passes
