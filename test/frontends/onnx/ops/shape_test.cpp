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
// A model with one node and an input x of the given dimensions.
std::string OneNode(const std::string& node, const std::vector<Dimension>& x,
                    const std::vector<std::string>& constants = {}, int opset = 17) {
  return Model({node}, {Info("x", kFloat, x)}, {Info("y")}, constants, opset);
}
Dims ShapeAfter(const std::string& model, const Dims& x) {
  return RunOnnx(model, {{"x", Count(x)}}).dims();
}

TEST_CASE("onnx Reshape: shape attribute before opset 5; 0 copies a dimension, -1 infers it") {
  CHECK(ShapeAfter(OneNode(Node("Reshape", {"x"}, {"y"}, {IntList("shape", {0, -1, 2})}), {2, 6, 4},
                           {}, 1),
                   {2, 6, 4}) == Dims{2, 12, 2});
  auto reshape = [](const Ints64& shape, const std::vector<Dimension>& x) {
    return OneNode(Node("Reshape", {"x", "s"}, {"y"}), x, {Vector("s", shape)});
  };
  CHECK(ShapeAfter(reshape({0, 0, 2, 2}, {2, 6, 4}), {2, 6, 4}) == Dims{2, 6, 2, 2});
  CHECK(ShapeAfter(reshape({0, 0, 2, -1}, {"n", "m", 4}), {2, 6, 4}) == Dims{2, 6, 2, 2});
  CHECK(ErrorId(reshape({5, -1}, {2, 6, 4})) == "bad-operand");
  CHECK(ErrorId(reshape({-1, -1}, {2, 6, 4})) == "bad-operand");
}

TEST_CASE(
    "onnx Reshape: a single unknown dimension is inferred, several require a run-time shape") {
  auto operators = [](const std::vector<Dimension>& x, const Ints64& shape) {
    return OperatorsOf(
        ImportBytes(OneNode(Node("Reshape", {"x", "s"}, {"y"}), x, {Vector("s", shape)})));
  };
  CHECK(operators({"n", 6, 4}, {0, 0, 2, 2}) == Names{"reshape"});
  CHECK(operators({"n", "m", 4}, {0, -1, 2}) == Names{"reshape"});
  CHECK(operators({"n", "m", 4}, {0, 0, 2, 2}) ==
        Names{"shape", "slice_by_index", "concat", "reshape"});
  CHECK(operators({"n", "m", 4}, {0, 0, 4}) == Names{"identity"});
}

// The pattern that exporters emit: Shape, Gather, Unsqueeze, Concat, Reshape.
std::string SplitHeads(const std::vector<Dimension>& x) {
  return Model({Node("Shape", {"x"}, {"shape"}), Node("Gather", {"shape", "zero"}, {"n"}),
                Node("Gather", {"shape", "one"}, {"t"}), Node("Unsqueeze", {"n", "axes"}, {"n1"}),
                Node("Unsqueeze", {"t", "axes"}, {"t1"}),
                Node("Concat", {"n1", "t1", "heads"}, {"s"}, {Int("axis", 0)}),
                Node("Reshape", {"x", "s"}, {"y"})},
               {Info("x", kFloat, x)}, {Info("y")},
               {Proto<int64_t>("zero", {}, {0}), Proto<int64_t>("one", {}, {1}),
                Vector("axes", {0}), Vector("heads", {2, 2})});
}

TEST_CASE("onnx: shape arithmetic on constant dimensions is folded") {
  Names names = OperatorsOf(ImportBytes(SplitHeads({1, 6, 4})));
  CHECK(names == Names{"reshape"});
  CHECK(ImportBytes(SplitHeads({"n", 6, 4})).main()->body.outputs()[0]->type.shape ==
        Shape{Dim::Symbol("n"), 6, 2, 2});
}

TEST_CASE("onnx: shape arithmetic on symbolic dimensions is computed and keeps the symbols") {
  std::string model = SplitHeads({"n", "t", 4});
  CHECK(ImportBytes(model).main()->body.outputs()[0]->type.shape ==
        Shape{Dim::Symbol("n"), Dim::Symbol("t"), 2, 2});
  CHECK(ShapeAfter(model, {3, 5, 4}) == Dims{3, 5, 2, 2});
}

TEST_CASE("onnx Flatten: negative axes, symbolic dimensions") {
  auto flatten = [](int64_t axis, const std::vector<Dimension>& x) {
    return OneNode(Node("Flatten", {"x"}, {"y"}, {Int("axis", axis)}), x);
  };
  CHECK(ShapeAfter(flatten(0, {2, 6, 4}), {2, 6, 4}) == Dims{1, 48});
  CHECK(ShapeAfter(flatten(-1, {2, 6, 4}), {2, 6, 4}) == Dims{12, 4});
  CHECK(ShapeAfter(flatten(3, {2, 6, 4}), {2, 6, 4}) == Dims{48, 1});
  CHECK(ShapeAfter(flatten(1, {"n", "m", "k"}), {2, 6, 4}) == Dims{2, 24});
  CHECK(ErrorId(flatten(4, {2, 6, 4})) == "bad-attribute");
}

TEST_CASE("onnx Squeeze, Unsqueeze: axes attribute before opset 13") {
  std::vector<Dimension> x = {2, 1, 4, 1};
  CHECK(ShapeAfter(OneNode(Node("Squeeze", {"x"}, {"y"}, {IntList("axes", {-1})}), x, {}, 11),
                   {2, 1, 4, 1}) == Dims{2, 1, 4});
  CHECK(ShapeAfter(OneNode(Node("Squeeze", {"x"}, {"y"}), x), {2, 1, 4, 1}) == Dims{2, 4});
  CHECK(ShapeAfter(OneNode(Node("Squeeze", {"x", "a"}, {"y"}), x, {Vector("a", {1})}),
                   {2, 1, 4, 1}) == Dims{2, 4, 1});
  CHECK(ShapeAfter(OneNode(Node("Squeeze", {"x", "a"}, {"y"}), {2, "n"}, {Vector("a", {1})}),
                   {2, 1}) == Dims{2});
  CHECK(ErrorId(OneNode(Node("Squeeze", {"x", "a"}, {"y"}), x, {Vector("a", {0})})) ==
        "bad-operand");
  CHECK(ShapeAfter(
            OneNode(Node("Unsqueeze", {"x"}, {"y"}, {IntList("axes", {3, 0})}), {2, 3}, {}, 11),
            {2, 3}) == Dims{1, 2, 3, 1});
  CHECK(ShapeAfter(OneNode(Node("Unsqueeze", {"x", "a"}, {"y"}), {2, 3}, {Vector("a", {-1})}),
                   {2, 3}) == Dims{2, 3, 1});
}

TEST_CASE("onnx Expand: dimensions of size 1 of the input or of the target") {
  auto expand = [](const std::vector<Dimension>& x, const Ints64& shape) {
    return OneNode(Node("Expand", {"x", "s"}, {"y"}), x, {Vector("s", shape)});
  };
  CHECK(RunOnnx(expand({2, 1}, {2, 1, 3}), {{"x", Count({2, 1})}}).Doubles() ==
        Floats{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1});
  CHECK(OperatorsOf(ImportBytes(expand({2, 3}, {1, 3}))) == Names{"identity"});
  CHECK(ShapeAfter(expand({"n", 3}, {4, 3}), {1, 3}) == Dims{4, 3});  // n is 1 or 4
  CHECK(ShapeAfter(expand({"n", 3}, {4, 3}), {4, 3}) == Dims{4, 3});
  CHECK(ErrorId(expand({2, 3}, {5, 3})) == "bad-operand");
}

TEST_CASE("onnx Expand, ConstantOfShape: to a shape computed at run time") {
  auto like = [](const std::string& node, const std::string& constant) {
    return Model({Node("Shape", {"x"}, {"s"}), node}, {Info("x", kFloat, {"n", 3})}, {Info("y")},
                 {constant});
  };
  std::string expand = like(Node("Expand", {"c", "s"}, {"y"}), Proto<float>("c", {3}, {7, 8, 9}));
  CHECK(RunOnnx(expand, {{"x", Count({2, 3})}}).Doubles() == Floats{7, 8, 9, 7, 8, 9});
  std::string seven = like(Node("Expand", {"c", "s"}, {"y"}), Proto<float>("c", {1, 1}, {7}));
  CHECK(OperatorsOf(ImportBytes(seven)) == Names{"shape", "fill"});
  std::string fill = like(Node("ConstantOfShape", {"s"}, {"y"},
                               {TensorAttribute("value", Proto<int64_t>("v", {1}, {5}))}),
                          Proto<float>("c", {1}, {0}));
  CHECK(RunOnnx(fill, {{"x", Count({2, 3})}}).Ints() == Ints64{5, 5, 5, 5, 5, 5});
}

TEST_CASE("onnx Tile: a single axis in opset 1") {
  CHECK(RunOnnx(OneNode(Node("Tile", {"x", "t", "a"}, {"y"}), {1, 2},
                        {Proto<float>("t", {1}, {2}), Proto<float>("a", {1}, {1})}, 1),
                {{"x", Count({1, 2})}})
            .Doubles() == Floats{0, 1, 0, 1});
  CHECK(RunOnnx(OneNode(Node("Tile", {"x", "r"}, {"y"}), {1, 2}, {Vector("r", {2, 1})}),
                {{"x", Count({1, 2})}})
            .Doubles() == Floats{0, 1, 0, 1});
}

TEST_CASE("onnx Shape, Size: start and end; constants for constant dimensions") {
  auto shape = [](const std::vector<std::string>& range) {
    return OneNode(Node("Shape", {"x"}, {"y"}, range), {"n", 3, 4});
  };
  CHECK(RunOnnx(shape({}), {{"x", Count({2, 3, 4})}}).Ints() == Ints64{2, 3, 4});
  CHECK(RunOnnx(shape({Int("start", -2)}), {{"x", Count({2, 3, 4})}}).Ints() == Ints64{3, 4});
  CHECK(OperatorsOf(ImportBytes(shape({Int("start", 1), Int("end", 9)}))) == Names{"identity"});
  CHECK(
      RunOnnx(OneNode(Node("Size", {"x"}, {"y"}), {"n", 3, 4}), {{"x", Count({2, 3, 4})}}).Ints() ==
      Ints64{24});
}

TEST_CASE("onnx Range: a limit computed at run time") {
  std::string model =
      Model({Node("Shape", {"x"}, {"s"}, {Int("end", 1)}), Node("Squeeze", {"s"}, {"n"}),
             Node("Range", {"zero", "n", "two"}, {"y"})},
            {Info("x", kFloat, {"n"})}, {Info("y")},
            {Proto<int64_t>("zero", {}, {0}), Proto<int64_t>("two", {}, {2})});
  CHECK(RunOnnx(model, {{"x", Count({5})}}).Ints() == Ints64{0, 2, 4});
}

}  // namespace
}  // namespace mlc::test
