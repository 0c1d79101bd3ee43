#include "test/catch.h"
#include "test/lib/ops/evaluate.h"

using namespace mlc;
using namespace mlc::test;

namespace {
constexpr int64_t kBig = (int64_t{1} << 53) + 1, kMost = std::numeric_limits<int64_t>::max(),
                  kLeast = std::numeric_limits<int64_t>::min();

std::vector<int64_t> OnInts(const char* op, const std::vector<int64_t>& x,
                            const std::vector<int64_t>& y) {
  Dims dims{static_cast<int64_t>(x.size())};
  return Evaluate(op, {{"x", I64(dims, x)}, {"y", I64(dims, y)}}).Ints();
}
}  // namespace

TEST_CASE("elementwise_binary: floats") {
  const std::vector<double> x = {7, -7, 7, -7, 0, 5.5, -5.5, 1, -1, 1, kNaN, kInf};
  const std::vector<double> y = {3, 3, -3, -3, 5, 2, 2, kInf, kInf, 0, 1, 2};
  struct Case {
    const char* op;
    std::vector<double> expected;  // numpy 1.24, float64
  };
  const std::vector<Case> cases = {
      {"floor_div", {2, -3, -3, 2, 0, 2, -3, 0, -1, kInf, kNaN, kNaN}},
      {"maximum", {7, 3, 7, -3, 5, 5.5, 2, kInf, kInf, 1, kNaN, kInf}},
      {"minimum", {3, -7, -3, -7, 0, 2, -5.5, 1, -1, 0, kNaN, 2}},
      {"mod", {1, 2, -2, -1, 0, 1.5, 0.5, 1, kInf, kNaN, kNaN, kNaN}},
      {"pow",
       {343, -343, 0.0029154518950437317, -0.0029154518950437317, 0, 30.25, 30.25, 1, 1, 1, kNaN,
        kInf}},
      {"real_div",
       {2.3333333333333335, -2.3333333333333335, -2.3333333333333335, 2.3333333333333335, 0, 2.75,
        -2.75, 0, -0, kInf, kNaN, kInf}},
  };
  for (const Case& each : cases) {
    INFO(each.op);
    CHECK(Near(Evaluate(each.op, {{"x", F64({12}, x)}, {"y", F64({12}, y)}}).Doubles(),
               each.expected, 1e-15));
  }
  // The quotient 1 / 0.1 rounds up to 10; numpy 1.24: np.floor_divide(1.0, 0.1) is 9.0.
  CHECK(Evaluate("floor_div", {{"x", F64({}, {1.0})}, {"y", F64({}, {0.1})}}).Double(0) == 9);
}

TEST_CASE("elementwise_binary: NaN on the right, and in comparisons") {
  Tensor x = F32({3}, {1, NAN, 2}), y = F32({3}, {NAN, NAN, 2});
  CHECK(Near(Evaluate("maximum", {{"x", x}, {"y", y}}).Doubles(), {kNaN, kNaN, 2}, 0));
  CHECK(Near(Evaluate("minimum", {{"x", x}, {"y", y}}).Doubles(), {kNaN, kNaN, 2}, 0));
  CHECK(Evaluate("equal", {{"x", x}, {"y", y}}).Ints() == Ints64{0, 0, 1});
  CHECK(Evaluate("not_equal", {{"x", x}, {"y", y}}).Ints() == Ints64{1, 1, 0});
  CHECK(Evaluate("less", {{"x", x}, {"y", y}}).Ints() == Ints64{0, 0, 0});
  CHECK(Evaluate("greater_equal", {{"x", x}, {"y", y}}).Ints() == Ints64{0, 0, 1});
}

TEST_CASE("elementwise_binary: int64 is exact and wraps") {
  CHECK(OnInts("add", {kBig, kMost}, {1, 1}) == Ints64{kBig + 1, kLeast});
  CHECK(OnInts("sub", {kBig, kLeast}, {2, 1}) == Ints64{kBig - 2, kMost});
  CHECK(OnInts("mul", {kBig, kMost}, {3, 2}) == Ints64{3 * kBig, -2});
  CHECK(OnInts("maximum", {kBig}, {kBig - 1}) == Ints64{kBig});
  CHECK(OnInts("greater", {kBig}, {kBig - 1}) == Ints64{1});
  CHECK(OnInts("equal", {kBig}, {kBig - 1}) == Ints64{0});
  CHECK(OnInts("floor_div", {kBig, kLeast}, {2, -1}) == Ints64{kBig / 2, kLeast});
  CHECK(OnInts("pow", {3, -1, 2, 2, 10}, {33, -3, -1, 64, 0}) ==
        Ints64{5559060566555523, -1, 0, 0, 1});
}

TEST_CASE("elementwise_binary: int32 agrees with NumPy 1.24") {
  const std::vector<int32_t> a = {7, -7, 7, -7, 0, std::numeric_limits<int32_t>::min()},
                             b = {3, 3, -3, -3, 5, -1};
  std::vector<In> in = {{"x", I32({6}, a)}, {"y", I32({6}, b)}};
  CHECK(Evaluate("floor_div", in).Ints() == Ints64{2, -3, -3, 2, 0, -2147483648});
  CHECK(Evaluate("mod", in).Ints() == Ints64{1, 2, -2, -1, 0, 0});
  CHECK(Evaluate("add", in).Ints() == Ints64{10, -4, 4, -10, 5, 2147483647});
  CHECK(Evaluate("sub", in).Ints() == Ints64{4, -10, 10, -4, -5, -2147483647});
  CHECK(Evaluate("mul", in).Ints() == Ints64{21, -21, -21, 21, 0, -2147483648});
  // ONNX Div: integers truncate
  CHECK(Evaluate("real_div", in).Ints() == Ints64{2, -2, -2, 2, 0, -2147483648});
}

TEST_CASE("elementwise_binary: a zero divisor of integers gives zero") {
  for (const char* op : {"real_div", "floor_div", "mod"}) CHECK(OnInts(op, {5}, {0}) == Ints64{0});
}

TEST_CASE("elementwise_binary: other types") {
  CHECK(Near(Evaluate("mul", {{"x", F16({3}, {0.1, 65504, 3e-8})}, {"y", F16({}, {2})}}).Doubles(),
             {0.199951171875, kInf, 1.1920928955078125e-07}, 0));  // numpy 1.24
  Tensor a = Tensor::Vector<uint64_t>({~uint64_t{0}, 7}), b = Tensor::Vector<uint64_t>({2, 0});
  CHECK(Evaluate("floor_div", {{"x", a}, {"y", b}}).data<uint64_t>()[0] == ~uint64_t{0} / 2);
  CHECK(Evaluate("greater", {{"x", a}, {"y", b}}).Ints() == Ints64{1, 1});
  Tensor t = Tensor::Vector<bool>({true, true, false, false}),
         u = Tensor::Vector<bool>({true, false, true, false});
  CHECK(Evaluate("logical_and", {{"x", t}, {"y", u}}).Ints() == Ints64{1, 0, 0, 0});
  CHECK(Evaluate("logical_or", {{"x", t}, {"y", u}}).Ints() == Ints64{1, 1, 1, 0});
  CHECK(Evaluate("logical_xor", {{"x", t}, {"y", u}}).Ints() == Ints64{0, 1, 1, 0});
}

TEST_CASE("elementwise_binary: broadcasting") {
  Tensor column = I32({2, 1}, {10, 20}), row = I32({3}, {1, 2, 3});
  CHECK(Evaluate("add", {{"x", column}, {"y", row}}).Ints() == Ints64{11, 12, 13, 21, 22, 23});
  CHECK(Evaluate("sub", {{"x", I32({}, {1})}, {"y", row}}).Ints() == Ints64{0, -1, -2});
  CHECK(Evaluate("add", {{"x", I32({0, 1}, {})}, {"y", row}}).dims() == Dims{0, 3});
  CHECK(Evaluate("add", {{"x", I32({}, {1})}, {"y", I32({}, {2})}}).dims() == Dims{});
  CHECK_THROWS_WITH(Evaluate("add", {{"x", row}, {"y", I32({2}, {1, 2})}}),
                    ContainsSubstring("do not broadcast"));
  CHECK_THROWS_WITH(Evaluate("add", {{"x", row}, {"y", F32({3}, {1, 2, 3})}}),
                    ContainsSubstring("the same element type"));
}

TEST_CASE("elementwise_binary: symbolic shapes") {
  Dim n = Dim::Symbol("n"), m = Dim::Symbol("m");
  auto shape = [](Shape a, Shape b) {
    return Infer("add",
                 {{"x", Type::Tensor(DType::kFp32, a)}, {"y", Type::Tensor(DType::kFp32, b)}})
        .results[0]
        .shape;
  };
  CHECK(shape({n, 1}, {1, m}) == Shape{n, m});
  CHECK(shape({n, 4}, {n, 1}) == Shape{n, 4});
  CHECK(shape({n}, {8}) == Shape{8});  // n is 1 or 8
  CHECK(shape({n}, {m}) == Shape{Max(n, m)});
  CHECK(shape({2, n}, {}) == Shape{2, n});
}

TEST_CASE("elementwise_binary: sizes are propagated") {
  Dim n = Dim::Symbol("n");
  auto elements = [&](const char* op, std::vector<Dim> x, Tensor y, DType dtype = DType::kInt32) {
    const std::vector<In> in = {{"x", Type::Tensor(dtype, {static_cast<int64_t>(x.size())}), x},
                                {"y", y}};
    return Infer(op, in).dims[0];
  };
  CHECK(elements("mul", {n, 3}, I32({}, {2})) == std::vector<Dim>{n * 2, 6});
  CHECK(elements("add", {n, 3}, I32({2}, {1, 2})) == std::vector<Dim>{n + 1, 5});
  CHECK(elements("floor_div", {n * 4}, I32({1}, {2})) == std::vector<Dim>{n * 2});
  CHECK(elements("mod", {n * 4}, I32({1}, {2})) == std::vector<Dim>{0});
  CHECK(elements("real_div", {n}, I32({1}, {2})) == std::vector<Dim>{FloorDiv(n, 2)});
  CHECK(elements("maximum", {n, 0}, I32({1}, {1})) == std::vector<Dim>{n, 1});
  CHECK(elements("minimum", {n, 0}, I32({1}, {1})) == std::vector<Dim>{1, 0});
  CHECK(elements("mul", {n}, F32({1}, {2}), DType::kFp32) == std::vector<Dim>{n * 2});
  CHECK(!elements("mul", {n}, F32({1}, {0.5}), DType::kFp32));
  CHECK(!elements("real_div", {n}, F32({1}, {2}), DType::kFp32));
  CHECK(!elements("floor_div", {n}, I32({1}, {0})));
  CHECK(!elements("floor_div", {n}, I32({1}, {-2})));
  CHECK(!elements("add", {n}, I64({1}, {kMost}), DType::kInt64));
}
