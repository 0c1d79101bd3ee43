// Constant and Identity, which leave no operation at run time.
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
  if (node.Has("sparse_value")) node.TensorAttribute("sparse_value");  // throws the reason
  node.Fail("bad-attribute", "no value attribute is given");
}

void Identity(Node& node) {
  if (!node.HasInput(0)) node.Fail("bad-graph", "input 0 is missing");
  node.Set(0, node.Input(0));
}

constexpr NodeRow kConstantRows[] = {
    NodeRow("Constant", Constant).Folded(),
    NodeRow("Identity", Identity).Folded(),
};

}  // namespace

std::span<const NodeRow> ConstantRows() { return kConstantRows; }

}  // namespace mlc::onnx
