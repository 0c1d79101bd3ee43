// The lowerings of lib/lower, compared with C++ or hand calculations.
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "lib/lower/bits.h"
#include "lib/lower/convert.h"
#include "lib/lower/einsum.h"
#include "lib/lower/gaussian_elimination.h"
#include "lib/lower/indices.h"
#include "lib/lower/matrix_products.h"
#include "lib/lower/scatter.h"
#include "lib/lower/signal.h"
#include "lib/lower/sort.h"
#include "test/lib/lower/run_lowered.h"

namespace mlc::test {
using namespace lower;
namespace {

using Values = std::vector<Value*>;
using Doubles = std::vector<double>;

TEST_CASE("lower: bitwise operators on int32 and uint8 agree with C++") {
  std::vector<int32_t> x = {0, 1, -1, 12345, INT32_MIN, INT32_MAX}, y = {7, -2, 5, -54321, -1, 1};
  auto made = Lowered({I32({6}, x), I32({6}, y)}, [](Builder& b, const Values& in) {
    return Values{BitsAnd(b, in[0], in[1], DType::kInt32), BitsOr(b, in[0], in[1], DType::kInt32),
                  BitsXor(b, in[0], in[1], DType::kInt32)};
  });
  for (size_t i = 0; i < x.size(); ++i) {
    CHECK(made[0].Int(i) == (x[i] & y[i]));
    CHECK(made[1].Int(i) == (x[i] | y[i]));
    CHECK(made[2].Int(i) == (x[i] ^ y[i]));
  }
  auto shifted = Lowered({I32({4}, {255, 129, 3, 200}), I32({4}, {1, 8, 0, 3})},
                         [](Builder& b, const Values& in) {
                           return Values{BitsShifted(b, in[0], in[1], true, DType::kUint8),
                                         BitsShifted(b, in[0], in[1], false, DType::kUint8)};
                         });
  CHECK(shifted[0].Ints() == std::vector<int64_t>{254, 0, 3, 64});
  CHECK(shifted[1].Ints() == std::vector<int64_t>{127, 0, 3, 25});
}

TEST_CASE("lower: left shifts of int32 at run time are rejected") {
  CHECK(RefusalId([] {
          Lowered({I32({1}, {1}), I32({1}, {1})}, [](Builder& b, const Values& in) {
            return Values{BitsShifted(b, in[0], in[1], true, DType::kInt32)};
          });
        }) == "unsupported-dtype");
}

TEST_CASE("lower: bit cast between fp32 and int32") {
  std::vector<float> x = {
      0, -0.0f, 1, -2.5f, 1e-40f, 3.4e38f, 1.17549435e-38f, std::numeric_limits<float>::infinity()};
  std::vector<int32_t> bits;
  for (float value : x) bits.push_back(std::bit_cast<int32_t>(value));
  auto made = Lowered({F32({2, 4}, x), I32({8}, bits)}, [](Builder& b, const Values& in) {
    return Values{BitCast(b, in[0], DType::kFp32, DType::kInt32),
                  BitCast(b, in[1], DType::kInt32, DType::kFp32)};
  });
  CHECK(made[0].dims() == Dims{2, 4});
  for (size_t i = 0; i < x.size(); ++i) {
    CHECK(made[0].Int(i) == bits[i]);
    CHECK(std::bit_cast<int32_t>(static_cast<float>(made[1].Double(i))) == bits[i]);
  }
}

TEST_CASE("lower: integers wrap, floats truncate, bfloat16 rounds or truncates") {
  auto made =
      Lowered({I32({4}, {-129, 127, 128, 300}), F32({2}, {1.0039064f, -1.9999999f})},
              [](Builder& b, const Values& in) {
                return Values{Wrap(b, in[0], DType::kInt8), Wrap(b, in[0], DType::kUint8),
                              Convert(b, in[1], DType::kFp32, DType::kInt64),
                              Convert(b, in[1], DType::kFp32, DType::kBf16), CutToBf16(b, in[1])};
              });
  CHECK(made[0].Ints() == std::vector<int64_t>{127, 127, -128, 44});
  CHECK(made[1].Ints() == std::vector<int64_t>{127, 127, 128, 44});
  CHECK(made[2].Ints() == std::vector<int64_t>{1, -1});
  // 8 significant bits: steps of 2^-7 from 1 on.
  CHECK(made[3].Doubles() == Doubles{1.0078125, -2});
  CHECK(made[4].Doubles() == Doubles{1, -1.9921875});
}

TEST_CASE("lower: negative indices are normalised, lower ones stay negative") {
  auto made =
      Lowered({F32({2, 5}, std::vector<float>(10)), I32({4}, {-1, -5, 3, -6})},
              [](Builder& b, const Values& in) { return Values{FromFront(b, in[1], in[0], 1)}; });
  CHECK(made[0].Ints() == std::vector<int64_t>{4, 0, 3, -1});
  CHECK(RefusalId([] {
          Lowered({F32({2, 5}, std::vector<float>(10)), I32({1, 3}, {0, 0, 0})},
                  [](Builder& b, const Values& in) {
                    return Values{VectorsFromFront(b, in[1], in[0], 0)};
                  });
        }) == "bad-operand");
}

TEST_CASE("lower: scatter with indices smaller than the data beside the axis") {
  // Rows 0 and 1 of three; column indices count from the end.
  auto made =
      Lowered({F32({3, 3}, std::vector<float>(9, 1)), I32({2, 1}, {-1, 0}), F32({2, 1}, {5, 7})},
              [](Builder& b, const Values& in) {
                return Values{ScatterAlongAxis(b, {in[0], in[1], in[2], "add"}, 1)};
              });
  CHECK(made[0].Doubles() == Doubles{1, 1, 6, 8, 1, 1, 1, 1, 1});
  auto vectors = Lowered({F32({2, 2}, {0, 0, 0, 0}), I32({1, 2}, {-1, 0}), F32({1}, {3})},
                         [](Builder& b, const Values& in) {
                           return Values{ScatterVectors(b, {in[0], in[1], in[2], "update"})};
                         });
  CHECK(vectors[0].Doubles() == Doubles{0, 0, 3, 0});
}

TEST_CASE("lower: five-dimensional data is scattered by flat indices") {
  auto made = Lowered({F32({1, 2, 1, 2, 2}, std::vector<float>(8)), I32({1, 1, 1, 2, 1}, {1, 0}),
                       F32({1, 1, 1, 2, 1}, {5, 7})},
                      [](Builder& b, const Values& in) {
                        return Values{ScatterAlongAxis(b, {in[0], in[1], in[2], "update"}, 1)};
                      });
  CHECK(made[0].Doubles() == Doubles{0, 0, 7, 0, 5, 0, 0, 0});
}

TEST_CASE("lower: determinants and inverses with row exchanges") {
  // det [[0, 2], [3, 4]] = -6; a singular matrix; for three rows 2 (1 - 6) + 1 (2 - 0) = -8.
  auto made =
      Lowered({F32({2, 2, 2}, {0, 2, 3, 4, 1, 2, 2, 4}), F32({3, 3}, {2, 0, 1, 1, 1, 3, 0, 2, 1})},
              [](Builder& b, const Values& in) {
                return Values{Determinant(b, in[0]), Determinant(b, in[1]), Inverse(b, in[1])};
              });
  CheckNear(made[0], {-6, 0});
  CHECK(made[1].dims().empty());
  CheckNear(made[1], {-8});
  // The adjugate divided by the determinant, -8.
  CheckNear(made[2],
            {5 / 8.0, -2 / 8.0, 1 / 8.0, 1 / 8.0, -2 / 8.0, 5 / 8.0, -2 / 8.0, 4 / 8.0, -2 / 8.0});
  CHECK(RefusalId([] {
          Lowered({F32({2, 3}, std::vector<float>(6))},
                  [](Builder& b, const Values& in) { return Values{Determinant(b, in[0])}; });
        }) == "bad-operand");
}

TEST_CASE("lower: Fourier transform along an inner axis and its inverse") {
  // Two signals of length 4 as columns: an impulse and one period of a cosine.
  Tensor x = F32({4, 2, 1}, {1, 1, 0, 0, 0, -1, 0, 0});
  auto made = Lowered({x}, [&](Builder& b, const Values& in) {
    Value* spectrum = DiscreteTransform(b, in[0], 0, {}, false, false);
    return Values{spectrum, DiscreteTransform(b, spectrum, 0, {}, true, false)};
  });
  CHECK(made[0].dims() == Dims{4, 2, 2});
  CheckNear(made[0], {1, 0, 0, 0, 1, 0, 2, 0, 1, 0, 0, 0, 1, 0, 2, 0});
  CheckNear(made[1], {1, 0, 1, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0});
}

TEST_CASE("lower: short-time Fourier transform") {
  // Frames [1, 2] and [3, 4] times the window [1, 0.5]: sums and differences of 1, 1 and of 3, 2.
  auto made =
      Lowered({F32({1, 4}, {1, 2, 3, 4}), F32({2}, {1, 0.5f})}, [](Builder& b, const Values& in) {
        return Values{ShortTimeTransform(b, in[0], in[1], 2, 2, true)};
      });
  CHECK(made[0].dims() == Dims{1, 2, 2, 2});
  CheckNear(made[0], {2, 0, 0, 0, 5, 0, 1, 0});
}

TEST_CASE("lower: Einstein summation of three tensors, an ellipsis and a diagonal") {
  const Tensor x = F32({2, 2}, {1, 2, 3, 4}), y = F32({2}, {5, 7}),
               z = F32({1, 2, 2}, {1, 0, 2, 1});
  auto made = Lowered({x, y, z}, [](Builder& b, const Values& in) {
    return Values{Einsum(b, "ij,j,kji->i", in), Einsum(b, "...ij->...ji", {in[2]}),
                  Einsum(b, "ii", {in[0]})};
  });
  // By hand: row i is the sum over j of x[i, j] * y[j] * z[0, j, i].
  CheckNear(made[0], {1 * 5 * 1 + 2 * 7 * 2, 3 * 5 * 0 + 4 * 7 * 1});
  CheckNear(made[1], {1, 2, 0, 1});
  CheckNear(made[2], {5});
  CHECK(RefusalId([&] {
          Lowered({x, y},
                  [](Builder& b, const Values& in) { return Values{Einsum(b, "ij,jk->ik", in)}; });
        }) == "bad-attribute");
}

TEST_CASE("lower: windows of constant and run-time size") {
  for (bool periodic : {true, false}) {
    auto made = Lowered({I32({1}, {6})}, [&](Builder& b, const Values& in) {
      return Values{WindowAtRunTime(b, kBlackman, in[0], periodic)};
    });
    Doubles expected;
    for (int i = 0; i < 6; ++i) {
      double x = 2 * std::numbers::pi * i / (periodic ? 6 : 5);
      expected.push_back(0.42 - 0.5 * std::cos(x) + 0.08 * std::cos(2 * x));
    }
    CheckNear(made[0], expected, 1e-6);
    CHECK(WindowOf(kBlackman, 6, periodic).Doubles() == expected);
  }
  CHECK(WindowOf(kHann, 2, false).Doubles() == Doubles{0, 0});
}

TEST_CASE("lower: distinct elements and slices at run time and of constants") {
  Tensor x = F32({5}, {3, 1, 3, 2, 1});
  auto check = [](const std::vector<Tensor>& made, const Doubles& values,
                  const std::vector<int64_t>& first, const std::vector<int64_t>& inverse,
                  const std::vector<int64_t>& counts) {
    CHECK(made[0].Doubles() == values);
    CHECK(made[1].Ints() == first);
    CHECK(made[2].Ints() == inverse);
    CHECK(made[3].Ints() == counts);
  };
  for (bool constant : {false, true}) {
    auto distinct = [&](Tensor t, std::optional<int> along, bool sorted) {
      return Lowered({t}, [&](Builder& b, const Values& in) {
        Distinct d = DistinctSlices(b, constant ? b.Const(t) : in[0], along, sorted);
        return Values{d.values, d.first, d.inverse, d.counts};
      });
    };
    check(distinct(x, {}, true), {1, 2, 3}, {1, 3, 0}, {2, 0, 2, 1, 0}, {2, 1, 2});
    check(distinct(x, {}, false), {3, 1, 2}, {0, 1, 3}, {0, 1, 0, 2, 1}, {2, 2, 1});
    check(distinct(F32({3, 2}, {2, 1, 1, 9, 2, 1}), 0, true), {1, 9, 2, 1}, {1, 0}, {1, 0, 1},
          {1, 2});
  }
}

TEST_CASE("lower: indices of the first k elements for a run-time k") {
  auto made = Lowered({F32({2, 3}, {5, 9, 7, 1, 0, 2}), I32({1}, {2})}, [](Builder& b,
                                                                           const Values& in) {
    return Values{FirstOfOrder(b, in[0], 1, in[1], true), FirstOfOrder(b, in[0], 1, in[1], false)};
  });
  CHECK(made[0].dims() == Dims{2, 2});
  CHECK(made[0].Ints() == std::vector<int64_t>{1, 2, 2, 0});
  CHECK(made[1].Ints() == std::vector<int64_t>{0, 2, 1, 0});
}

TEST_CASE("lower: matrix and vector products agree with NumPy") {
  auto made =
      Lowered({F32({2, 2}, {1, 2, 3, 4}), F32({2}, {5, 6})}, [](Builder& b, const Values& in) {
        return Values{MatrixProduct(b, in[0], in[1]), MatrixProduct(b, in[1], in[0]),
                      MatrixProduct(b, in[1], in[1])};
      });
  CHECK(made[0].Doubles() == Doubles{17, 39});
  CHECK(made[1].Doubles() == Doubles{23, 34});
  CHECK(made[2].dims().empty());
  CHECK(made[2].Double(0) == 61);
}

TEST_CASE("lower: sums of products beyond fp32's integers are exact in int32") {
  constexpr int kTerms = 600;  // 600 * 255 * 255 > 2^24
  std::vector<float> x(kTerms, 255), y(kTerms, 255);
  x[0] = -254;
  y[1] = 1;
  int64_t sum = -254 * 255 + 255 + int64_t{kTerms - 2} * 255 * 255;
  auto made = Lowered({F32({1, kTerms}, x), F32({kTerms, 1}, y), I32({1, 1}, {7})},
                      [](Builder& b, const Values& in) {
                        Factor product = ExactMatrixProduct(b, {in[0], 255}, {in[1], 255});
                        Factor few = ExactMatrixProduct(b, {in[0], 255}, {in[1], 1});
                        CHECK(product.value->type.dtype == DType::kInt32);
                        CHECK(few.value->type.dtype == DType::kFp32);
                        return Values{product.value, PlusInteger(b, product, in[2]).value};
                      });
  CHECK(made[0].Int(0) == sum);
  CHECK(made[1].Int(0) == sum + 7);
  CHECK(Reach(F32({1, 2, 2}, {1, -2, 3, 4}), 1, 2, 2) == 6);
}

}  // namespace
}  // namespace mlc::test
