// lib/precision/error_stats.h - the errors of a candidate (measure.h) over all samples and
// summation orders, and whether they are reliable.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/precision/measure.h"

namespace mlc::precision {

double Median(std::vector<double> values);

class ErrorStats {
 public:
  using Place = std::pair<size_t, size_t>;  // index of a job, index of its step

  // Adds the results of one step; called once per summation order.
  void Take(Place place, const verify::StepResults& values, const verify::StepResults& references,
            const verify::Budgets& budgets);

  // Adds the figures of other inputs. Their steps are not part of Steady and Outside.
  void Add(const ErrorStats& other);

  // The figure that uses the largest part of its limit. Its `output` is empty if nothing was
  // comparable.
  Measurement::Figure worst() const;
  // For each output outside its limits, the worst figure.
  std::vector<Measurement::Figure> Beyond() const;
  // Returns whether all figures leave a margin for other kernels.
  bool Safe() const;
  // Returns whether they leave a margin for further summation orders; true if only one was run.
  bool Steady() const;
  // The steps of a job that are not safe.
  std::set<size_t> Outside(size_t job) const;
  // Returns whether some output has a data-dependent size that changes when constants are rounded
  // to fp16.
  bool resized() const { return resized_; }
  // The name of an output that is NaN or infinite where its reference is finite in the output type;
  // empty if there is none.
  const std::string& broken() const { return broken_; }
  // Reasons why outputs were not comparable, phrased to follow "each output".
  const std::set<std::string_view>& untold() const { return untold_; }

 private:
  // One figure of one output over all samples.
  struct Series {
    double value = 0, allowed = 0;  // from the worst sample
    bool safe = true;               // every sample has the safety margin
    double Part() const;
  };
  void TakeAll(const verify::NamedTensors& values, const verify::NamedTensors& references,
               const verify::Budgets& budgets);
  void TakeFigure(const std::string& output, Measurement::Figure::Kind kind, double value,
                  double allowed, double floor);

  std::map<std::pair<std::string, Measurement::Figure::Kind>, Series> series_;
  std::map<Place, std::vector<double>>
      by_order_;  // by summation order, the worst part of a limit in that step
  std::set<Place> outside_;
  std::set<std::string_view> untold_;
  std::string broken_;
  bool resized_ = false;
  // For the step being added.
  double worst_part_ = 0;
  bool within_ = true;
};

}  // namespace mlc::precision
