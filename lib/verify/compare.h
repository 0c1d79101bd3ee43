// lib/verify/compare.h - how far two tensors are apart, and whether that is within a budget.
//
// Error of an output = max |difference| / max(ptp(reference), max |reference|, 1e-6); RMSE over the
// same denominator. A NaN or infinity on one side only (or of different sign) is an infinite error.
// Integers, booleans and texts must all be equal, unless the budget lets a share of them differ;
// where only one side is of floats, both are numbers, and an integer value must equal its
// reference. A reference with more than one element and fewer than two distinct values, or with
// none, discriminates nothing: it is reported so and counts for nothing, unless the value is NaN or
// infinite where it is not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

// The definition above in one line, for reports and help.
inline constexpr std::string_view kErrorFigure =
    "max |difference| / max(range, max |value| of the reference, 1e-6)";

// What fp16 constants alone cost an output (floor.h), by the same figures.
struct Floor {
  double max_error = 0, rmse = 0;  // infinity possible
  // Share of unequal integers, booleans or texts; of floats, of those NaN or infinite on one side.
  double unequal = 0;
  bool resized = false;  // the output has another size: its size depends on data

  bool operator==(const Floor&) const = default;
};
// An infinite figure is "inf". Error "bad-file", or what the JSON library throws.
std::string ToJson(const Floor& floor);
Floor FloorFromJson(std::string_view json);
// A budget with a floor allows what it allows without, or so many times the floor.
inline constexpr double kFloors = 1.5;
// Likewise, of the error that is stated: other inputs make other errors.
inline constexpr double kStated = 1.5;

// What is allowed of one output.
struct Budget {
  double max_error = 1e-3;
  double rmse = 1e-4;
  // Each slice of this dimension is judged by its own size, a constant one not at all; -1 is the
  // last dimension. Outputs that do not have it are judged as a whole.
  std::optional<int64_t> per_axis;
  // When one of them is set, floats are judged by |difference| <= atol + rtol |reference|, element
  // by element, instead of by max_error and rmse.
  std::optional<double> atol, rtol;
  double unequal = 0;          // share of integers, booleans or texts that may differ
  std::optional<Floor> floor;  // not looked at where elements are judged one by one
  // The error, or the share of unequal elements, that the package's manifest states where it exceeds
  // its budget; so many times as much is allowed, and the report says so.
  std::optional<double> stated;

  bool elementwise() const { return atol || rtol; }
  // Of the output, the floor and what is stated considered.
  Budget Allowed() const;
};

// What is allowed of each output, by its name in the source.
struct Budgets {
  std::string name;  // "fp16", or the file
  Budget all;
  std::map<std::string, Budget> outputs;  // those with a budget of their own

  const Budget& of(const std::string& output) const;
};
// "fp32", "fp16", "int8", or a JSON file as BudgetsFromJson reads it. Error "bad-name" or
// "bad-file".
Budgets ParseBudgets(std::string_view name_or_file);
// {"base": "fp16", "max_error": .., "rmse": .., "unequal": .., "per_axis": .., "atol": ..,
//  "rtol": .., "floor": {"max_error": .., "rmse": .., "unequal": .., "resized": ..},
//  "outputs": {NAME: {..}}}. `base` is fp32, fp16 or int8; without it, and without atol and rtol,
// max_error and rmse are required. An output has what is said of all, but for its own fields. Error
// "bad-file" names the field, and `where`.
Budgets BudgetsFromJson(std::string_view json, std::string_view where);
std::string ToJson(const Budgets& budgets);  // which BudgetsFromJson reads
// "max error 0.01, RMSE 0.001, by slices of axis 1"
std::string Describe(const Budget& budget);

struct Comparison {
  double max_error = 0;  // relative, as above; infinity possible; of the worst slice under per_axis
  double rmse = 0;
  double equal_fraction = 1;
  bool exact = false;  // compared for equality (integer or bool values, texts)
  bool discriminating = true;
  Dims dims;                 // of the reference
  int64_t worst_index = -1;  // flat index of the element with the largest error; -1: all are equal
  double worst_value = 0, worst_reference = 0;
  int64_t beyond = 0;    // elements outside atol + rtol |reference|
  int64_t infinite = 0;  // floats that are NaN or infinite on one side only
  std::string mismatch;  // shape or kind that cannot be compared; empty otherwise
  bool resized = false;  // the mismatch is one of sizes

  // An infinite error counts as outside whatever the budget.
  bool Within(const Budget& budget) const;
  // Whether Within() says anything. It does not where the reference discriminates nothing; nor,
  // outside the budget without its floor, where the floor lets everything pass: it is infinite, has
  // another size, or makes all elements unequal. A value of another size tells where the floor has
  // the reference's, and one that is NaN or infinite in more than kFloors times as many places.
  bool Tells(const Budget& budget) const;
  std::vector<int64_t> worst_position() const;  // worst_index by dimension
};

// `budget` says how elements are judged; Within() with another that differs in limits alone is
// right.
Comparison Compare(const Tensor& value, const Tensor& reference, const Budget& budget = {});
// "max error 1.2e-04, RMSE 3e-05; worst at [0, 3]: 1.25, reference 1.26", "99.50 % equal; ...", or
// what cannot be compared.
std::string Describe(const Comparison& comparison);
// The budget's floor, and what it allows where that is more than the budget does without: "floor
// 1.5e-02, RMSE 2.0e-03 (budget 2.3e-02, RMSE 3.0e-03)". Empty without a floor.
std::string DescribeFloor(const Budget& budget, const Comparison& comparison);

// A dimension whose slices have sizes so unlike, more than 100 times, that the figure of the whole
// hides the small ones; and of its slices the one with the largest error of its own size.
struct HiddenSlice {
  int64_t axis = 0, slice = 0;
  double ratio = 1;  // of the largest slice's size to the smallest's
  double max_error = 0, rmse = 0;
};
// Of two tensors that Compare can compare. Nothing for integers, and where slices have fewer than
// eight elements: those are unlike by chance.
std::optional<HiddenSlice> FindHidden(const Tensor& value, const Tensor& reference);
std::string Describe(const HiddenSlice& hidden);  // a sentence

}  // namespace mlc
