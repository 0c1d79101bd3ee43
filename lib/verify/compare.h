// lib/verify/compare.h - the error of a tensor against its reference, and the budget for that
// error.
//
// The error of an output is max |difference| / max(ptp(reference), max |reference|, 1e-6); the RMSE
// has the same denominator. A NaN or an infinity on one side only, or infinities of different sign,
// give an infinite error. Integers, booleans and strings must be equal, except for the share of
// them that the budget allows to differ. If only one of the two tensors holds floats, both are
// compared as numbers, and an integer must equal its reference. A reference with no elements, or
// with several elements that are all equal, does not discriminate: the comparison is reported but
// does not count, unless the value is NaN or infinite where the reference is finite.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc::verify {

// The definition above in one line, for reports and help texts.
inline constexpr std::string_view kErrorFigure =
    "max |difference| / max(range of the reference, max |reference|, 1e-6)";

// The error that fp16 constants alone cause in an output (fp16_floor.h), in the same
// figures.
struct Floor {
  double max_error = 0, rmse = 0;  // may be infinite
  // For integers, booleans and strings: the share of unequal elements. For floats: the share of
  // elements that are NaN or infinite on one side only.
  double unequal = 0;
  bool resized = false;  // the output has a different, data-dependent size

  bool operator==(const Floor&) const = default;
};
// JSON. An infinite figure is written as "inf". FloorFromJson throws Error "bad-file" or an
// exception of the JSON library.
std::string ToJson(const Floor& floor);
Floor FloorFromJson(std::string_view json);
// A budget with a floor allows the larger of its own limit and this multiple of the floor.
inline constexpr double kFloors = 1.5;
// The margin on the error stated in a manifest, because the error depends on the inputs.
inline constexpr double kStated = 1.5;

// The error that one output may have.
struct Budget {
  double max_error = 1e-3;
  double rmse = 1e-4;
  // Each slice along this dimension is judged relative to its own range, and constant slices are
  // skipped. Negative values count from the last dimension. Outputs without this dimension are
  // judged as a whole.
  std::optional<int64_t> per_axis;
  // If either is set, floats are judged element by element by |difference| <= atol + rtol
  // |reference| instead of by max_error and rmse.
  std::optional<double> atol, rtol;
  double unequal = 0;          // share of integers, booleans or strings that may differ
  std::optional<Floor> floor;  // ignored when elements are judged one by one
  // The error, or the share of unequal elements, that the manifest of the package states because it
  // exceeds the budget. The budget then allows kStated times this value, and the report says so.
  std::optional<double> stated;

  bool elementwise() const { return atol || rtol; }
  // Returns the effective limits, which include the floor and the stated error.
  Budget Allowed() const;
};

// The budgets of all outputs, by their names in the source.
struct Budgets {
  std::string name;  // "fp16", or the path of the file
  Budget all;
  std::map<std::string, Budget> outputs;  // outputs with a budget of their own

  const Budget& of(const std::string& output) const;
};
// Takes "fp32", "fp16", "int8", or the path of a JSON file for BudgetsFromJson. Error "bad-name" or
// "bad-file".
Budgets ParseBudgets(std::string_view name_or_file);
// The format is
// {"base": "fp16", "max_error": .., "rmse": .., "unequal": .., "per_axis": .., "atol": ..,
//  "rtol": .., "floor": {"max_error": .., "rmse": .., "unequal": .., "resized": ..},
//  "outputs": {NAME: {..}}}.
// `base` is fp32, fp16 or int8; without it, and without atol and rtol, max_error and rmse are
// required. The fields of an output override those of the whole. Error "bad-file" names the field
// and `where`.
Budgets BudgetsFromJson(std::string_view json, std::string_view where);
std::string ToJson(const Budgets& budgets);  // the format of BudgetsFromJson
// For example "max error 0.01, RMSE 0.001, by slices of axis 1".
std::string Describe(const Budget& budget);

struct Comparison {
  double max_error = 0;  // relative; may be infinite; with per_axis, of the worst slice
  double rmse = 0;
  double equal_fraction = 1;
  bool exact = false;  // compared for equality (integers, booleans, strings)
  bool discriminating = true;
  Dims dims;                 // dims of the reference
  int64_t worst_index = -1;  // flat index of the largest error; -1 if all are equal
  double worst_value = 0, worst_reference = 0;
  int64_t beyond = 0;    // elements outside atol + rtol |reference|
  int64_t infinite = 0;  // floats that are NaN or infinite on one side only
  std::string mismatch;  // why the tensors cannot be compared (shape or type); empty if they can
  bool resized = false;  // the mismatch is one of sizes

  // An infinite error exceeds every budget.
  bool Within(const Budget& budget) const;
  // Returns false if Within() is meaningless: the reference does not discriminate, or the budget
  // without its floor is exceeded and the floor would let any value pass, because it is infinite,
  // has a different size or makes all elements unequal. Two values are judged in spite of such a
  // floor: one of a different size where the floor has the size of the reference, and one that is
  // NaN or infinite in more than kFloors times as many places as the floor.
  bool Tells(const Budget& budget) const;
  std::vector<int64_t> worst_position() const;  // worst_index as coordinates
};

// `budget` selects how elements are judged. Within() also accepts a budget that differs from it
// only in its limits.
Comparison Compare(const Tensor& value, const Tensor& reference, const Budget& budget = {});
// "max error 1.2e-04, RMSE 3e-05; worst at [0, 3]: 1.25, reference 1.26", "99.50 % equal; ...", or
// the reason why the tensors cannot be compared.
std::string Describe(const Comparison& comparison);
// The floor of the budget, followed by the limits that it raises: "floor 1.5e-02, RMSE 2.0e-03
// (budget 2.3e-02, RMSE 3.0e-03)". Empty without a floor.
std::string DescribeFloor(const Budget& budget, const Comparison& comparison);

// A dimension along which slices differ in range by a factor of more than 100, so that the error of
// the whole tensor hides errors of the small slices. `slice` is the slice with the largest error
// relative to its own range.
struct HiddenSlice {
  int64_t axis = 0, slice = 0;
  double ratio = 1;  // largest range / smallest range
  double max_error = 0, rmse = 0;
};
// `value` and `reference` must be comparable. Returns nothing for integers, and ignores dimensions
// whose slices have fewer than eight elements, because the ranges of those differ by chance.
std::optional<HiddenSlice> FindHidden(const Tensor& value, const Tensor& reference);
std::string Describe(const HiddenSlice& hidden);  // a sentence

}  // namespace mlc::verify
