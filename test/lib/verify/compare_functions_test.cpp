#include "lib/verify/compare_functions.h"

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/verify/check_pass.h"
#include "lib/verify/layer_comparison.h"
#include "test/catch.h"

namespace mlc::test {
using namespace verify;
namespace {

Program Parse(const std::string& text) { return ParseText(text, "test.mil", Ops()); }

// A function that adds its input to a state; `write` is the text of the operations that update it.
std::string Accumulator(const std::string& write) {
  return "func main<ios18>(state<tensor<fp16, [4]>> s, tensor<fp16, [4]> x) {\n"
         "  t = read_state(input = s);\n  y = add(x = t, y = x);\n" +
         write + "} -> (y);\n";
}
const std::string kKept = "  write_state(data = y, input = s);\n";

std::string TwoFunctions(const std::string& second) {
  return "func first<ios18>(tensor<fp32, [4]> x) {\n  y = relu(x = x);\n} -> (y);\n"
         "func second<ios18>(tensor<fp32, [4]> x) {\n  y = " +
         second + ";\n} -> (y);\n";
}

Compared Row(const std::string& function, const std::string& name, bool discriminating, bool within,
             double error = 0) {
  Compared row{function, name, false, 0, {}, {}, within};
  row.comparison.discriminating = row.tells = discriminating;
  row.comparison.max_error = error;
  return row;
}

}  // namespace

TEST_CASE("CheckSame reports a removed write to a state") {
  CheckSame(Parse(Accumulator(kKept)), Parse(Accumulator(kKept)), 1, "p");
  CHECK_THROWS_WITH(CheckSame(Parse(Accumulator(kKept)), Parse(Accumulator("")), 1, "my-pass"),
                    ContainsSubstring("pass my-pass changes the results: state \"s\" in step 1"));
  // The state is correct only after the first step.
  CHECK_THROWS_WITH(
      CheckSame(Parse(Accumulator(kKept)),
                Parse(Accumulator("  write_state(data = x, input = s);\n")), 1, "my-pass"),
      ContainsSubstring("in step 2"));
}

TEST_CASE("CheckSame compares all functions, not only the default one") {
  CheckSame(Parse(TwoFunctions("exp(x = x)")), Parse(TwoFunctions("exp(x = x)")), 1, "p");
  CHECK_THROWS_WITH(
      CheckSame(Parse(TwoFunctions("exp(x = x)")), Parse(TwoFunctions("cos(x = x)")), 1, "my-pass"),
      ContainsSubstring("changes the results: output \"y\" of function second"));
  Program one = Parse(TwoFunctions("exp(x = x)"));
  one.functions.pop_back();
  CHECK_THROWS_WITH(CheckSame(Parse(TwoFunctions("exp(x = x)")), one, 1, "my-pass"),
                    ContainsSubstring("pass my-pass removes function second"));
  CHECK_THROWS_WITH(CheckSame(one, Parse(TwoFunctions("exp(x = x)")), 1, "my-pass"),
                    ContainsSubstring("pass my-pass adds function second"));
}

TEST_CASE("functions: single functions match despite different names") {
  Program a = Parse(TwoFunctions("exp(x = x)")), b = Parse(TwoFunctions("exp(x = x)"));
  CHECK(MatchFunctions(a, b).size() == 2);
  b.functions.erase(b.functions.begin());
  std::vector<FunctionPair> pairs = MatchFunctions(a, b);
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].b == nullptr);
  CHECK(pairs[1].b == b.functions[0].get());
  a.functions.pop_back();  // `first` and `second`
  pairs = MatchFunctions(a, b);
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].a->name == "first");
  CHECK(pairs[0].b->name == "second");
}

TEST_CASE("functions: states are carried from step to step") {
  Program program = Parse(Accumulator(kKept));
  Tensor x = Tensor::Vector<float>({1, 2, 3, 4}).Cast(DType::kFp16);
  std::vector<StepResults> steps = RunSteps(*program.functions[0], {{{"x", x}}, {{"x", x}}}, {});
  REQUIRE(steps.size() == 2);
  CHECK(steps[1].outputs.at(0).second.Doubles() == std::vector<double>{2, 4, 6, 8});
  CHECK(steps[0].states.at(0).first == "s");
  CHECK(steps[0].states.at(0).second.Doubles() == std::vector<double>{1, 2, 3, 4});
  CHECK(steps[1].states.at(0).second.Doubles() == std::vector<double>{2, 4, 6, 8});
}

TEST_CASE("functions: missing values are mismatches, unknown references are skipped") {
  Tensor x = Tensor::Vector<float>({1, 2});
  std::vector<StepResults> values = {{{{"b", x}, {"a", x}}, {}}};
  Budgets budgets = ParseBudgets("fp32");
  auto compare = [&](const NamedTensors& outputs, const NamedTensors& states) {
    return CompareSteps("f", values, {{outputs, states}}, Match::kByName, budgets);
  };
  CHECK(Judge(compare({{"a", x}, {"b", x}}, {})) == Verdict::kPassed);
  CHECK(Judge(compare({{"a", x}, {"c", x}}, {})) == Verdict::kFailed);
  CHECK(Judge(compare({{"a", x}}, {{"s", x}})) == Verdict::kFailed);
  CHECK(compare({{"a", x}, {"c", Tensor()}}, {}).size() == 1);
  CHECK(Judge(compare({{"c", Tensor()}}, {})) == Verdict::kNothingCompared);
  // With Match::kByPlace, names are ignored.
  CHECK(Judge(CompareSteps("f", values, {{{{"c", x}, {"d", x}}, {}}}, Match::kByPlace, budgets)) ==
        Verdict::kPassed);
}

TEST_CASE("verdict: inconclusive comparisons do not pass") {
  CHECK(Judge({}) == Verdict::kNothingCompared);
  CHECK(Judge({Row("f", "y", false, true)}) == Verdict::kNothingCompared);
  CHECK(Judge({Row("f", "y", false, false, 1e8)}) == Verdict::kNothingCompared);
  CHECK(Judge({Row("f", "y", false, true), Row("f", "z", true, true)}) == Verdict::kPassed);
  CHECK(Judge({Row("f", "y", true, false), Row("f", "z", true, true)}) == Verdict::kFailed);
  // Every function needs a conclusive comparison.
  CHECK(Judge({Row("f", "y", true, true), Row("g", "y", false, true)}) ==
        Verdict::kNothingCompared);
  CHECK(VerdictText({Row("f", "y", true, true), Row("g", "y", false, true)}) ==
        "FAILED: no output of g is conclusive, so nothing was compared; try other inputs");
}

TEST_CASE("report: shows the worst step of each output") {
  std::vector<Compared> list = {Row("f", "y", true, true, 1e-4), Row("f", "y", true, true, 3e-4),
                                Row("f", "y", false, true)};
  for (int64_t i = 0; i < 3; ++i) list[i].step = i;
  CHECK(ReportText(list) ==
        "ok   y                                max error 3.00e-04, RMSE 0.00e+00 (step 2 of 3)\n");
  list.push_back(Row("g", "y", true, false, 1));
  CHECK(ReportText(list).starts_with("function f:\nok   y "));
  CHECK_THAT(ReportText(list), ContainsSubstring("function g:\nFAIL y "));
}

TEST_CASE("layers: values correspond only if they hold the same tensor") {
  const std::string head = "func main<ios16>(tensor<fp32, [4, 4]> x) {\n";
  Program source = Parse(head +
                         "a = mul(x = x, y = 2.0);\n"
                         "b = slice_by_index(x = a, begin = [0, 0], end = [2, 3]);\n"
                         "c = relu(x = a);\n"
                         "y = add(x = c, y = 1.0);\n} -> (y, b);");
  // The same program with `a` transposed, and with it the slice and its users.
  auto turned = [&](const std::string& factor) {
    return Parse(head + "t = transpose(x = x, perm = [1, 0]);\na = mul(x = t, y = " + factor +
                 ");\nb = slice_by_index(x = a, begin = [0, 0], end = [3, 2]);\n"
                 "u = transpose(x = b, perm = [1, 0]);\n"
                 "v = transpose(x = a, perm = [1, 0]);\nc = relu(x = v);\n"
                 "y = add(x = c, y = 1.0);\n} -> (y, u);");
  };
  std::vector<StepInputs> steps = {
      {{"x", Tensor::Of<float>({4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, -9, 10, 11, 12, 13, 14, 15, 16})}}};
  auto compare = [&](const Program& package) {
    return CompareLayers(*source.functions[0], steps, {}, *package.functions[0], steps, {}, {});
  };
  Layers right = compare(turned("2.0"));
  REQUIRE(right.layers.size() == 2);  // c, y
  CHECK(right.others == 2);           // a, b
  CHECK(right.layers[0].compared.within);
  CHECK(right.layers[1].compared.within);
  CHECK_THAT(LayersText(right, 10), ContainsSubstring("all values are within the budget"));
  // Wrong values are still reported.
  Layers wrong = compare(turned("2.5"));
  CHECK_THAT(LayersText(wrong, 1), ContainsSubstring("first value outside the budget: mul \"a\"") &&
                                       ContainsSubstring("worst 1 values:\nFAIL"));
}

TEST_CASE("layers: loop values are compared iteration by iteration") {
  const std::string text = R"(
    func main<ios16>(tensor<fp32, [2]> x) {
      y = while_loop(loop_vars = x)
        (tensor<fp32, [2]> a) { t = reduce_max(x = a, keep_dims = false); c = less(x = t, y = 50.0); } -> (c)
        (tensor<fp32, [2]> b) { d = mul(x = b, y = 3.0); } -> (d);
    } -> (y);)";
  Program source = Parse(text), package = Parse(text);
  std::vector<StepInputs> steps = {{{"x", Tensor::Vector<float>({1, 2})}}};
  Layers layers =
      CompareLayers(*source.functions[0], steps, {}, *package.functions[0], steps, {}, {});
  REQUIRE(layers.layers.size() == 4);  // t, c, d, y
  for (const Layer& layer : layers.layers) CHECK(layer.compared.within);
}

}  // namespace mlc::test
