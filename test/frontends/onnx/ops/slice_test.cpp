// Expected values come from the same expressions in NumPy on numpy.arange. ONNX's own tests run in
// test/conformance.
#include "test/catch.h"
#include "test/frontends/onnx/run.h"

namespace mlc::test {
using namespace onnx;
namespace {

using Names = std::vector<std::string>;
using Floats = std::vector<double>;

std::string Vector(const std::string& name, const Ints64& values) {
  return Proto<int64_t>(name, {static_cast<int64_t>(values.size())}, values);
}
std::string OneNode(const std::string& node, const std::vector<Dimension>& x,
                    const std::vector<std::string>& constants = {}, int opset = 17) {
  return Model({node}, {Info("x", kFloat, x)}, {Info("y")}, constants, opset);
}
// Returns arange(size)[start:end:step], for a constant or a symbolic size.
Floats Sliced(int64_t start, int64_t end, int64_t step, bool known, int size = 6) {
  std::string model = OneNode(
      Node("Slice", {"x", "s", "e", "a", "k"}, {"y"}), {known ? Dimension(size) : Dimension("n")},
      {Vector("s", {start}), Vector("e", {end}), Vector("a", {-1}), Vector("k", {step})});
  return RunOnnx(model, {{"x", Count({size})}}).Doubles();
}

TEST_CASE(
    "onnx Slice: bounds and steps of both signs, INT64_MIN and INT64_MAX, out-of-range bounds") {
  bool known = GENERATE(true, false);
  CAPTURE(known);
  CHECK(Sliced(1, 4, 1, known) == Floats{1, 2, 3});
  CHECK(Sliced(-2, INT64_MAX, 1, known) == Floats{4, 5});
  CHECK(Sliced(-100, -3, 2, known) == Floats{0, 2});
  CHECK(Sliced(-1, INT64_MIN, -1, known) == Floats{5, 4, 3, 2, 1, 0});
  CHECK(Sliced(INT64_MAX, INT64_MIN, -2, known) == Floats{5, 3, 1});
  CHECK(Sliced(3, -100, -1, known) == Floats{3, 2, 1, 0});
  CHECK(Sliced(3, 0, -1, known) == Floats{3, 2, 1});
  // A start before index 0 is clamped to index 0, also for a negative step.
  CHECK(Sliced(INT64_MIN, INT64_MIN, -1, known) == Floats{0});
  CHECK(Sliced(-5, INT64_MIN, -1, known, 3) == Floats{0});
}

TEST_CASE("onnx Slice: attributes before opset 10") {
  std::string model = OneNode(
      Node("Slice", {"x"}, {"y"},
           {IntList("starts", {1, -2}), IntList("ends", {1000, 3}), IntList("axes", {0, 1})}),
      {3, 3}, {}, 9);
  CHECK(RunOnnx(model, {{"x", Count({3, 3})}}).Doubles() == Floats{4, 5, 7, 8});
}

TEST_CASE("onnx Slice: bounds from shape arithmetic") {
  auto sliced = [](const std::string& start, const std::string& end) {
    return Model({Node("Shape", {"x"}, {"n"}), Node("Div", {"n", "two"}, {"half"}),
                  Node("Sub", {"n", "one"}, {"last"}), Node("Slice", {"x", start, end}, {"y"})},
                 {Info("x", kFloat, {"n"})}, {Info("y")},
                 {Vector("zero", {0}), Vector("one", {1}), Vector("two", {2})});
  };
  auto run = [&](const std::string& start, const std::string& end) {
    return RunOnnx(sliced(start, end), {{"x", Count({5})}}).Doubles();
  };
  CHECK(run("half", "n") == Floats{2, 3, 4});
  CHECK(run("zero", "half") == Floats{0, 1});
  CHECK(run("one", "last") == Floats{1, 2, 3});
  Program program = ImportBytes(sliced("half", "n"));
  CHECK(program.main()->body.outputs()[0]->type.shape[0].Evaluate({{"n", 7}}) == 4);
  // A bound at a constant distance from the end is constant; a slice of all elements is removed.
  CHECK(OperatorsOf(ImportBytes(sliced("one", "last"))) == Names{"slice_by_index"});
  CHECK(OperatorsOf(ImportBytes(sliced("zero", "n"))) == Names{"identity"});
}

TEST_CASE("onnx Slice: axes and steps must be constant") {
  std::string model = Model({Node("Slice", {"x", "s", "e", "a"}, {"y"})},
                            {Info("x", kFloat, {4}), Info("a", kInt64, {1})}, {Info("y")},
                            {Vector("s", {0}), Vector("e", {1})});
  CHECK(ErrorId(model) == "needs-constant");
}

TEST_CASE("onnx Concat: default axis 1 in opset 1; empty operands are omitted") {
  CHECK(RunOnnx(OneNode(Node("Concat", {"x", "x"}, {"y"}), {2, 1}, {}, 1), {{"x", Count({2, 1})}})
            .Doubles() == Floats{0, 0, 1, 1});
  std::string model = OneNode(Node("Concat", {"x", "nothing"}, {"y"}, {Int("axis", -1)}), {2, 3},
                              {Proto<float>("nothing", {2, 0}, {})});
  CHECK(OperatorsOf(ImportBytes(model)) == Names{"identity"});
}

std::string Split(const std::vector<std::string>& inputs,
                  const std::vector<std::string>& attributes, int opset,
                  const std::vector<Dimension>& x = {5},
                  const std::vector<std::string>& constants = {}) {
  return OneNode(Node("Split", inputs, {"first", "y"}, attributes), x, constants, opset);
}

TEST_CASE("onnx Split: sizes as an attribute or as input 1; a smaller last part since opset 18") {
  auto last = [](const std::string& model) {
    return RunOnnx(model, {{"x", Count({5})}}).Doubles();
  };
  CHECK(last(Split({"x"}, {IntList("split", {3, 2})}, 2)) == Floats{3, 4});
  CHECK(last(Split({"x", "s"}, {}, 1, {5}, {Proto<float>("s", {2}, {3, 2})})) == Floats{3, 4});
  CHECK(last(Split({"x", "s"}, {}, 13, {5}, {Vector("s", {4, 1})})) == Floats{4});
  CHECK(last(Split({"x"}, {Int("num_outputs", 2)}, 18)) == Floats{3, 4});
  CHECK(ErrorId(Split({"x"}, {}, 13)) == "bad-operand");
}

TEST_CASE("onnx Split: sizes computed at run time") {
  std::string model = Model({Node("Split", {"x", "s"}, {"first", "y"})},
                            {Info("x", kFloat, {5}), Info("s", kInt64, {2})}, {Info("y")});
  CHECK(RunOnnx(model, {{"x", Count({5})}, {"s", Tensor::Vector<int32_t>({4, 1})}}).Doubles() ==
        Floats{4});
}

std::string Pad(const Ints64& pads, const std::string& mode, const std::vector<Dimension>& x) {
  return OneNode(Node("Pad", {"x", "p"}, {"y"}, {Text("mode", mode)}), x, {Vector("p", pads)}, 19);
}

TEST_CASE("onnx Pad: attributes in opsets 1 and 2") {
  for (int opset : {1, 2}) {
    std::string model =
        OneNode(Node("Pad", {"x"}, {"y"},
                     {IntList(opset == 1 ? "paddings" : "pads", {1, 2}), Float("value", 9)}),
                {2}, {}, opset);
    CHECK(RunOnnx(model, {{"x", Count({2})}}).Doubles() == Floats{9, 0, 1, 9, 9});
  }
}

TEST_CASE("onnx Pad: modes, negative pads, reflections longer than the input") {
  auto run = [](const Ints64& pads, const std::string& mode, int size) {
    return RunOnnx(Pad(pads, mode, {size}), {{"x", Count({size})}}).Doubles();
  };
  CHECK(run({2, -1}, "constant", 4) == Floats{0, 0, 0, 1, 2});
  CHECK(run({2, 1}, "reflect", 4) == Floats{2, 1, 0, 1, 2, 3, 2});
  CHECK(run({4, 0}, "reflect", 3) == Floats{0, 1, 2, 1, 0, 1, 2});
  CHECK(run({-1, 2}, "edge", 3) == Floats{1, 2, 2, 2});
  CHECK(run({1, 4}, "wrap", 3) == Floats{2, 0, 1, 2, 0, 1, 2, 0});
  CHECK(ErrorId(Pad({0, -4}, "constant", {4})) == "bad-operand");
  CHECK(ErrorId(Pad({0, 1}, "mirror", {4})) == "unsupported-attribute");
}

TEST_CASE("onnx Pad: reflection of leading dimensions requires a transpose") {
  std::string model = Pad({1, 0, 0, 0, 0, 0}, "reflect", {2, 1, 2});
  CHECK(OperatorsOf(ImportBytes(model)) == Names{"transpose", "pad", "transpose"});
  CHECK(RunOnnx(model, {{"x", Count({2, 1, 2})}}).Doubles() == Floats{2, 3, 0, 1, 2, 3});
  CHECK(OperatorsOf(ImportBytes(Pad({0, 0, 1, 0, 0, 1}, "edge", {2, 1, 2}))) == Names{"pad"});
}

TEST_CASE("onnx Pad: wide integers are not converted to floats") {
  std::string model = Model({Node("Pad", {"x", "p"}, {"y"})}, {Info("x", kInt64, {"n"})},
                            {Info("y")}, {Vector("p", {1, 0})});
  int32_t wide = (1 << 24) + 1;
  CHECK(RunOnnx(model, {{"x", Tensor::Vector<int32_t>({wide})}}).Ints() == Ints64{0, wide});
}

}  // namespace
}  // namespace mlc::test
