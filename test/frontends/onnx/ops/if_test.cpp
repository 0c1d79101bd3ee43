// If, Loop, Scan, sequences and optionals. Expected values are computed by hand from the operator
// specifications.
#include <algorithm>
#include <cmath>

#include "test/catch.h"
#include "test/frontends/onnx/run.h"

namespace mlc::test {
using namespace onnx;
namespace {

using Floats = std::vector<double>;
using Names = std::vector<std::string>;

std::string Int64(const std::string& name, int64_t value) {
  return Proto<int64_t>(name, {}, {value});
}
std::string True(const std::string& name) { return Proto(name, kBool, {}, std::string(1, 1)); }
Tensor Scalar(int32_t value) { return Tensor::Vector(std::vector<int32_t>{value}); }
bool Has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// if (c) y = -x, else y = `other`.
std::string Branches(const std::string& other) {
  return Model(
      {Node("If", {"c"}, {"y"},
            {GraphAttribute("then_branch", Graph({Node("Neg", {"x"}, {"a"})}, {}, {Info("a")})),
             GraphAttribute("else_branch", Graph({other}, {}, {Info("b")}))})},
      {Info("c", kBool, {}), Info("x", kFloat, {2, 3})}, {Info("y")},
      {Proto<int64_t>("zero", {1}, {0}), Proto<int64_t>("one", {1}, {1})});
}

TEST_CASE("onnx If: a condition computed at run time becomes a cond") {
  std::string model = Branches(Node("Add", {"x", "x"}, {"b"}));
  CHECK(Has(OperatorsOf(ImportBytes(model)), "cond"));
  Tensor x = Count({2, 3});
  CHECK(RunOnnx(model, {{"c", Scalar(1)}, {"x", x}}).Doubles() == Floats{0, -1, -2, -3, -4, -5});
  CHECK(RunOnnx(model, {{"c", Scalar(0)}, {"x", x}}).Doubles() == Floats{0, 2, 4, 6, 8, 10});
}

TEST_CASE("onnx If: branches may return different sizes but not different ranks") {
  std::string slice = Branches(Node("Slice", {"x", "zero", "one"}, {"b"}));
  CHECK(RunOnnx(slice, {{"c", Scalar(0)}, {"x", Count({2, 3})}}).dims() == Dims{1, 3});
  CHECK(RunOnnx(slice, {{"c", Scalar(1)}, {"x", Count({2, 3})}}).dims() == Dims{2, 3});
  CHECK(ErrorId(Branches(Node("Unsqueeze", {"x", "zero"}, {"b"}))) == "needs-constant");
  CHECK(ErrorId(Branches(Node("Cast", {"x"}, {"b"}, {Int("to", kInt32)}))) == "bad-graph");
}

TEST_CASE("onnx If: a branch that returns an empty tensor needs no cond") {
  std::string nothing =
      Node("Constant", {}, {"a"}, {TensorAttribute("value", Proto<float>("", {0, 3}, {}))});
  std::string model = Model(
      {Node("If", {"c"}, {"y"},
            {GraphAttribute("then_branch", Graph({nothing}, {}, {Info("a")})),
             GraphAttribute("else_branch", Graph({Node("Neg", {"x"}, {"b"})}, {}, {Info("b")}))})},
      {Info("c", kBool, {}), Info("x", kFloat, {2, 3})}, {Info("y")});
  CHECK(!Has(OperatorsOf(ImportBytes(model)), "cond"));
  CHECK(RunOnnx(model, {{"c", Scalar(1)}, {"x", Count({2, 3})}}).dims() == Dims{0, 3});
  CHECK(RunOnnx(model, {{"c", Scalar(0)}, {"x", Count({2, 3})}}).Doubles() ==
        Floats{0, -1, -2, -3, -4, -5});
}

// The pattern that PyTorch exports for squeeze; later nodes require one rank.
TEST_CASE("onnx If: branches of different ranks narrow the dimension that the condition tests") {
  std::string model = Model(
      {Node("Shape", {"x"}, {"s"}), Node("Gather", {"s", "first"}, {"n"}),
       Node("Div", {"n", "three"}, {"thirds"}), Node("Equal", {"thirds", "two"}, {"c"}),
       Node("If", {"c"}, {"y"},
            {GraphAttribute("then_branch", Graph({Node("Flatten", {"x"}, {"a"})}, {}, {Info("a")})),
             GraphAttribute("else_branch", Graph({Node("Neg", {"x"}, {"b"})}, {}, {Info("b")}))})},
      {Info("x", kFloat, {"n", 2, 1})}, {Info("y")},
      {Proto<int64_t>("first", {1}, {0}), Proto<int64_t>("three", {1}, {3}),
       Proto<int64_t>("two", {1}, {2})});
  Program program = ImportBytes(model);
  CHECK(program.main()->symbols.at("n").low == 6);
  CHECK(program.main()->symbols.at("n").high == 8);
  CHECK(RunOnnx(model, {{"x", Count({7, 2, 1})}}).dims() == Dims{7, 2});
}

// v = x; for each i: v = v + i, and v is appended to the scan output s.
std::string Sums(const std::string& trips, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& constants, const std::string& output) {
  std::string body =
      Graph({Node("Identity", {"go"}, {"stays"}), Node("Cast", {"i"}, {"f"}, {Int("to", kFloat)}),
             Node("Add", {"v", "f"}, {"w"}), Node("Identity", {"w"}, {"e"})},
            {Info("i", kInt64, {}), Info("go", kBool, {}), Info("v", kFloat, {2})},
            {Info("stays"), Info("w"), Info("e")});
  std::vector<std::string> all = inputs, given = constants;
  all.push_back(Info("x", kFloat, {2}));
  given.push_back(True("true"));
  bool last = output == "last";
  return Model({Node("Loop", {trips, "true", "x"}, {last ? "y" : "v1", last ? "s1" : "y"},
                     {GraphAttribute("body", body)})},
               all, {Info("y")}, given);
}

TEST_CASE("onnx Loop: unrolled for a small trip count, a while_loop for a large or unknown one") {
  Tensor x = Tensor::Vector(std::vector<float>{1, 2});
  std::string few = Sums("n", {}, {Int64("n", 3)}, "all");
  CHECK_FALSE(Has(OperatorsOf(ImportBytes(few)), "while_loop"));
  CHECK(RunOnnx(few, {{"x", x}}).Doubles() == Floats{1, 2, 2, 3, 4, 5});

  std::string many = Sums("n", {}, {Int64("n", 200)}, "last");
  CHECK(Has(OperatorsOf(ImportBytes(many)), "while_loop"));
  CHECK(RunOnnx(many, {{"x", x}}).Doubles() == Floats{19901, 19902});
  Tensor all = RunOnnx(Sums("n", {}, {Int64("n", 200)}, "all"), {{"x", x}});
  CHECK(all.dims() == Dims{200, 2});
  CHECK(all.Double(398) == 19901);

  std::string open = Sums("n", {Info("n", kInt64, {})}, {}, "all");
  CHECK(RunOnnx(open, {{"n", Scalar(3)}, {"x", x}}).Doubles() == Floats{1, 2, 2, 3, 4, 5});
  CHECK(RunOnnx(open, {{"n", Scalar(1)}, {"x", x}}).Doubles() == Floats{1, 2});
  CHECK(RunOnnx(Sums("n", {}, {Int64("n", 0)}, "last"), {{"x", x}}).Doubles() == Floats{1, 2});
  CHECK(ErrorId(Sums("n", {}, {Int64("n", 0)}, "all")) == "empty-tensor");
  CHECK(ErrorId(Sums("", {}, {}, "last")) == "bad-graph");  // the loop never ends
}

TEST_CASE("onnx Loop: a body that requires constants is unrolled even for a large trip count") {
  std::string body =
      Graph({Node("Identity", {"go"}, {"stays"}), Node("Mod", {"i", "two"}, {"axis"}),
             Node("CumSum", {"v", "axis"}, {"sums"}),
             Node("Mod", {"sums", "seven"}, {"w"}, {Int("fmod", 1)})},
            {Info("i", kInt64, {}), Info("go", kBool, {}), Info("v", kFloat, {2, 3})},
            {Info("stays"), Info("w")});
  auto model = [&](int64_t trips) {
    return Model(
        {Node("Loop", {"n", "true", "x"}, {"y"}, {GraphAttribute("body", body)})},
        {Info("x", kFloat, {2, 3})}, {Info("y")},
        {Int64("n", trips), Int64("two", 2), True("true"), Proto<float>("seven", {}, {7.0f})});
  };
  double v[2][3] = {{0, 1, 2}, {3, 4, 5}};
  for (int i = 0; i < 70; ++i)
    for (int row = 0; row < 2; ++row)
      for (int column = 0; column < 3; ++column) {
        double before =
            i % 2 == 0 ? (row > 0 ? v[row - 1][column] : 0) : (column > 0 ? v[row][column - 1] : 0);
        // The preceding elements have already been reduced modulo 7, which does not change the
        // result.
        v[row][column] = std::fmod(before + v[row][column], 7);
      }
  Tensor y = RunOnnx(model(70), {{"x", Count({2, 3})}});
  CHECK(y.Doubles() == Floats{v[0][0], v[0][1], v[0][2], v[1][0], v[1][1], v[1][2]});
  CHECK(ErrorId(model(5000)) == "needs-constant");
}

TEST_CASE("onnx Loop: a failed while_loop leaves no operations behind when the loop is unrolled") {
  // v grows, so its dimension becomes symbolic and the axis is no longer constant.
  std::string body =
      Graph({Node("Identity", {"go"}, {"stays"}), Node("Shape", {"v"}, {"s"}),
             Node("Gather", {"s", "first"}, {"n"}), Node("Mod", {"n", "two"}, {"axis"}),
             Node("CumSum", {"v", "axis"}, {"sums"}),
             Node("Concat", {"sums", "x"}, {"w"}, {Int("axis", 0)})},
            {Info("i", kInt64, {}), Info("go", kBool, {}), Info("v", kFloat, {1, 1})},
            {Info("stays"), Info("w")});
  std::string model =
      Model({Node("Loop", {"n", "true", "x"}, {"y"}, {GraphAttribute("body", body)})},
            {Info("x", kFloat, {1, 1})}, {Info("y")},
            {Int64("n", 70), Int64("two", 2), Int64("first", 0), True("true")});
  Diagnostics diagnostics;
  Program program = ImportOnnx(AsBytes(model), {}, diagnostics);
  CHECK(program.main()->symbols.empty());
  CHECK(diagnostics.decisions().empty());
  CHECK(program.main()->body.outputs()[0]->type.shape == Shape{71, 1});
}

TEST_CASE("onnx Loop: the condition output of the body ends the loop") {
  // Doubles v until its sum is at least 100. The increment is a tensor with one row per iteration.
  std::string body = Graph(
      {Node("Add", {"v", "v"}, {"w"}), Node("ReduceSum", {"w"}, {"sum"}, {Int("keepdims", 0)}),
       Node("Less", {"sum", "limit"}, {"more"}), Node("Identity", {"v"}, {"e"})},
      {Info("i", kInt64, {}), Info("go", kBool, {}), Info("v", kFloat, {2})},
      {Info("more"), Info("w"), Info("e")});
  for (const char* trips : {"", "n"}) {
    std::string model =
        Model({Node("Loop", {trips, "", "x"}, {"last", "y"}, {GraphAttribute("body", body)})},
              {Info("x", kFloat, {2})}, {Info("y")},
              {Int64("n", 1000), Proto<float>("limit", {}, {100})});
    Tensor y = RunOnnx(model, {{"x", Tensor::Vector(std::vector<float>{10, 20})}});
    CHECK(y.dims() == Dims{2, 2});
    CHECK(y.Doubles() == Floats{10, 20, 20, 40});
  }
}

TEST_CASE("onnx Loop: loop-carried values may grow") {
  std::string body = Graph(
      {Node("Identity", {"go"}, {"stays"}), Node("Concat", {"v", "x"}, {"w"}, {Int("axis", 0)})},
      {Info("i", kInt64, {}), Info("go", kBool, {}), Info("v", kFloat, {"k"})},
      {Info("stays"), Info("w")});
  std::string model =
      Model({Node("Loop", {"n", "true", "x"}, {"y"}, {GraphAttribute("body", body)})},
            {Info("n", kInt64, {}), Info("x", kFloat, {1})}, {Info("y")}, {True("true")});
  CHECK(
      RunOnnx(model, {{"n", Scalar(3)}, {"x", Tensor::Vector(std::vector<float>{5})}}).Doubles() ==
      Floats{5, 5, 5, 5});
}

// h = h * 2 + x, and h is appended to the scan output y.
std::string Scanned(const test::Dimension& steps, const std::vector<std::string>& attributes,
                    int opset = 17) {
  std::string body =
      Graph({Node("Add", {"h", "h"}, {"two"}), Node("Add", {"two", "e"}, {"next"}),
             Node("Identity", {"next"}, {"out"})},
            {Info("h", kFloat, {1}), Info("e", kFloat, {1})}, {Info("next"), Info("out")});
  std::vector<std::string> all = attributes;
  all.push_back(Int("num_scan_inputs", 1));
  all.push_back(GraphAttribute("body", body));
  return Model({Node("Scan", {"zero", "x"}, {"last", "y"}, all)}, {Info("x", kFloat, {steps, 1})},
               {Info("y")}, {Proto<float>("zero", {1}, {0})}, opset);
}

TEST_CASE("onnx Scan: directions and axes, constant and symbolic length") {
  for (const test::Dimension& steps : {test::Dimension(3), test::Dimension("t")}) {
    Tensor x = Tensor::Of<float>({3, 1}, std::vector<float>{1, 2, 3});
    CHECK(RunOnnx(Scanned(steps, {}), {{"x", x}}).Doubles() == Floats{1, 4, 11});
    std::string back = Scanned(
        steps, {IntList("scan_input_directions", {1}), IntList("scan_output_directions", {1})});
    CHECK(RunOnnx(back, {{"x", x}}).Doubles() == Floats{17, 8, 3});
    std::string axis = Scanned(steps, {IntList("scan_output_axes", {-1})});
    CHECK(RunOnnx(axis, {{"x", x}}).dims() == Dims{1, 3});
  }
  CHECK(ErrorId(Scanned(3, {IntList("scan_output_axes", {2})})) == "bad-attribute");
}

TEST_CASE("onnx Scan before opset 9: sequence lengths per batch entry") {
  std::string body =
      Graph({Node("Add", {"h", "e"}, {"next"}), Node("Identity", {"next"}, {"out"})},
            {Info("h", kFloat, {1}), Info("e", kFloat, {1})}, {Info("next"), Info("out")});
  std::string model =
      Model({Node("Scan", {"lengths", "zero", "x"}, {"last", "y"},
                  {Int("num_scan_inputs", 1), GraphAttribute("body", body)})},
            {Info("x", kFloat, {2, 3, 1})}, {Info("y")},
            {Proto<float>("zero", {2, 1}, {0, 10}), Proto<int64_t>("lengths", {2}, {3, 1})}, 8);
  CHECK(RunOnnx(model, {{"x", Count({2, 3, 1})}}).Doubles() == Floats{0, 1, 3, 13, 0, 0});
}

TEST_CASE("onnx sequences are represented by their elements") {
  auto run = [](const std::vector<std::string>& nodes, const std::vector<std::string>& inputs = {},
                const std::map<std::string, Tensor>& more = {}) {
    std::vector<std::string> all = {Info("x", kFloat, {3, 2})};
    all.insert(all.end(), inputs.begin(), inputs.end());
    std::map<std::string, Tensor> values = {{"x", Count({3, 2})}};
    values.insert(more.begin(), more.end());
    std::vector<std::string> before = {Node("SplitToSequence", {"x"}, {"s"}, {Int("keepdims", 0)})};
    before.insert(before.end(), nodes.begin(), nodes.end());
    return RunOnnx(Model(before, all, {Info("y")}, {Int64("last", -1), Int64("one", 1)}), values);
  };
  std::string joined = Node("ConcatFromSequence", {"t"}, {"y"}, {Int("axis", 0)});
  CHECK(run({Node("SequenceAt", {"s", "last"}, {"y"})}).Doubles() == Floats{4, 5});
  CHECK(run({Node("SequenceErase", {"s", "one"}, {"t"}), joined}).Doubles() == Floats{0, 1, 4, 5});
  CHECK(run({Node("SequenceErase", {"s"}, {"t"}), joined}).Doubles() == Floats{0, 1, 2, 3});
  std::string first = Node("SequenceAt", {"s", "one"}, {"e"});
  CHECK(run({first, Node("SequenceInsert", {"s", "e", "last"}, {"t"}), joined}).Doubles() ==
        Floats{0, 1, 2, 3, 2, 3, 4, 5});
  CHECK(run({Node("SequenceLength", {"s"}, {"y"})}).Int(0) == 3);
  // Two sequences are extended from the same one; neither contains the other's element.
  CHECK(run({first, Node("SequenceAt", {"s", "last"}, {"f"}),
             Node("SequenceInsert", {"s", "e"}, {"t"}), Node("SequenceInsert", {"s", "f"}, {"u"}),
             Node("SequenceAt", {"t", "last"}, {"a"}), Node("SequenceAt", {"u", "last"}, {"b"}),
             Node("Concat", {"a", "b"}, {"c"}, {Int("axis", 0)}),
             Node("SequenceLength", {"s"}, {"n"}), Node("Cast", {"n"}, {"d"}, {Int("to", kFloat)}),
             Node("Add", {"c", "d"}, {"y"})})
            .Doubles() == Floats{5, 6, 7, 8});

  // Positions computed at run time.
  std::string p = Info("p", kInt64, {});
  for (int32_t at : {0, -3})
    CHECK(run({Node("SequenceAt", {"s", "p"}, {"y"})}, {p}, {{"p", Scalar(at)}}).Doubles() ==
          Floats{0, 1});
  for (int32_t at : {1, -2}) {
    CHECK(run({Node("SequenceErase", {"s", "p"}, {"t"}), joined}, {p}, {{"p", Scalar(at)}})
              .Doubles() == Floats{0, 1, 4, 5});
    CHECK(run({Node("SequenceAt", {"s", "last"}, {"e"}),
               Node("SequenceInsert", {"s", "e", "p"}, {"t"}), joined},
              {p}, {{"p", Scalar(at)}})
              .Doubles() == Floats{0, 1, 4, 5, 2, 3, 4, 5});
  }
}

TEST_CASE(
    "onnx sequences and optionals are refused as inputs, as outputs and in place of tensors") {
  auto id = [](const std::vector<std::string>& nodes) {
    return ErrorId(Model(nodes, {Info("x", kFloat, {2})}, {Info("y")}));
  };
  std::string sequence = Node("SequenceConstruct", {"x", "x"}, {"s"});
  CHECK(id({Node("SequenceConstruct", {"x"}, {"y"})}) == "unsupported-dtype");
  CHECK(id({sequence, Node("Neg", {"s"}, {"y"})}) == "bad-graph");
  CHECK(id({Node("SequenceLength", {"x"}, {"y"})}) == "bad-graph");
  CHECK(id({Node("Optional", {}, {"o"}), Node("OptionalGetElement", {"o"}, {"y"})}) ==
        "bad-operand");
}

TEST_CASE("onnx Optional: its element, or an empty optional") {
  auto run = [](const std::vector<std::string>& nodes) {
    return RunOnnx(Model(nodes, {Info("x", kFloat, {2})}, {Info("y")}, {}, 18),
                   {{"x", Count({2})}});
  };
  CHECK(run({Node("Optional", {"x"}, {"o"}), Node("OptionalGetElement", {"o"}, {"y"})}).Doubles() ==
        Floats{0, 1});
  CHECK(run({Node("Optional", {}, {"o"}), Node("OptionalHasElement", {"o"}, {"y"})}).Int(0) == 0);
  CHECK(run({Node("OptionalHasElement", {"x"}, {"y"})}).Int(0) == 1);
  CHECK(run({Node("OptionalHasElement", {}, {"y"})}).Int(0) == 0);
}

TEST_CASE("onnx SequenceMap: the body is applied to each element") {
  std::string body = Graph({Node("Add", {"e", "x"}, {"o"})}, {Info("e")}, {Info("o")});
  std::string model =
      Model({Node("SequenceConstruct", {"x", "z"}, {"s"}),
             Node("SequenceMap", {"s"}, {"t"}, {GraphAttribute("body", body)}),
             Node("ConcatFromSequence", {"t"}, {"y"}, {Int("axis", 0), Int("new_axis", 1)})},
            {Info("x", kFloat, {2}), Info("z", kFloat, {2})}, {Info("y")});
  Tensor y = RunOnnx(model, {{"x", Count({2})}, {"z", Tensor::Vector(std::vector<float>{5, 7})}});
  CHECK(y.dims() == Dims{2, 2});
  CHECK(y.Doubles() == Floats{0, 2, 5, 8});
}

TEST_CASE("onnx: functions of the same name are distinguished by their overload") {
  auto function = [](const std::string& overload, const std::string& op) {
    return Bytes(25, Bytes(1, "F") + Bytes(10, "my") + Bytes(4, "a") + Bytes(5, "b") +
                         Bytes(7, Node(op, {"a"}, {"b"})) + Bytes(9, Number(2, 17)) +
                         Bytes(13, overload));
  };
  std::string more = function("one", "Neg") + function("two", "Abs") + Opset(1, "my");
  for (const auto& [overload, expected] : std::map<std::string, double>{{"one", -1}, {"two", 1}}) {
    std::string call = Node("F", {"x"}, {"y"}, {}, "my") + Bytes(8, overload);
    CHECK(RunOnnx(Model({call}, {Info("x", kFloat, {2})}, {Info("y")}, {}, 17, more),
                  {{"x", Count({2})}})
              .Double(1) == expected);
  }
}

}  // namespace
}  // namespace mlc::test
