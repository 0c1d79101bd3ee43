#include "lib/verify/fp16_floor.h"

#include <cmath>
#include <limits>

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
using namespace verify;
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");
using Numbers = std::vector<double>;

Program Parse(const std::string& text) { return ParseText(text, "test.mil", Ops()); }

// Returns the constant operand `param` of the operation that computes `name`.
Tensor Taken(const Program& program, const std::string& name, std::string_view param) {
  Tensor taken;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (!op->results.empty() && op->result()->name == name) taken = op->constant(param);
    });
  return taken;
}

std::vector<StepResults> Step(const std::vector<float>& y) {
  return {{{{"y", Tensor::Vector(y)}}, {}}};
}

// Judges an output with this reference and this floor, under the fp16 budget.
Compared Judged(const std::vector<StepResults>& value, const std::vector<StepResults>& reference,
                const std::vector<StepResults>& rounded) {
  return CompareSteps("main", value, reference, Match::kByPlace,
                      Fp16Budgets(ParseBudgets("fp16"), reference, rounded))
      .at(0);
}

}  // namespace

TEST_CASE("floor: constants are rounded to fp16 and keep their type") {
  // NumPy: x.astype(numpy.float16).astype(x.dtype), where that is finite.
  Program program = Parse(R"(
    func main<ios18>(tensor<fp32, [7]> x, tensor<int32, [2]> i) {
      w = const()[val = [0.1, -0.33333334, 70000.0, -3.4e38, 1e-9, 2049.0, 3.0]];
      e = const()[val = 1e-12];
      a = mul(x = x, y = w);
      b = add(x = a, y = e);
      c = add(x = b, y = 0.1);
      n = const()[val = [2049, 70000]];
      j = add(x = i, y = n);
    } -> (c, j);)");
  Program rounded = RoundConstants(program);
  Verify(rounded);
  Tensor w = Taken(rounded, "a", "y");
  CHECK(w.dtype() == DType::kFp32);
  CHECK(w.Doubles() == Numbers{0.0999755859375, -0.333251953125, 70000, -3.4e38f, 0, 2048, 3});
  CHECK(Taken(rounded, "b", "y").Double(0) == 0x1p-24);  // the epsilon does not underflow
  CHECK(Taken(rounded, "c", "y").Double(0) == 0.0999755859375);
  CHECK(Taken(rounded, "j", "y").Doubles() == Numbers{2049, 70000});
  // The original program is unchanged.
  CHECK(Taken(program, "a", "y").Double(2) == 70000);
}

TEST_CASE("floor: infinities and NaN stay; fp64 and bf16 are rounded like fp32") {
  Program program = Parse(R"(
    func main<ios16>(tensor<fp32, [3]> x) {
      w = const()[val = [1.0, 2.0, 3.0]];
      y = mul(x = x, y = w);
    } -> (y);)");
  auto rounded = [&](const Tensor& constant) {
    program.main()->body.operations().front()->val = constant;
    return Taken(RoundConstants(program), "y", "y");
  };
  Tensor odd = rounded(Tensor::Vector<float>({kInfinity, -kInfinity, kNaN}));
  CHECK(odd.Double(0) == kInfinity);
  CHECK(odd.Double(1) == -kInfinity);
  CHECK(std::isnan(odd.Double(2)));
  Tensor wide = rounded(Tensor::Vector<double>({0.1, 1e300, -65519.9}));
  CHECK(wide.dtype() == DType::kFp64);
  CHECK(wide.Doubles() == Numbers{0.0999755859375, 1e300, -65504});
  // bf16 has fewer digits than fp16.
  Tensor brain = rounded(Tensor::Vector<float>({0.1f, 1e30f, 2e-8f}).Cast(DType::kBf16));
  CHECK(brain.dtype() == DType::kBf16);
  CHECK(brain.Double(0) == 0.10009765625);
  CHECK(brain.Double(1) > 9e29);
  CHECK(brain.Double(2) == 0);
}

TEST_CASE("floor: large constants are rounded lazily, for any range") {
  std::vector<float> values(20000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 10;
  bool read = false;
  Tensor large = Tensor::Lazy(DType::kFp32, {20000}, [&](int64_t first, int64_t n, std::byte* out) {
    read = true;
    std::memcpy(out, &values[static_cast<size_t>(first)], static_cast<size_t>(n) * 4);
  });
  Program program = Parse(R"(
    func main<ios16>(tensor<fp32, [20000]> x) {
      w = const()[val = 1.0];
      y = mul(x = x, y = w);
    } -> (y);)");
  program.main()->body.operations().front()->val = large;
  Program rounded = RoundConstants(program);
  CHECK_FALSE(read);
  Tensor w = Taken(rounded, "y", "y");
  float part[3];
  w.Read(6549, 3, reinterpret_cast<std::byte*>(part));
  CHECK(part[0] == 65504);  // 65490, between 65472 and 65504
  CHECK(part[1] == 65504);
  CHECK(part[2] == 65504);
  CHECK(w.Double(205) == 2050);
  CHECK(w.Double(413) == 4128);  // 4130, halfway to 4132
  CHECK(w.Double(19999) == 199990);
}

TEST_CASE("floor: constants in blocks, as outputs, and encoded") {
  Program program = Parse(R"(
    func main<ios18>(tensor<fp32, [4]> x) {
      k = const()[val = [0.1, 0.2, 0.3, 0.4]];
      q = constexpr_blockwise_shift_scale(data = tensor<int8, [4]>([1, 2, -3, 100]),
                                          scale = tensor<fp32, [1]>([0.1]));
      a = mul(x = x, y = q);
      y = while_loop(loop_vars = a)
        (tensor<fp32, [4]> p) { t = reduce_max(x = p, keep_dims = false); c = less(x = t, y = 50.1); } -> (c)
        (tensor<fp32, [4]> r) { d = mul(x = r, y = k); } -> (d);
    } -> (y, k);)");
  Program rounded = RoundConstants(program);
  Verify(rounded);
  CHECK(Taken(rounded, "c", "y").Double(0) == Approx(50.09375).epsilon(1e-12));
  Numbers k{0.0999755859375, 0.199951171875, 0.300048828125, 0.39990234375};
  CHECK(Taken(rounded, "d", "y").Doubles() == k);
  CHECK(rounded.main()->body.outputs()[1]->constant().Doubles() == k);
  // 0.1, 0.2, -0.3 and 10 in fp16: the decoded value is rounded, not the scale.
  CHECK(Taken(rounded, "a", "y").Doubles() == Numbers{k[0], k[1], -k[2], 10});
}

TEST_CASE("floor: operands that must be fp32 are not rounded") {
  Program program = Parse(R"(
    func main<ios17>(tensor<fp32, [1, 1, 8, 8]> x, tensor<fp32, [1, 4]> b) {
      y = crop_resize(x = x, boxes = b, target_height = 2, target_width = 2, spatial_scale = 0.1);
    } -> (y);)");
  CHECK(Taken(RoundConstants(program), "y", "spatial_scale").Double(0) ==
        static_cast<double>(0.1f));
}

TEST_CASE("floor: budgets are 1.5 times the worst floor of all steps, at least the base budget") {
  std::vector<StepResults> references = {Step({0, 1, 2, 4})[0], Step({0, 2, 4, 8})[0]},
                           rounded = {Step({0, 1, 2, 4.2f})[0], Step({0, 2, 4.2f, 8})[0]};
  Budgets base = ParseBudgets("fp16");
  base.all.rmse = 1e-3;
  Budgets budgets = Fp16Budgets(base, references, rounded);
  // 0.2 / 4 in the first step, and RMSE sqrt(0.04 / 4) / 4.
  Budget allowed = budgets.of("y").Allowed();
  CHECK(allowed.max_error == Approx(1.5 * 0.05));
  CHECK(allowed.rmse == Approx(1.5 * 0.025));
  CHECK(budgets.of("other").Allowed().max_error == 1e-2);
  budgets = Fp16Budgets(base, references, references);
  CHECK(budgets.of("y").floor == Floor());
  CHECK(budgets.of("y").Allowed().max_error == 1e-2);
  CHECK(budgets.of("y").Allowed().rmse == 1e-3);
  // Slices are judged by their own range: the second one is off by 10 %.
  Budgets by_rows = ParseBudgets("fp16");
  by_rows.all.per_axis = 0;
  auto rows = [](float last) {
    return std::vector<StepResults>{{{{"y", Tensor::Of<float>({2, 2}, {0, 1000, 0, last})}}, {}}};
  };
  CHECK(Fp16Budgets(by_rows, rows(1), rows(1.1f)).of("y").floor->max_error == Approx(0.1));
  // States have floors too; references that do not discriminate have none.
  Tensor x = Tensor::Vector<float>({0, 1}), z = Tensor::Vector<float>({0, 1.5f}),
         flat = Tensor::Vector<float>({2, 2});
  budgets =
      Fp16Budgets(ParseBudgets("fp16"), {{{{"f", flat}}, {{"s", x}}}}, {{{{"f", x}}, {{"s", z}}}});
  CHECK(budgets.of("s").floor->max_error == 0.5);
  CHECK_FALSE(budgets.of("f").floor);
}

TEST_CASE("floor: share of integers and strings changed by fp16 constants") {
  auto step = [](const std::vector<int32_t>& y) {
    return std::vector<StepResults>{{{{"y", Tensor::Vector(y)}}, {}}};
  };
  auto known = step({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), two = step({1, 2, 3, 4, 5, 6, 7, 8, 0, 0}),
       three = step({0, 0, 0, 4, 5, 6, 7, 8, 9, 10}), four = step({0, 0, 0, 0, 5, 6, 7, 8, 9, 10});
  CHECK(Fp16Budgets(ParseBudgets("fp16"), known, two).of("y").floor->unequal == Approx(0.2));
  CHECK(Judged(three, known, two).within);
  CHECK(Judged(three, known, two).tells);
  CHECK_FALSE(Judged(four, known, two).within);
  CHECK(Judged(four, known, two).tells);
  CHECK_FALSE(Judged(step({1, 2, 3, 4, 5, 6, 7, 8, 9, 0}), known, known).within);
  // If most elements differ anyway, only an equal value is conclusive.
  auto none = step({0, 0, 0, 0, 0, 0, 0, 0, 0, 10});
  CHECK_FALSE(Judged(four, known, none).tells);
  CHECK(Judged(known, known, none).tells);
  auto text = [](const std::string& last) {
    return std::vector<StepResults>{{{{"y", Tensor::Strings({4}, {"a", "b", "c", last})}}, {}}};
  };
  CHECK(Judged(text("e"), text("d"), text("f")).within);
  CHECK_FALSE(Judged(text("e"), text("d"), text("d")).within);
}

TEST_CASE("floor: a non-finite floor makes the comparison inconclusive") {
  std::vector<StepResults> known = Step({0, 1, 2, 3, 4, 5, 6, 8}),
                           odd = Step({0, kNaN, 2, 3, 4, 5, 6, 8});
  Compared right = Judged(Step({0, 1, 2, 3, 4, 5, 6, 8.01f}), known, odd);
  CHECK(right.within);
  CHECK(right.tells);
  Compared far = Judged(Step({0, 1, 2, 3, 4, 5, 6, 9}), known, odd);
  CHECK_FALSE(far.tells);
  CHECK_THAT(ReportText({far}),
             ContainsSubstring("-    y ") && ContainsSubstring("not comparable"));
  CHECK(Judge({far}) == Verdict::kNothingCompared);
  // NaN where the floor has it, and in more places than the floor allows.
  CHECK_FALSE(Judged(odd, known, odd).tells);
  Compared worse = Judged(Step({kNaN, kNaN, 2, 3, 4, 5, 6, 8}), known, odd);
  CHECK(worse.tells);
  CHECK_FALSE(worse.within);
  CHECK(Judge({right, worse}) == Verdict::kFailed);
  // A constant reference is conclusive about NaN.
  std::vector<StepResults> flat = Step({1, 1, 1});
  CHECK(Judge({right, Judged(Step({1, kNaN, 1}), flat, flat)}) == Verdict::kFailed);
  CHECK(Judge({right, Judged(Step({1, 9, 1}), flat, flat)}) == Verdict::kPassed);
  CHECK(Judge({right, Judged(Step({1, kNaN, 1}), flat, Step({1, 1, kNaN}))}) == Verdict::kPassed);
  // A floor without NaN allows none.
  Compared alone = Judged(odd, known, Step({0, 1.5f, 2, 3, 4, 5, 6, 8}));
  CHECK(alone.tells);
  CHECK_FALSE(alone.within);
}

TEST_CASE("floor: data-dependent sizes") {
  std::vector<StepResults> known = Step({1, 2, 3}), fewer = Step({1, 2});
  Compared both = Judged(fewer, known, Step({1}));
  CHECK_FALSE(both.within);
  CHECK_FALSE(both.tells);
  CHECK_THAT(ReportText({both}), ContainsSubstring("shape [2], reference has [3]") &&
                                     ContainsSubstring("not comparable"));
  Compared alone = Judged(fewer, known, known);
  CHECK(alone.tells);
  CHECK_FALSE(alone.within);
  // A size that equals the reference by chance: accepted if within the budget, else inconclusive;
  // NaN fails.
  CHECK(Judged(known, known, fewer).within);
  CHECK_FALSE(Judged(Step({1, 3, 2}), known, fewer).tells);
  CHECK(Judged(Step({1, kNaN, 3}), known, fewer).tells);
}

TEST_CASE("floor: reports and budgets with floors survive a round trip") {
  std::vector<StepResults> known = Step({0, 1, 2, 4}), rounded = Step({0, 1, 2, 4.25f});
  Compared fine = Judged(Step({0, 1, 2, 4.3125f}), known, rounded);
  CHECK(fine.within);
  CHECK(ReportText({fine}) ==
        "ok   y                                max error 7.81e-02, RMSE 3.91e-02; worst at [3]: "
        "4.3125, reference 4; floor 6.2e-02, RMSE 3.1e-02 (budget 9.4e-02)\n");
  CHECK_THAT(ReportText({Judged(known, known, known)}),
             ContainsSubstring("; floor 0.0e+00, RMSE 0.0e+00\n"));
  std::vector<Compared> list = {fine, Judged(known, known, Step({kNaN, 1, 2, 4})),
                                Judged(Step({1}), known, Step({1, 2}))};
  CHECK(ReportText(ReportFromJson(ReportJson(list))) == ReportText(list));
  CHECK(ReportJson(ReportFromJson(ReportJson(list))) == ReportJson(list));
  Budgets budgets = Fp16Budgets(ParseBudgets("fp16"), known, Step({kNaN, 1, 2, 4}));
  Budgets again = BudgetsFromJson(ToJson(budgets), "again");
  CHECK(again.of("y").floor == budgets.of("y").floor);
  CHECK(BudgetsFromJson(R"({"base": "fp16", "unequal": 0.25})", "b").all.unequal == 0.25);
}

}  // namespace mlc::test
