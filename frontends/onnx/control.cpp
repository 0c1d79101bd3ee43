// Constants, and what only passes values on or chooses between them while compiling.
#include "frontends/onnx/row.h"

namespace mlc::onnx {

namespace {

void Constant(Node& node) {
  if (node.Has("value")) return node.Set(node.Const(node.TensorAttribute("value")));
  if (node.Has("value_float"))
    return node.Set(node.Const(Tensor::Scalar(static_cast<float>(node.Float("value_float")))));
  if (node.Has("value_int")) return node.Set(node.Const(Tensor::Scalar(node.Int("value_int"))));
  if (node.Has("value_string"))
    return node.Set(node.Const(Tensor::String(node.String("value_string"))));
  if (node.Has("value_ints")) return node.Set(node.Const(Tensor::Vector(node.Ints("value_ints"))));
  if (node.Has("value_floats")) {
    std::vector<double> values = node.Floats("value_floats");
    return node.Set(node.Const(Tensor::Vector(std::vector<float>(values.begin(), values.end()))));
  }
  if (node.Has("value_strings")) {
    std::vector<std::string> values = node.Strings("value_strings");
    int64_t count = static_cast<int64_t>(values.size());
    return node.Set(node.Const(Tensor::Strings({count}, std::move(values))));
  }
  if (node.Has("sparse_value")) node.TensorAttribute("sparse_value");  // says why not
  node.Fail("bad-attribute", "has no value");
}

void Identity(Node& node) { node.Set(node.In(0), node.dtype(0)); }

void If(Node& node) {
  Tensor condition = node.Constant(0, "cond");
  if (condition.size() != 1) node.Fail("bad-operand", "the condition must be one element");
  node.Ignore({"then_branch", "else_branch"});
  std::vector<Bound> results =
      node.Inline(node.Subgraph(condition.Bool(0) ? "then_branch" : "else_branch"), {});
  for (int i = 0; i < node.outputs() && i < static_cast<int>(results.size()); ++i)
    node.Set(i, results[i].value, results[i].dtype);
}

constexpr Row kRows[] = {
    Row("Constant", Constant).Folded(),
    Row("Identity", Identity).Folded(),
    Row("If", If).When("the condition is constant"),
};

}  // namespace

std::span<const Row> ControlRows() { return kRows; }

}  // namespace mlc::onnx
