#include "lib/verify/compare.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/support/edit_distance.h"
#include "lib/support/error.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"

namespace mlc::verify {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kShareDigits = 1e-12;  // absorbs the rounding of 1.5 * 0.2 in double
constexpr std::string_view kBudgetNames = "fp32, fp16, int8";

std::optional<Budget> NamedBudget(std::string_view name) {
  if (name == "fp32") return Budget{1e-3, 1e-4};
  if (name == "fp16") return Budget{1e-2, kInfinity};
  if (name == "int8") return Budget{5e-2, kInfinity};
  return std::nullopt;
}

double Limit(const Json& json, const std::string& field) {
  const Json& value = json.at(field);
  if (!value.is_number() || !(value.get<double>() >= 0) || !std::isfinite(value.get<double>()))
    throw Error("bad-file", "\"{}\" is {}", field, JsonText(value))
        .Expected("a finite number, at least 0");
  return value.get<double>();
}

// Reads the fields of `json` on top of `base`. Only an `outer` object may have "outputs".
Budget BudgetFrom(const Json& json, std::optional<Budget> base, bool outer) {
  if (!json.is_object())
    throw Error("bad-file", "{} is not an object", JsonText(json)).Expected("{...}");
  static const std::set<std::string> known = {"base", "max_error", "rmse",  "unequal", "per_axis",
                                              "atol", "rtol",      "floor", "stated"};
  for (const auto& [key, value] : json.items())
    if (!known.contains(key) && !(outer && key == "outputs"))
      throw Error("bad-file", "unknown field \"{}\"", key)
          .Expected("{}{}", fmt::join(known, ", "), outer ? ", outputs" : "");
  if (json.contains("base")) {
    std::string name = json.at("base").is_string() ? json.at("base").get<std::string>() : "";
    base = NamedBudget(name);
    if (!base)
      throw Error("bad-file", "\"base\" is {}", JsonText(json.at("base")))
          .Expected(std::string(kBudgetNames));
  }
  bool elementwise = json.contains("atol") || json.contains("rtol");
  for (const char* field : {"max_error", "rmse"})
    if (!base && !elementwise && !json.contains(field))
      throw Error("bad-file", "\"{}\" is missing", field)
          .Expected("max_error and rmse, or a base that has them, or atol or rtol");
  Budget budget = base.value_or(Budget());
  if (json.contains("max_error")) budget.max_error = Limit(json, "max_error");
  if (json.contains("rmse"))
    budget.rmse = json.at("rmse") == "inf" ? kInfinity : Limit(json, "rmse");
  if (json.contains("unequal")) budget.unequal = Limit(json, "unequal");
  if (json.contains("atol")) budget.atol = Limit(json, "atol");
  if (json.contains("rtol")) budget.rtol = Limit(json, "rtol");
  if (json.contains("per_axis")) {
    if (!json.at("per_axis").is_number_integer())
      throw Error("bad-file", "\"per_axis\" is {}", JsonText(json.at("per_axis")))
          .Expected("the index of a dimension");
    budget.per_axis = json.at("per_axis").get<int64_t>();
  }
  if (json.contains("stated")) budget.stated = Limit(json, "stated");
  if (json.contains("floor")) budget.floor = FloorFromJson(JsonText(json.at("floor")));
  return budget;
}

Json FieldsOf(const Budget& budget) {
  Json json{{"max_error", budget.max_error}, {"rmse", NumberJson(budget.rmse)}};
  if (budget.unequal > 0) json["unequal"] = budget.unequal;
  if (budget.per_axis) json["per_axis"] = *budget.per_axis;
  if (budget.atol) json["atol"] = *budget.atol;
  if (budget.rtol) json["rtol"] = *budget.rtol;
  if (budget.stated) json["stated"] = *budget.stated;
  if (budget.floor) json["floor"] = ParseJson(ToJson(*budget.floor));
  return json;
}

}  // namespace

std::string ToJson(const Floor& floor) {
  Json json{{"max_error", NumberJson(floor.max_error)},
            {"rmse", NumberJson(floor.rmse)},
            {"unequal", floor.unequal},
            {"resized", floor.resized}};
  return JsonText(json);
}

Floor FloorFromJson(std::string_view text) {
  Json json = ParseJson(text);
  auto figure = [&](const char* field) {
    return json.at(field) == "inf" ? kInfinity : Limit(json, field);
  };
  return {figure("max_error"), figure("rmse"), Limit(json, "unequal"), json.at("resized")};
}

Budget Budget::Allowed() const {
  Budget allowed = *this;
  if (stated) {
    allowed.max_error = std::max(max_error, kStated * *stated);
    allowed.rmse = std::max(rmse, kStated * *stated);  // it is at most max_error
    allowed.unequal = std::max(unequal, kStated * *stated);
  }
  if (!floor) return allowed;
  allowed.max_error = std::max(allowed.max_error, kFloors * floor->max_error);
  allowed.rmse = std::max(allowed.rmse, kFloors * floor->rmse);
  allowed.unequal = std::max(allowed.unequal, kFloors * floor->unequal);
  return allowed;
}

const Budget& Budgets::of(const std::string& output) const {
  auto it = outputs.find(output);
  return it == outputs.end() ? all : it->second;
}

Budgets BudgetsFromJson(std::string_view text, std::string_view where) {
  try {
    Json json = ParseJson(text);
    Budgets budgets{std::string(where), BudgetFrom(json, std::nullopt, true), {}};
    if (!json.contains("outputs")) return budgets;
    if (!json.at("outputs").is_object())
      throw Error("bad-file", "\"outputs\" is not an object").Expected("{NAME: {...}}");
    for (const auto& [name, fields] : json.at("outputs").items())
      budgets.outputs[name] = BudgetFrom(fields, budgets.all, false);
    return budgets;
  } catch (const nlohmann::json::exception& error) {
    throw Error("bad-file", "budget: {}", JsonFault(error.what())).At({std::string(where), ""});
  } catch (Error& error) {
    error.At({std::string(where), "budget"});
    throw;
  }
}

std::string ToJson(const Budgets& budgets) {
  Json json = FieldsOf(budgets.all);
  for (const auto& [name, budget] : budgets.outputs) json["outputs"][name] = FieldsOf(budget);
  return JsonText(json);
}

Budgets ParseBudgets(std::string_view name) {
  if (std::optional<Budget> budget = NamedBudget(name)) return {std::string(name), *budget, {}};
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored))
    throw Error("bad-name", "unknown budget \"{}\", and there is no such file{}", name,
                DidYouMean(std::array{"fp32", "fp16", "int8"}, name))
        .Expected("{} or a JSON file with max_error and rmse", kBudgetNames);
  return BudgetsFromJson(AsText(MappedFile::Open(name)->bytes()), name);
}

std::string Describe(const Budget& budget) {
  std::string text = budget.elementwise()
                         ? fmt::format("|difference| <= {:g} + {:g} |reference|",
                                       budget.atol.value_or(0), budget.rtol.value_or(0))
                         : fmt::format("max error {:g}", budget.max_error);
  if (!budget.elementwise() && std::isfinite(budget.rmse))
    text += fmt::format(", RMSE {:g}", budget.rmse);
  if (budget.per_axis && !budget.elementwise())
    text += fmt::format(", by slices of axis {}", *budget.per_axis);
  return text;
}

namespace {

// The statistics of a set of elements that are judged together: the tensor, or one slice.
struct Group {
  double low = kInfinity, high = -kInfinity, max_abs = 0, max_difference = 0, sum_squares = 0;
  double first = 0;
  int64_t count = 0, worst = -1;
  bool distinct = false;

  void Add(int64_t index, double reference, double difference) {
    if (count++ == 0) first = reference;
    distinct = distinct || !(reference == first || (std::isnan(reference) && std::isnan(first)));
    if (std::isfinite(reference)) {
      low = std::min(low, reference);
      high = std::max(high, reference);
      max_abs = std::max(max_abs, std::fabs(reference));
    }
    sum_squares += difference * difference;
    if (difference > max_difference) {
      max_difference = difference;
      worst = index;
    }
  }
  double size() const { return std::max(high >= low ? high - low : 0.0, max_abs); }
  double scale() const { return std::max(size(), 1e-6); }
  double max_error() const { return max_difference / scale(); }
  double rmse() const {
    return count ? std::sqrt(sum_squares / static_cast<double>(count)) / scale() : 0;
  }
  bool discriminating() const { return count == 1 || distinct; }
};

// The elements of two tensors of equal shape, converted to numbers.
struct Elements {
  const Dims& dims;
  std::vector<double> values, references;
  std::vector<int64_t> value_integers,
      reference_integers;  // filled when neither tensor holds floats

  Elements(const Tensor& value, const Tensor& reference)
      : dims(reference.dims()), values(value.Doubles()), references(reference.Doubles()) {
    if (IsFloat(value.dtype()) || IsFloat(reference.dtype())) return;
    value_integers = value.Ints();
    reference_integers = reference.Ints();
  }
  bool Same(int64_t i) const {
    if (!value_integers.empty()) return reference_integers[i] == value_integers[i];
    double r = references[i], v = values[i];
    return r == v || (std::isnan(r) && std::isnan(v));
  }
  double Difference(int64_t i) const {
    if (Same(i)) return 0;
    double r = references[i], v = values[i];
    if (!std::isfinite(r) || !std::isfinite(v)) return kInfinity;
    // Two large integers can differ although they convert to the same double.
    return std::max(std::fabs(v - r), std::numeric_limits<double>::min());
  }
};

std::vector<Group> Slices(const Elements& elements, size_t axis) {
  const Dims& dims = elements.dims;
  int64_t inner = 1;
  for (size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
  std::vector<Group> slices(dims[axis]);
  for (int64_t i = 0; i < std::ssize(elements.references); ++i)
    slices[i / inner % dims[axis]].Add(i, elements.references[i], elements.Difference(i));
  return slices;
}

// Returns the index of the slice with the largest error relative to its own range, among the slices
// that discriminate; -1 if none does.
int64_t Worst(const std::vector<Group>& slices) {
  int64_t worst = -1;
  for (size_t i = 0; i < slices.size(); ++i)
    if (slices[i].discriminating() &&
        (worst < 0 || slices[i].max_error() > slices[worst].max_error()))
      worst = static_cast<int64_t>(i);
  return worst;
}

constexpr int64_t kLeastSlice = 8;
constexpr double kUnlike = 100;

}  // namespace

std::optional<HiddenSlice> FindHidden(const Tensor& value, const Tensor& reference) {
  std::optional<HiddenSlice> hidden;
  const Dims& dims = reference.dims();
  if (!IsFloat(value.dtype()) || value.dims() != dims) return hidden;
  const Elements elements(value, reference);
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] < 2 || reference.size() / dims[axis] < kLeastSlice) continue;
    std::vector<Group> slices = Slices(elements, axis);
    double least = kInfinity, most = 0;
    for (const Group& slice : slices)
      if (slice.discriminating() && slice.size() > 0) {
        least = std::min(least, slice.size());
        most = std::max(most, slice.size());
      }
    if (most <= kUnlike * least) continue;
    int64_t worst = Worst(slices);
    // If several dimensions qualify, the one with the largest error is reported.
    if (!hidden || slices[worst].max_error() > hidden->max_error)
      hidden = {static_cast<int64_t>(axis), worst, most / least, slices[worst].max_error(),
                slices[worst].rmse()};
  }
  return hidden;
}

Comparison Compare(const Tensor& value, const Tensor& reference, const Budget& budget) {
  Comparison result;
  result.dims = reference.dims();
  if (value.size() != reference.size() ||
      (value.dims() != reference.dims() && reference.rank() + value.rank() > 1)) {
    result.mismatch = fmt::format("shape [{}], reference has [{}]", fmt::join(value.dims(), ", "),
                                  fmt::join(reference.dims(), ", "));
    result.max_error = result.rmse = kInfinity;
    result.equal_fraction = 0;
    result.resized = true;
    return result;
  }
  int64_t n = reference.size();
  if (n == 0) {
    result.discriminating = false;
    return result;
  }
  if (value.dtype() == DType::kString || reference.dtype() == DType::kString) {
    result.exact = true;
    result.equal_fraction = 0;
    if (value.dtype() != reference.dtype()) {
      result.mismatch =
          fmt::format("type {}, reference has {}", Name(value.dtype()), Name(reference.dtype()));
    } else {
      for (int64_t i = 0; i < n; ++i)
        result.equal_fraction += value.strings()[i] == reference.strings()[i] ? 1 : 0;
      result.equal_fraction /= static_cast<double>(n);
    }
    if (result.equal_fraction < 1) result.max_error = result.rmse = kInfinity;
    return result;
  }
  result.exact = !IsFloat(value.dtype());
  const Elements elements(value, reference);
  Group whole;
  int64_t equal = 0;
  double farthest = 0;  // largest excess over atol + rtol |reference|
  int64_t farthest_index = -1;
  for (int64_t i = 0; i < n; ++i) {
    double r = elements.references[i], difference = elements.Difference(i);
    equal += difference == 0;
    result.infinite += difference == kInfinity;
    whole.Add(i, r, difference);
    if (!budget.elementwise()) continue;
    double allowed =
        budget.atol.value_or(0) + budget.rtol.value_or(0) * (std::isfinite(r) ? std::fabs(r) : 0);
    if (difference <= allowed) continue;
    ++result.beyond;
    if (difference - allowed > farthest || farthest_index < 0) {
      farthest = difference - allowed;
      farthest_index = i;
    }
  }
  result.max_error = whole.max_error();
  result.rmse = whole.rmse();
  result.equal_fraction = static_cast<double>(equal) / static_cast<double>(n);
  result.discriminating = whole.discriminating();
  result.worst_index = farthest_index >= 0 ? farthest_index : whole.worst;
  int64_t rank = reference.rank(),
          axis = budget.per_axis ? *budget.per_axis + (*budget.per_axis < 0 ? rank : 0) : -1;
  if (axis >= 0 && axis < rank && !result.exact && !budget.elementwise()) {
    std::vector<Group> slices = Slices(elements, static_cast<size_t>(axis));
    int64_t worst = Worst(slices);
    result.discriminating = worst >= 0;
    if (worst >= 0) {
      result.max_error = slices[worst].max_error();
      result.worst_index = slices[worst].worst;
      result.rmse = 0;
      for (const Group& slice : slices)
        if (slice.discriminating()) result.rmse = std::max(result.rmse, slice.rmse());
    }
  }
  if (result.worst_index >= 0) {
    result.worst_value = value.Double(result.worst_index);
    result.worst_reference = reference.Double(result.worst_index);
  }
  return result;
}

std::vector<int64_t> Comparison::worst_position() const {
  std::vector<int64_t> position(dims.size());
  int64_t rest = worst_index;
  for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) position[d] = rest % dims[d];
  return position;
}

std::string Describe(const Comparison& c) {
  if (!c.mismatch.empty()) return c.mismatch;
  // Rounds down, so that 100 % means that every element is equal.
  std::string text = c.exact
                         ? fmt::format("{:.2f} % equal", std::floor(c.equal_fraction * 1e4) / 100)
                         : fmt::format("max error {:.2e}, RMSE {:.2e}", c.max_error, c.rmse);
  if (c.beyond > 0) text += fmt::format(", {} elements outside atol and rtol", c.beyond);
  if (c.worst_index >= 0)
    text += fmt::format("; worst at [{}]: {:.6g}, reference {:.6g}",
                        fmt::join(c.worst_position(), ", "), c.worst_value, c.worst_reference);
  return text;
}

std::string Describe(const HiddenSlice& hidden) {
  return fmt::format(
      "slices along axis {} differ in scale by a factor of {:.0f}; relative to its own scale, "
      "slice {} has max error {:.2e}, RMSE {:.2e}; judge each slice with option 'per-axis' {}",
      hidden.axis, hidden.ratio, hidden.slice, hidden.max_error, hidden.rmse, hidden.axis);
}

std::string DescribeFloor(const Budget& budget, const Comparison& comparison) {
  if (!budget.floor || budget.elementwise()) return "";
  const Floor& floor = *budget.floor;
  if (floor.resized) return "floor has a different size";
  auto decides = [](double most, double without) { return most > 0 && most >= without; };
  double unequal = kFloors * floor.unequal, max_error = kFloors * floor.max_error,
         rmse = kFloors * floor.rmse;
  if (comparison.exact)
    return fmt::format("floor {:.2f} % unequal", 100 * floor.unequal) +
           (decides(unequal, budget.unequal)
                ? fmt::format(" (budget {:.2f} %)", 100 * std::min(1.0, unequal))
                : "");
  return fmt::format("floor {:.1e}, RMSE {:.1e}", floor.max_error, floor.rmse) +
         (!decides(max_error, budget.max_error) && !decides(rmse, budget.rmse) ? ""
          : std::isinf(budget.rmse)
              ? fmt::format(" (budget {:.1e})", std::max(max_error, budget.max_error))
              : fmt::format(" (budget {:.1e}, RMSE {:.1e})", std::max(max_error, budget.max_error),
                            std::max(rmse, budget.rmse)));
}

bool Comparison::Within(const Budget& budget) const {
  if (!mismatch.empty()) return false;
  const Budget allowed = budget.Allowed();
  if (exact) return equal_fraction == 1 || 1 - equal_fraction <= allowed.unequal + kShareDigits;
  if (budget.elementwise()) return beyond == 0;
  if (std::isinf(max_error)) return false;
  return max_error <= allowed.max_error && rmse <= allowed.rmse;
}

bool Comparison::Tells(const Budget& budget) const {
  if (!discriminating && infinite == 0) return false;
  Budget base = budget;
  base.floor.reset();
  if (!budget.floor || budget.elementwise() || Within(base)) return true;
  const Floor& floor = *budget.floor;
  if (!mismatch.empty()) return !resized || !floor.resized;
  if (exact) return !floor.resized && kFloors * floor.unequal < 1;
  if (std::isinf(max_error))
    return static_cast<double>(infinite) >
           kFloors * floor.unequal * static_cast<double>(ElementCount(dims));
  return std::isfinite(floor.max_error);
}

}  // namespace mlc::verify
