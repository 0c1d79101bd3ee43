#include "lib/verify/program_diff.h"

#include <cmath>
#include <limits>

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
using namespace verify;

namespace {

constexpr const char* kNetwork = R"(
func main<ios16>(tensor<fp32, [2, 16]> x) {
  w = const()[val = tensor<fp32, [4, 16]>(fill(0.5))];
  a = linear(x = x, weight = w);
  b = relu(x = a);
  c = relu(x = b);
  d = softmax(x = c, axis = 1);
} -> (d);
)";

Program Parse(std::string text) { return ParseText(text, "test.mil", Ops()); }

std::string Changed(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

ProgramDiff Against(const std::string& other) {
  static Program program = Parse(kNetwork);
  static std::vector<std::unique_ptr<Program>> others;  // the results point into them
  others.push_back(std::make_unique<Program>(Parse(other)));
  return Diff(program, *others.back());
}

}  // namespace

TEST_CASE("diff: renamed values are no difference") {
  CHECK(Against(kNetwork).same());
  CHECK(Against(kNetwork).matched == 4);
  std::string renamed =
      Changed(Changed(kNetwork, "b = relu", "other = relu"), "x = b", "x = other");
  CHECK(Against(renamed).same());
}

TEST_CASE("diff: changed parameter, inserted and removed operation") {
  ProgramDiff axis = Against(Changed(kNetwork, "axis = 1", "axis = 0"));
  REQUIRE(axis.operations.size() == 1);
  CHECK(axis.matched == 3);
  CHECK(axis.operations[0].changes == std::vector<std::string>{"axis: 1 -> 0"});
  CHECK(!axis.same());

  ProgramDiff inserted = Against(
      Changed(kNetwork, "  c = relu(x = b);\n", "  t = tanh(x = b);\n  c = relu(x = t);\n"));
  REQUIRE(inserted.operations.size() == 1);
  CHECK(inserted.matched == 4);
  CHECK(inserted.operations[0].a == nullptr);
  CHECK(inserted.operations[0].b->is("tanh"));

  ProgramDiff removed =
      Against(Changed(Changed(kNetwork, "  c = relu(x = b);\n", ""), "x = c, axis", "x = b, axis"));
  REQUIRE(removed.operations.size() == 1);
  CHECK(removed.matched == 3);
  CHECK(removed.operations[0].b == nullptr);
  CHECK(removed.operations[0].a->is("relu"));
}

TEST_CASE("diff: changed data flow") {
  auto changes = [](const char* first, const char* second) {
    Program a = Parse(first), b = Parse(second);
    ProgramDiff diff = Diff(a, b);
    CHECK(!diff.same());
    CHECK(Diff(a, a).same());
    CHECK(Diff(b, b).same());
    std::vector<std::string> all = diff.interface;
    for (const OperationPair& pair : diff.operations)
      all.insert(all.end(), pair.changes.begin(), pair.changes.end());
    return all;
  };
  using Texts = std::vector<std::string>;
  CHECK(changes("func main<ios16>(fp32 a, fp32 b) { y = sub(x = a, y = b); } -> (y);",
                "func main<ios16>(fp32 a, fp32 b) { y = sub(x = b, y = a); } -> (y);") ==
        Texts{"x: input \"a\" -> input \"b\"", "y: input \"b\" -> input \"a\""});
  CHECK(changes("func main<ios16>(fp32 a) { p = exp(x = a); q = abs(x = a); } -> (p, q);",
                "func main<ios16>(fp32 a) { q = exp(x = a); p = abs(x = a); } -> (p, q);") ==
        Texts{"output \"p\": exp \"p\" -> abs \"p\"", "output \"q\": abs \"q\" -> exp \"q\""});
  CHECK(changes("func main<ios16>(fp32 a) { p, q = split(x = [1.0, 2.0], num_splits = 2, axis = 0);"
                " r = sub(x = p, y = a); } -> (r);",
                "func main<ios16>(fp32 a) { p, q = split(x = [1.0, 2.0], num_splits = 2, axis = 0);"
                " r = sub(x = q, y = a); } -> (r);") == Texts{"x: split \"p\" -> split \"q\""});
  const char* cond = R"(func main<ios16>(fp32 x, bool c) {
  y = cond(pred = c) () { a = exp(x = x); } -> (a) () { b = abs(x = x); } -> (b);
} -> (y);)";
  const char* turned = R"(func main<ios16>(fp32 x, bool c) {
  y = cond(pred = c) () { b = abs(x = x); } -> (b) () { a = exp(x = x); } -> (a);
} -> (y);)";
  CHECK(changes(cond, turned) == Texts{"moved to another block", "moved to another block",
                                       "output 0 of block 0: exp \"a\" -> abs \"b\"",
                                       "output 0 of block 1: abs \"b\" -> exp \"a\""});
}

TEST_CASE("diff: default function, specification version, added and removed functions") {
  Program a = Parse(
      "func f<ios18>(fp32 x) { y = relu(x = x); } -> (y);"
      "func g<ios18>(fp32 x) { y = abs(x = x); } -> (y);");
  a.interface.default_function = "f";
  Program b = Clone(a);
  CHECK(Diff(a, b).same());
  b.interface.default_function = "g";
  CHECK(Diff(a, b).interface == std::vector<std::string>{"default function: \"f\" -> \"g\""});
  Program c = Parse("func f<ios18>(fp32 x) { y = relu(x = x); } -> (y);");
  c.interface.default_function = "f";
  CHECK(Diff(c, a).interface == std::vector<std::string>{"function g: only in the second program"});
  Program d = Clone(c);
  c.interface.specification_version = 9;
  d.interface.specification_version = 10;
  CHECK_FALSE(Diff(c, d).same());
}

TEST_CASE("diff: a changed size is reported for results, not for operations") {
  ProgramDiff diff = Against(Changed(kNetwork, "[2, 16]", "[3, 16]"));
  REQUIRE(diff.operations.size() == 4);
  for (const OperationPair& pair : diff.operations)
    CHECK(pair.changes == std::vector<std::string>{"result: fp32 [2, 4] -> fp32 [3, 4]"});
  CHECK(diff.weights[0].state == WeightPair::State::kEqual);
}

TEST_CASE("diff: equal, close and changed weights") {
  auto weight = [](const std::string& value) {
    ProgramDiff diff = Against(Changed(kNetwork, "fill(0.5)", "fill(" + value + ")"));
    CHECK(diff.operations.empty());
    REQUIRE(diff.weights.size() == 1);
    return diff.weights[0];
  };
  CHECK(weight("0.5").state == WeightPair::State::kEqual);
  CHECK(weight("0.5001").state == WeightPair::State::kClose);
  CHECK(std::fabs(weight("0.5001").largest_difference - 1e-4) < 1e-7);  // 0.5001 - 0.5, in fp32
  CHECK(weight("0.75").state == WeightPair::State::kChanged);
  CHECK(weight("0.75").largest_difference == 0.25);
  CHECK(weight("inf").state == WeightPair::State::kChanged);
  CHECK(weight("nan").largest_difference == std::numeric_limits<double>::infinity());
}

TEST_CASE("diff: inputs and outputs") {
  ProgramDiff renamed = Against(Changed(Changed(kNetwork, " x)", " y)"), "x = x,", "x = y,"));
  CHECK(renamed.interface == std::vector<std::string>{"input \"x\": only in the first program",
                                                      "input \"y\": only in the second program"});
  ProgramDiff larger = Against(Changed(kNetwork, "[2, 16]", "[3, 16]"));
  CHECK(larger.interface == std::vector<std::string>{"input \"x\": fp32 [2, 16] -> fp32 [3, 16]",
                                                     "output \"d\": fp32 [2, 4] -> fp32 [3, 4]"});
  Program a = Parse(kNetwork), b = Parse(kNetwork);
  a.interface.metadata = {{"k", "v"}};
  b.interface.metadata = {{"k", "w"}};
  b.interface.author = "someone";
  CHECK(Diff(a, b).interface ==
        std::vector<std::string>{"author: \"\" -> \"someone\"", "metadata \"k\": \"v\" -> \"w\""});
}

TEST_CASE("diff: order of inputs and outputs") {
  const char* two =
      "func main<ios16>(fp32 a, fp32 b) { p = exp(x = a); q = abs(x = b); } -> (p, q);";
  Program a = Parse(two), b = Parse(Changed(two, "(p, q)", "(q, p)"));
  CHECK(Diff(a, b).interface == std::vector<std::string>{"order of outputs: p, q -> q, p"});
  Program c = Parse(Changed(two, "(fp32 a, fp32 b)", "(fp32 b, fp32 a)"));
  CHECK(Diff(a, c).interface == std::vector<std::string>{"order of inputs: a, b -> b, a"});
  Program d = Parse(Changed(two, "(p, q)", "(q)"));
  CHECK(Diff(a, d).interface ==
        std::vector<std::string>{"output \"p\": only in the first program"});
}

TEST_CASE("diff: flexible sizes from the description or the symbols") {
  Program a = Parse(kNetwork), b = Parse(kNetwork);
  a.main()->inputs[0].shape_range = {{2, 2}, {16, 16}};
  b.main()->inputs[0].shape_range = {{2, 4}, {16, 16}};
  a.main()->inputs[0].default_shape = b.main()->inputs[0].default_shape = {2, 16};
  CHECK(Diff(a, a).same());
  CHECK(Diff(a, b).interface ==
        std::vector<std::string>{"input \"x\": fp32 [2, 16] by default [2, 16] -> "
                                 "fp32 [2..4, 16] by default [2, 16]"});
  b = Clone(a);
  a.main()->outputs[0].shape_range = {{1, 2}, {4, 4}};
  b.main()->outputs[0].shape_range = {{1, -1}, {4, 4}};
  CHECK(Diff(a, b).interface.size() == 1);
}

TEST_CASE("diff: changed class labels") {
  auto labelled = [](const std::string& labels) {
    return Parse(
        "func main<ios16>(tensor<fp32, [3]> x) {\n  p = softmax(x = x, axis = 0);\n"
        "  l, d = classify(probabilities = p, classes = " +
        labels + ");\n} -> (l, d);");
  };
  Program a = labelled(R"(["a", "b", "c"])"), b = labelled(R"(["a", "x", "y"])");
  CHECK(Diff(a, labelled(R"(["a", "b", "c"])")).same());
  ProgramDiff diff = Diff(a, b);
  REQUIRE(diff.operations.size() == 1);
  CHECK(diff.operations[0].changes ==
        std::vector<std::string>{"classes[1]: \"b\" -> \"x\"", "classes[2]: \"c\" -> \"y\""});
}

TEST_CASE("diff: functions and states") {
  const std::string text = R"(func f<ios18>(tensor<fp16, [2]> x) { y = exp(x = x); } -> (y);
func g<ios18>(state<tensor<fp16, [2]>> s, tensor<fp16, [2]> x) {
  t = read_state(input = s);
  y = add(x = t, y = x);
  write_state(input = s, data = y);
  u = read_state(input = s);
  z = sub(x = u, y = x);
} -> (z);)";
  Program a = Parse(text);
  a.interface.default_function = "f";
  auto against = [&](std::string_view from, std::string_view to) {
    std::string changed = Changed(text, from, to);
    REQUIRE(changed != text);
    static std::vector<std::unique_ptr<Program>> others;
    others.push_back(std::make_unique<Program>(Parse(changed)));
    others.back()->interface.default_function = "f";
    return Diff(a, *others.back());
  };
  CHECK(Diff(a, Clone(a)).same());
  CHECK(against("sub(x = u, y = x)", "sub(x = x, y = u)").operations.size() == 1);
  ProgramDiff lost = against("  write_state(input = s, data = y);\n", "");
  REQUIRE(lost.operations.size() == 1);
  CHECK(lost.operations[0].a->is("write_state"));
  // Only the order of operations determines the result of the second read.
  ProgramDiff moved =
      against("  write_state(input = s, data = y);\n  u = read_state(input = s);\n",
              "  u = read_state(input = s);\n  write_state(input = s, data = y);\n");
  REQUIRE(moved.operations.size() == 1);
  CHECK(moved.operations[0].a->result()->name == "u");
  CHECK(against("[2]>> s, tensor<fp16, [2]> x", "[2]>> s, tensor<fp16, [1]> x").interface[0] ==
        "function g: input \"x\": fp16 [2] -> fp16 [1]");
}

}  // namespace mlc::test
