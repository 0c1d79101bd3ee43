#include "lib/precision/error_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mlc::precision {

namespace {

// Safety margins, because other kernels round differently: the usable part of a budget, and the
// allowed multiple of a floor.
constexpr double kSureOfFew = 0.85, kSureFloors = 1.25;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double PartOf(double value, double allowed) { return value / std::max(allowed, 1e-30); }

// Returns whether an element is NaN or infinite where its reference is finite in the output type.
bool Breaks(const Tensor& value, const Tensor& reference) {
  if (!IsFloat(value.dtype()) || !IsFloat(reference.dtype())) return false;
  const std::vector<double> values = value.Doubles(),
                            numbers = reference.Cast(value.dtype()).Doubles();
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]) && std::isfinite(numbers[i])) return true;
  return false;
}

std::string_view WhyNothing(const verify::Comparison& comparison) {
  if (ElementCount(comparison.dims) == 0) return "is empty";
  if (!comparison.discriminating) return "is constant or not finite";
  return comparison.resized ? "changes size with fp16 constants alone"
                            : "changes completely with fp16 constants alone";
}

}  // namespace

double Median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double Measurement::Figure::Part() const { return PartOf(value, allowed); }
double ErrorStats::Series::Part() const { return PartOf(value, allowed); }

void ErrorStats::Take(Place place, const verify::StepResults& values,
                      const verify::StepResults& references, const verify::Budgets& budgets) {
  worst_part_ = 0;
  within_ = true;
  TakeAll(values.outputs, references.outputs, budgets);
  TakeAll(values.states, references.states, budgets);
  if (!within_) outside_.insert(place);
  by_order_[place].push_back(worst_part_);
}

void ErrorStats::TakeAll(const verify::NamedTensors& values, const verify::NamedTensors& references,
                         const verify::Budgets& budgets) {
  using Kind = Measurement::Figure::Kind;
  for (size_t i = 0; i < references.size(); ++i) {
    const auto& [name, reference] = references[i];
    const verify::Budget& budget = budgets.of(name);
    const verify::Budget allowed = budget.Allowed();
    const verify::Floor floor = budget.floor.value_or(verify::Floor());
    const verify::Comparison comparison = verify::Compare(values[i].second, reference, budget);
    const bool alike = comparison.mismatch.empty();
    if (alike && comparison.infinite > 0 && Breaks(values[i].second, reference)) broken_ = name;
    if (!comparison.Tells(budget)) {
      resized_ |= floor.resized;
      untold_.insert(WhyNothing(comparison));
    } else if (alike && comparison.exact) {
      TakeFigure(name, Kind::kUnequal, 1 - comparison.equal_fraction, allowed.unequal,
                 floor.unequal);
    } else if (alike && budget.elementwise()) {
      const auto elements = static_cast<double>(ElementCount(comparison.dims));
      TakeFigure(name, Kind::kBeyond, static_cast<double>(comparison.beyond) / elements, 0, 0);
    } else {
      TakeFigure(name, Kind::kError, alike ? comparison.max_error : kInfinity, allowed.max_error,
                 floor.max_error);
      TakeFigure(name, Kind::kRmse, alike ? comparison.rmse : 0, allowed.rmse, floor.rmse);
    }
  }
}

void ErrorStats::TakeFigure(const std::string& output, Measurement::Figure::Kind kind, double value,
                            double allowed, double floor) {
  auto [known, first] = series_.try_emplace({output, kind});
  Series& series = known->second;
  const double part = PartOf(value, allowed);
  if (first || part > series.Part()) {
    series.value = value;
    series.allowed = allowed;
  }
  const bool safe = value <= kSureFloors * floor || part <= kSureOfFew;
  series.safe &= safe;
  within_ = within_ && safe;
  worst_part_ = std::max(worst_part_, part);
}

void ErrorStats::Add(const ErrorStats& other) {
  for (const auto& [of, theirs] : other.series_) {
    auto [known, first] = series_.try_emplace(of, theirs);
    Series& series = known->second;
    const bool safe = series.safe && theirs.safe;
    if (theirs.Part() > series.Part()) series = theirs;
    series.safe = safe;
  }
  untold_.insert(other.untold_.begin(), other.untold_.end());
  if (broken_.empty()) broken_ = other.broken_;
  resized_ |= other.resized_;
}

Measurement::Figure ErrorStats::worst() const {
  Measurement::Figure worst;
  for (const auto& [of, series] : series_)
    if (worst.output.empty() || series.Part() > worst.Part())
      worst = {of.second, of.first, series.value, series.allowed, series.value <= series.allowed};
  return worst;
}

std::vector<Measurement::Figure> ErrorStats::Beyond() const {
  std::map<std::string, Measurement::Figure> worst;
  for (const auto& [of, series] : series_) {
    if (series.value <= series.allowed) continue;
    Measurement::Figure& figure = worst[of.first];
    if (figure.output.empty() || series.Part() > figure.Part())
      figure = {of.second, of.first, series.value, series.allowed, false};
  }
  std::vector<Measurement::Figure> all;
  for (auto& [output, figure] : worst) all.push_back(std::move(figure));
  return all;
}

bool ErrorStats::Safe() const {
  return std::ranges::all_of(series_, [](const auto& entry) { return entry.second.safe; });
}

// With W the worst and M the median part over the orders run, W * sqrt(W / M) estimates the worst
// over all orders; it must not exceed 1, which is W^3 <= M.
bool ErrorStats::Steady() const {
  return std::ranges::all_of(by_order_, [](const auto& entry) {
    const std::vector<double>& parts = entry.second;
    const double largest = *std::ranges::max_element(parts);
    return parts.size() == 1 || largest * largest * largest <= Median(parts);
  });
}

std::set<size_t> ErrorStats::Outside(size_t job) const {
  std::set<size_t> steps;
  for (const Place& place : outside_)
    if (place.first == job) steps.insert(place.second);
  return steps;
}

}  // namespace mlc::precision
