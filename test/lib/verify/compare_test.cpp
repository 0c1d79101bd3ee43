#include "lib/verify/compare.h"

#include <cmath>
#include <fstream>
#include <limits>

#include "lib/support/error.h"
#include "test/backends/coreml/package_files.h"
#include "test/catch.h"

namespace mlc::test {
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
  // All near 100: the range is 1, the magnitude 101.
  CHECK(Compare(Floats({100, 102.01f}), Floats({100, 101})).max_error == Approx(0.01));
  // Tiny references are measured against 1e-6.
  CHECK(Compare(Floats({0, 2e-9f}), Floats({0, 1e-9f})).max_error == Approx(1e-3));
}

TEST_CASE("compare: infinities and NaNs must be the same") {
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

TEST_CASE("compare: integers and booleans are equal or not") {
  Tensor reference = Tensor::Vector<int32_t>({1, 2, 3, 1000000});
  CHECK(Compare(reference, reference).Within({0, 0}));
  Comparison c = Compare(Tensor::Vector<int32_t>({1, 2, 3, 1000001}), reference);
  CHECK(c.exact);
  CHECK(c.equal_fraction == 0.75);
  CHECK_FALSE(c.Within({1, 1}));
  // Neighbours that no double tells apart.
  CHECK_FALSE(Compare(Tensor::Vector<int64_t>({int64_t{1} << 53}),
                      Tensor::Vector<int64_t>({(int64_t{1} << 53) + 1}))
                  .Within({1, 1}));
}

TEST_CASE("compare: what discriminates nothing") {
  CHECK_FALSE(Compare(Floats({5, 5}), Floats({5, 5})).discriminating);
  CHECK_FALSE(Compare(Floats({kNaN, kNaN}), Floats({kNaN, kNaN})).discriminating);
  CHECK(Compare(Floats({5}), Floats({5})).discriminating);
  CHECK(Compare(Floats({5, 5}), Floats({5, 6})).discriminating);
}

TEST_CASE("compare: shapes") {
  CHECK(Compare(Tensor::Full(DType::kFp32, {2, 3}, 1), Tensor::Full(DType::kFp32, {3, 2}, 1))
            .mismatch == "shape [2, 3] where the reference has [3, 2]");
  CHECK(Compare(Floats({1}), Tensor::Scalar(1.0f))
            .mismatch.empty());  // Core ML has no outputs of rank 0
  CHECK(Compare(Floats({}), Floats({})).Within({0, 0}));
}

TEST_CASE("compare: budgets") {
  CHECK(ParseBudget("fp16").max_error == 1e-2);
  CHECK(ParseBudget("int8").rmse == 5e-3);
  ScratchFolder folder;
  std::ofstream(folder / "b.json") << R"({"max_error": 0.25, "rmse": 0.5})";
  CHECK(ParseBudget((folder / "b.json").string()).max_error == 0.25);
  std::ofstream(folder / "c.json") << R"({"max_error": 0.25})";
  CHECK_THROWS_WITH(ParseBudget((folder / "c.json").string()), ContainsSubstring("rmse"));
  CHECK_THROWS_WITH(ParseBudget("fp23"), ContainsSubstring("fp23"));
}

}  // namespace mlc::test
