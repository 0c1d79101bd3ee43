// lib/precision/figures.h - how far from its references a candidate of measuring (measure.h) is, over
// samples and orders of sums, and whether that may be trusted.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/precision/measure.h"

namespace mlc {

double Median(std::vector<double> values);

class Figures {
 public:
  using Place = std::pair<size_t, size_t>;  // a job and a step of it

  // Adds what a step computed, once for each order of sums.
  void Take(Place place, const StepResults& values, const StepResults& references,
            const Budgets& budgets);

  // For what is allowed of it; without a name where nothing could be compared.
  Measurement::Figure worst() const;
  // Of each output that is beyond what is allowed of it, the worst figure.
  std::vector<Measurement::Figure> Beyond() const;
  // Whether all leave something for other kernels,
  bool Safe() const;
  // and for orders of sums beside those that were taken, if several were.
  bool Steady() const;
  // Steps of a job that are not safe.
  std::set<size_t> Outside(size_t job) const;
  // Whether constants in fp16 give an output that does not fit another size.
  bool resized() const { return resized_; }
  // An output that is NaN or infinite where its reference is a number that its type holds; empty:
  // none is.
  const std::string& broken() const { return broken_; }
  // Of outputs that say nothing why, after "each output".
  const std::set<std::string_view>& untold() const { return untold_; }

 private:
  // What samples made of one figure of an output.
  struct Series {
    double value = 0, allowed = 0;  // of the worst
    bool safe = true;               // all are, or within what floors leave alone
    double Part() const;
  };
  void TakeAll(const NamedTensors& values, const NamedTensors& references, const Budgets& budgets);
  void TakeFigure(const std::string& output, Measurement::Figure::Kind kind, double value,
                  double allowed, double floor);

  std::map<std::pair<std::string, Measurement::Figure::Kind>, Series> series_;
  std::map<Place, std::vector<double>> by_order_;  // the worst part of the step
  std::set<Place> outside_;
  std::set<std::string_view> untold_;
  std::string broken_;
  bool resized_ = false;
  // Of the step that is taken.
  double worst_part_ = 0;
  bool within_ = true;
};

}  // namespace mlc
