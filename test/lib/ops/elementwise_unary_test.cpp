#include "test/catch.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

using namespace mlc;
using namespace mlc::test;

TEST_CASE("elementwise_unary: floats") {
  const std::vector<double> x = {-2.5, -1, -0.5, 0, 0.5, 1, 3};
  struct Case {
    const char* op;
    std::vector<double> expected;  // numpy 1.24, erf: scipy 1.10, both in float64
  };
  const std::vector<Case> cases = {
      {"abs", {2.5, 1, 0.5, 0, 0.5, 1, 3}},
      {"acos",
       {kNaN, 3.1415926535897931, 2.0943951023931957, 1.5707963267948966, 1.0471975511965976, 0,
        kNaN}},
      {"asin",
       {kNaN, -1.5707963267948966, -0.52359877559829893, 0, 0.52359877559829893, 1.5707963267948966,
        kNaN}},
      {"atan",
       {-1.1902899496825317, -0.78539816339744828, -0.46364760900080609, 0, 0.46364760900080609,
        0.78539816339744828, 1.2490457723982544}},
      {"atanh", {kNaN, -kInf, -0.54930614433405489, 0, 0.54930614433405489, kInf, kNaN}},
      {"ceil", {-2, -1, -0, 0, 1, 1, 3}},
      {"cos",
       {-0.80114361554693381, 0.54030230586813965, 0.87758256189037254, 1, 0.87758256189037254,
        0.54030230586813965, -0.98999249660044542}},
      {"cosh",
       {6.1322894796636858, 1.5430806348152437, 1.1276259652063807, 1, 1.1276259652063807,
        1.5430806348152437, 10.067661995777764}},
      {"erf",
       {-0.99959304798255499, -0.84270079294971478, -0.52049987781304652, 0, 0.52049987781304652,
        0.84270079294971478, 0.99997790950300136}},
      {"exp",
       {0.0820849986238988, 0.36787944117144239, 0.60653065971263342, 1, 1.6487212707001282,
        2.7182818284590451, 20.085536923187668}},
      {"exp2", {0.17677669529663689, 0.5, 0.70710678118654757, 1, 1.4142135623730951, 2, 8}},
      {"floor", {-3, -1, -1, 0, 0, 1, 3}},
      {"round", {-2, -1, -0, 0, 0, 1, 3}},
      {"sign", {-1, -1, -1, 0, 1, 1, 1}},
      {"sin",
       {-0.59847214410395644, -0.8414709848078965, -0.47942553860420295, 0, 0.47942553860420295,
        0.8414709848078965, 0.14112000805986721}},
      {"sinh",
       {-6.0502044810397875, -1.1752011936438014, -0.52109530549374738, 0, 0.52109530549374738,
        1.1752011936438014, 10.017874927409903}},
      {"sqrt", {kNaN, kNaN, kNaN, 0, 0.70710678118654757, 1, 1.7320508075688772}},
      {"square", {6.25, 1, 0.25, 0, 0.25, 1, 9}},
      {"tan",
       {0.7470222972386602, -1.5574077246549021, -0.54630248984379048, 0, 0.54630248984379048,
        1.5574077246549021, -0.1425465430742778}},
      {"tanh",
       {-0.98661429815143031, -0.76159415595576485, -0.46211715726000974, 0, 0.46211715726000974,
        0.76159415595576485, 0.99505475368673046}},
  };
  for (const Case& each : cases) {
    INFO(each.op);
    CHECK(Near(Evaluate(each.op, {{"x", F64({7}, x)}}).Doubles(), each.expected, 1e-15));
    std::vector<double>
        rounded;  // fp32: the same, rounded once (all elements of x are exact in fp32)
    for (double v : each.expected) rounded.push_back(static_cast<float>(v));
    Tensor narrow = F64({7}, x).Cast(DType::kFp32);
    CHECK(Near(Evaluate(each.op, {{"x", narrow}}).Doubles(), rounded, 1e-7));
  }
}

TEST_CASE("elementwise_unary: epsilon has the dtype of x") {
  // coremltools 9.1 value inference
  CHECK(Near(Evaluate("inverse", {{"x", F32({3}, {0, 1, -4})}}).Doubles(),
             {10000, 0.99989998340606689, -0.25000625848770142}, 1e-7));
  CHECK(Near(Evaluate("log", {{"x", F32({3}, {0, 1, 2.5})}}).Doubles(),
             {-103.2789306640625, 0, 0.9162907600402832}, 1e-7));
  CHECK(Near(Evaluate("log", {{"x", F16({3}, {0, 1, 2.5})}}).Doubles(), {-kInf, 0, 0.91650390625},
             0));
  CHECK(Near(Evaluate("rsqrt", {{"x", F32({3}, {0, 1, 16})}}).Doubles(), {1000000, 1, 0.25}, 1e-7));
  // hand calculation
  CHECK(Evaluate("inverse", {{"x", F32({}, {3})}, {"epsilon", F16({}, {1})}}).Double(0) == 0.25);
}

TEST_CASE("elementwise_unary: integers wrap and stay exact") {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kBig = (int64_t{1} << 53) + 1;
  CHECK(Evaluate("abs", {{"x", I64({3}, {-kBig, 5, kLeast})}}).Ints() ==
        std::vector<int64_t>{kBig, 5, kLeast});
  CHECK(Evaluate("abs", {{"x", I32({1}, {std::numeric_limits<int32_t>::min()})}}).Int(0) ==
        std::numeric_limits<int32_t>::min());
  CHECK(Evaluate("square", {{"x", I32({2}, {-3, 65536})}}).Ints() == std::vector<int64_t>{9, 0});
  CHECK(Evaluate("sign", {{"x", I64({3}, {-kBig, 0, 7})}}).Ints() ==
        std::vector<int64_t>{-1, 0, 1});
  CHECK(Evaluate("exp2", {{"x", I32({3}, {-1, 0, 10})}}).Ints() ==
        std::vector<int64_t>{0, 1, 1024});
  CHECK(Evaluate("clip", {{"x", I64({3}, {-kBig, 3, kBig})},
                          {"alpha", I64({}, {-1})},
                          {"beta", I64({}, {kBig - 1})}})
            .Ints() == std::vector<int64_t>{-1, 3, kBig - 1});
  CHECK(Evaluate("threshold", {{"x", I32({2}, {-3, 5})}, {"alpha", I32({}, {2})}}).Ints() ==
        std::vector<int64_t>{2, 5});
}

TEST_CASE("elementwise_unary: fp16 rounds once and overflows to infinity") {
  // numpy 1.24: np.exp(np.float16([11, 12])), np.square(np.float16([300, 0.1]))
  CHECK(Near(Evaluate("exp", {{"x", F16({2}, {11, 12})}}).Doubles(), {59872, kInf}, 0));
  CHECK(Near(Evaluate("square", {{"x", F16({2}, {300, 0.1})}}).Doubles(), {kInf, 0.00999450683594},
             1e-9));
}

TEST_CASE("elementwise_unary: NaN, infinity, halves") {
  Tensor x = F32({4}, {NAN, INFINITY, -INFINITY, 2.5f});
  CHECK(Near(Evaluate("sign", {{"x", x}}).Doubles(), {kNaN, 1, -1, 1}, 0));
  CHECK(
      Near(Evaluate("clip", {{"x", x}, {"alpha", F32({}, {-1})}, {"beta", F32({}, {2})}}).Doubles(),
           {kNaN, 2, -1, 2}, 0));
  CHECK(Near(Evaluate("round", {{"x", F32({4}, {0.5, 1.5, 2.5, -1.5})}}).Doubles(), {0, 2, 2, -2},
             0));
  CHECK(Near(Evaluate("tanh", {{"x", x}}).Doubles(), {kNaN, 1, -1, 0.98661429815143031}, 1e-7));
}

TEST_CASE("elementwise_unary: rank 0 and empty tensors") {
  CHECK(Evaluate("sqrt", {{"x", F32({}, {9})}}).Double(0) == 3);
  CHECK(Evaluate("exp", {{"x", F32({2, 0}, {})}}).dims() == Dims{2, 0});
}

TEST_CASE("cast: between all kinds of dtypes") {
  // coremltools 9.1 value inference
  Tensor x = F32({3}, {-2.7f, 2.7f, 0});
  CHECK(Evaluate("cast", {{"x", x}, {"dtype", Tensor::String("int32")}}).Ints() ==
        std::vector<int64_t>{-2, 2, 0});
  CHECK(Evaluate("cast", {{"x", x}, {"dtype", Tensor::String("bool")}}).Ints() ==
        std::vector<int64_t>{1, 1, 0});
  // hand calculation
  CHECK(Evaluate("cast",
                 {{"x", I64({1}, {(int64_t{1} << 53) + 1})}, {"dtype", Tensor::String("int64")}})
            .Int(0) == (int64_t{1} << 53) + 1);
  CHECK(Evaluate("cast", {{"x", I32({2}, {300, -1})}, {"dtype", Tensor::String("uint8")}}).Ints() ==
        std::vector<int64_t>{44, 255});
  CHECK(Near(Evaluate("cast", {{"x", F32({2}, {65504, 65520})}, {"dtype", Tensor::String("fp16")}})
                 .Doubles(),
             {65504, kInf}, 0));
  CHECK_THROWS_WITH(Evaluate("cast", {{"x", x}, {"dtype", Tensor::String("int33")}}),
                    ContainsSubstring("int33"));
  CHECK_THROWS_WITH(Evaluate("cast", {{"x", x}, {"dtype", Tensor::String("string")}}),
                    ContainsSubstring("number"));
}

TEST_CASE("cast, floor: sizes stay known") {
  Dim n = Dim::Symbol("n");
  const std::vector<In> in = {{"x", Type::Tensor(DType::kInt32, {2}), {n, 3}},
                              {"dtype", Tensor::String("fp32")}};
  CHECK(Infer("cast", in).dims[0] == std::vector<Dim>{n, 3});
  const std::vector<In> floats = {{"x", Type::Tensor(DType::kFp32, {1}), {n * 2}}};
  CHECK(Infer("floor", floats).dims[0] == std::vector<Dim>{n * 2});
  const std::vector<In> half = {{"x", Type::Tensor(DType::kInt32, {2}), {n, 3}},
                                {"dtype", Tensor::String("fp16")}};
  CHECK(!Infer("cast", half).dims[0]);
}

TEST_CASE("logical_not") {
  CHECK(Evaluate("logical_not", {{"x", Tensor::Vector<bool>({true, false})}}).Ints() ==
        std::vector<int64_t>{0, 1});
}

TEST_CASE("elementwise_unary: log rejects integers") {
  CHECK_THROWS_WITH(Evaluate("log", {{"x", I32({1}, {1})}}),
                    ContainsSubstring("expected a float type"));
}

TEST_CASE("elementwise_unary: range rules are sound", "[traits]") {
  CheckTraits("cast", [](Draw& draw, const Dims&, DType) -> Case {
    return {{"dtype",
             Text(draw.Of<std::string_view>({"fp16", "fp32", "int32", "uint8", "int8", "bool"}))}};
  });
  CheckTraits("clip", [](Draw& draw, const Dims&, DType dtype) -> Case {
    return {{"alpha", draw.Between({}, dtype, -2, 0)}, {"beta", draw.Between({}, dtype, 2, 4)}};
  });
}
