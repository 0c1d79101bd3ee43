#include "lib/verify/compare.h"

#include <cmath>
#include <fstream>
#include <limits>

#include "lib/support/error.h"
#include "test/backends/coreml/package_files.h"
#include "test/catch.h"

namespace mlc::test {
using namespace verify;
namespace {
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");
Tensor Floats(const std::vector<float>& values) { return Tensor::Vector(values); }
}  // namespace

TEST_CASE("compare: errors are relative to the larger of range and magnitude") {
  // Range 4, largest magnitude 3, one difference of 0.4: 0.1; RMSE sqrt(0.16 / 4) / 4 = 0.05.
  Comparison c = Compare(Floats({-1, 0.4f, 2, 3}), Floats({-1, 0, 2, 3}));
  CHECK(c.max_error == Approx(0.1));
  CHECK(c.rmse == Approx(0.05));
  CHECK(c.worst_index == 1);
  CHECK(c.worst_reference == 0);
  CHECK(c.equal_fraction == 0.75);
  // The range is 1, the magnitude 101.
  CHECK(Compare(Floats({100, 102.01f}), Floats({100, 101})).max_error == Approx(0.01));
  // Tiny references are scaled by 1e-6.
  CHECK(Compare(Floats({0, 2e-9f}), Floats({0, 1e-9f})).max_error == Approx(1e-3));
}

TEST_CASE("compare: infinities and NaNs must match") {
  CHECK(Compare(Floats({1, kInfinity, kNaN}), Floats({1, kInfinity, kNaN})).max_error == 0);
  for (const auto& [value, reference] : {std::pair(1.0f, kNaN),
                                         {kNaN, 1.0f},
                                         {1.0f, kInfinity},
                                         {kInfinity, 1.0f},
                                         {-kInfinity, kInfinity}}) {
    Comparison c = Compare(Floats({2, value}), Floats({2, reference}));
    CHECK(std::isinf(c.max_error));
    CHECK_FALSE(c.Within({1e9, 1e9}));
  }
}

TEST_CASE("compare: integers and booleans are compared for equality") {
  Tensor reference = Tensor::Vector<int32_t>({1, 2, 3, 1000000});
  CHECK(Compare(reference, reference).Within({0, 0}));
  Comparison c = Compare(Tensor::Vector<int32_t>({1, 2, 3, 1000001}), reference);
  CHECK(c.exact);
  CHECK(c.equal_fraction == 0.75);
  CHECK_FALSE(c.Within({1, 1}));
  // Adjacent integers that are equal as doubles.
  CHECK_FALSE(Compare(Tensor::Vector<int64_t>({int64_t{1} << 53}),
                      Tensor::Vector<int64_t>({(int64_t{1} << 53) + 1}))
                  .Within({1, 1}));
}

TEST_CASE("compare: references that do not discriminate") {
  CHECK_FALSE(Compare(Floats({5, 5}), Floats({5, 5})).discriminating);
  CHECK_FALSE(Compare(Floats({kNaN, kNaN}), Floats({kNaN, kNaN})).discriminating);
  CHECK(Compare(Floats({5}), Floats({5})).discriminating);
  CHECK(Compare(Floats({5, 5}), Floats({5, 6})).discriminating);
}

TEST_CASE("compare: shape mismatch") {
  CHECK(Compare(Tensor::Full(DType::kFp32, {2, 3}, 1), Tensor::Full(DType::kFp32, {3, 2}, 1))
            .mismatch == "shape [2, 3], reference has [3, 2]");
  CHECK(Compare(Floats({1}), Tensor::Scalar(1.0f))
            .mismatch.empty());  // Core ML has no outputs of rank 0
  CHECK(Compare(Floats({}), Floats({})).Within({0, 0}));
}

TEST_CASE("compare: a float value against an integer reference") {
  // Truncated to integers, the values would equal the reference 0 and 4.
  Comparison c = Compare(Floats({0.997f, 4}), Tensor::Vector<int32_t>({0, 4}));
  CHECK(c.max_error == Approx(0.997 / 4));
  CHECK_FALSE(c.Within({0.2, 0.2}));
  CHECK(Compare(Floats({0.004f, 4}), Tensor::Vector<int32_t>({0, 4})).Within({0.01, 0.01}));
  // An integer value must equal its reference.
  c = Compare(Tensor::Vector<int32_t>({99, 4}), Floats({100, 4}));
  CHECK(c.exact);
  CHECK_FALSE(c.Within({0.1, 0.1}));
  CHECK_FALSE(Compare(Tensor::Vector<int32_t>({100, 4}), Floats({100.5f, 4})).Within({0.1, 0.1}));
  CHECK(Compare(Tensor::Vector<int32_t>({100, 4}), Floats({100, 4})).Within({0, 0}));
}

TEST_CASE("compare: the worst element has a position") {
  Tensor reference = Tensor::Of<float>({2, 3}, {0, 1, 2, 3, 4, 5}),
         value = Tensor::Of<float>({2, 3}, {0, 1, 2, 3, 4.5f, 5});
  Comparison c = Compare(value, reference);
  CHECK(c.worst_position() == std::vector<int64_t>{1, 1});
  CHECK(Describe(c) == "max error 1.00e-01, RMSE 4.08e-02; worst at [1, 1]: 4.5, reference 4");
  CHECK(Compare(reference, reference).worst_index == -1);
  CHECK(Describe(Compare(Tensor::Vector<int32_t>({1, 2}), Tensor::Vector<int32_t>({1, 3}))) ==
        "50.00 % equal; worst at [1]: 2, reference 3");
  // One mismatch in 100,000 must not print as 100.00 %.
  std::vector<int32_t> many(100000), other(100000);
  other[7] = 1;
  CHECK(Describe(Compare(Tensor::Vector(other), Tensor::Vector(many))) ==
        "99.99 % equal; worst at [7]: 1, reference 0");
}

TEST_CASE("compare: per_axis judges each slice by its own range") {
  // Two boxes and ten scores, as from a detector: [row, box]. One score is half the correct value.
  std::vector<float> rows;
  for (int box = 0; box < 10; ++box) rows.push_back(640.0f - 10 * static_cast<float>(box));
  for (int box = 0; box < 10; ++box) rows.push_back(0.1f * static_cast<float>(box));
  Tensor reference = Tensor::Of<float>({2, 10}, rows);
  rows[19] = 0.45f;
  Tensor value = Tensor::Of<float>({2, 10}, rows);
  CHECK(Compare(value, reference).Within({1e-3, 1e-3}));
  Budget by_rows{1e-2, 1e-2, 0};
  Comparison c = Compare(value, reference, by_rows);
  CHECK(c.max_error == Approx(0.5));
  CHECK(c.rmse == Approx(0.5 / std::sqrt(10)));
  CHECK(c.worst_position() == std::vector<int64_t>{1, 9});
  CHECK_FALSE(c.Within(by_rows));
  CHECK(Compare(reference, reference, by_rows).Within(by_rows));
  // The last dimension, with slices of two elements each; a dimension that does not exist selects
  // the whole tensor.
  CHECK(Compare(value, reference, {1e-2, 1e-2, -1}).max_error == Approx(0.45 / 550));
  CHECK(Compare(value, reference, {1e-2, 1e-2, 2}).max_error == Approx(0.45 / 640));

  std::optional<HiddenSlice> hidden = FindHidden(value, reference);
  REQUIRE(hidden);
  CHECK(hidden->axis == 0);
  CHECK(hidden->slice == 1);
  CHECK(hidden->ratio == Approx(640 / 0.9));
  CHECK(hidden->max_error == Approx(0.5));
  CHECK(Describe(*hidden) ==
        "slices along axis 0 differ in scale by a factor of 711; relative to its own scale, "
        "slice 1 has max error 5.00e-01, RMSE 1.58e-01; judge each slice with option 'per-axis' 0");
  // A ratio of 99 is not reported, 101 is.
  for (auto [largest, unlike] : {std::pair(99.0f, false), {101.0f, true}}) {
    std::vector<float> two(16);
    two[0] = largest;
    two[8] = 1;
    Tensor sized = Tensor::Of<float>({2, 8}, two);
    CHECK(FindHidden(sized, sized).has_value() == unlike);
  }
  // Seven elements per slice are too few.
  std::vector<float> small(14);
  small[0] = 1000, small[7] = 1;
  Tensor few = Tensor::Of<float>({2, 7}, small);
  CHECK_FALSE(FindHidden(few, few));
}

TEST_CASE("compare: constant slices do not discriminate") {
  Budget by_rows{1e-2, 1e-2, 0};
  Tensor reference = Tensor::Of<float>({2, 2}, {0, 0, 1, 2}),
         value = Tensor::Of<float>({2, 2}, {1e-4f, 0, 1, 2});
  CHECK(Compare(value, reference, by_rows).Within(by_rows));
  Tensor constant = Tensor::Of<float>({2, 2}, {1, 1, 2, 2});
  CHECK(Compare(constant, constant).discriminating);
  CHECK_FALSE(Compare(constant, constant, by_rows).discriminating);
}

TEST_CASE("compare: atol and rtol apply to each element") {
  Tensor reference = Floats({0, 10, 1000}), value = Floats({0.01f, 10.2f, 1000});
  Budget budget;
  budget.atol = 0.02, budget.rtol = 0.02;
  CHECK(Compare(value, reference, budget).Within(budget));
  budget.atol = 0.001;  // 0.01 is too far from 0
  Comparison c = Compare(value, reference, budget);
  CHECK(c.beyond == 1);
  CHECK(c.worst_index == 0);
  CHECK_FALSE(c.Within(budget));
  budget = {.rtol = 0.03};
  CHECK(Compare(Floats({1, 1.02f}), Floats({1, 1}), budget).Within(budget));
  CHECK_FALSE(Compare(Floats({1, 1.04f}), Floats({1, 1}), budget).Within(budget));
  CHECK_FALSE(Compare(Floats({1, kNaN}), Floats({1, 2}), budget).Within(budget));
  CHECK_FALSE(Compare(Floats({1, 2}), Floats({1, kInfinity}), budget).Within(budget));
  // Integers must be equal.
  CHECK_FALSE(Compare(Tensor::Vector<int32_t>({100, 7}), Tensor::Vector<int32_t>({101, 7}), budget)
                  .Within(budget));
}

TEST_CASE("compare: parsing budgets") {
  CHECK(ParseBudgets("fp16").all.max_error == 1e-2);
  CHECK(ParseBudgets("int8").all.max_error == 5e-2);
  for (const char* by_error : {"fp16", "int8"}) {
    const Budgets budgets = ParseBudgets(by_error);
    CHECK(std::isinf(budgets.all.rmse));
    CHECK(std::isinf(BudgetsFromJson(ToJson(budgets), "test").all.rmse));
  }
  ScratchFolder folder;
  std::ofstream(folder / "b.json") << R"({"max_error": 0.25, "rmse": 0.5})";
  CHECK(ParseBudgets((folder / "b.json").string()).all.max_error == 0.25);
  std::ofstream(folder / "c.json") << R"({"max_error": 0.25})";
  CHECK_THROWS_WITH(ParseBudgets((folder / "c.json").string()), ContainsSubstring("rmse"));
  CHECK_THROWS_WITH(ParseBudgets("fp23"), ContainsSubstring("fp23"));
}

TEST_CASE("compare: budgets of single outputs") {
  Budgets budgets = BudgetsFromJson(
      R"({"base": "fp16", "rmse": 0.5, "outputs": {"boxes": {"per_axis": -1}, "id": {"base": "fp32"},
          "scores": {"atol": 0.01}}})",
      "b.json");
  CHECK(budgets.of("any").max_error == 1e-2);
  CHECK(budgets.of("any").rmse == 0.5);
  CHECK_FALSE(budgets.of("any").per_axis);
  CHECK(budgets.of("boxes").per_axis == -1);
  CHECK(budgets.of("boxes").rmse == 0.5);
  CHECK(budgets.of("id").rmse == 1e-4);
  CHECK(budgets.of("scores").atol == 0.01);
  Budgets again = BudgetsFromJson(ToJson(budgets), "again");
  CHECK(ToJson(again) == ToJson(budgets));
  CHECK(again.of("boxes").per_axis == -1);
  CHECK(BudgetsFromJson(R"({"rtol": 0.5})", "b").all.rtol == 0.5);
  for (const auto& [text, said] :
       {std::pair("[]", "not an object"),
        {R"({"max_error": -1, "rmse": 1})", "at least 0"},
        {R"({"max_error": "1", "rmse": 1})", "\"max_error\" is \"1\""},
        {R"({"base": "fp23"})", "fp23"},
        {R"({"base": "fp16", "per_axis": 1.5})", "index of a dimension"},
        {R"({"base": "fp16", "maxerror": 1})", "unknown field \"maxerror\""},
        {R"({"base": "fp16", "outputs": [1]})", "\"outputs\" is not an object"},
        {R"({"base": "fp16", "outputs": {"y": {"outputs": {}}}})", "unknown field"},
        {"{", "budget"}})
    CHECK_THROWS_WITH(BudgetsFromJson(text, "b.json"),
                      ContainsSubstring(said) && ContainsSubstring("b.json"));
}

}  // namespace mlc::test
