// Scatter, ScatterElements and ScatterND.
#include "lib/lower/scatter.h"

#include "frontends/onnx/row.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// MIL's name for the reduction attribute.
std::string ModeOf(Node& node, int max_since) {
  std::string name = node.opset() >= 16 ? node.String("reduction", "none") : "none";
  if (name == "none") return "update";
  bool extreme = name == "max" || name == "min";
  if (name != "add" && name != "mul" && !(extreme && node.opset() >= max_since))
    node.Unsupported("reduction", "unknown reduction \"{}\"", name);
  return name;
}

lower::Scattered OperandsOf(Node& node) {
  std::string mode = ModeOf(node, 18);
  lower::Scattered s{node.In(0), node.In(1), node.In(2), mode};
  DType dtype = node.dtype(0);
  if (node.dtype(2) != dtype)
    node.Fail("bad-operand", "data and updates have different types, {} and {}", Name(dtype),
              Name(node.dtype(2)));
  if (s.data->is_constant() && s.indices->is_constant() && s.updates->is_constant()) return s;
  if (s.mode == "add" || s.mode == "mul") node.RequireRunTimeArithmetic(dtype);
  s.data = lower::AtRunTime(node, s.data, dtype);
  s.updates = lower::AtRunTime(node, s.updates, dtype);
  return s;
}

void ScatterElements(Node& node) {
  lower::Scattered s = OperandsOf(node);
  Value* y = lower::ScatterAlongAxis(node, s, node.Axis(node.Int("axis", 0), node.rank()));
  node.SetAlike(lower::Wrap(node, y, node.dtype()));
}

void ScatterNd(Node& node) {
  node.SetAlike(lower::Wrap(node, lower::ScatterVectors(node, OperandsOf(node)), node.dtype()));
}

constexpr NodeRow kScatterRows[] = {
    NodeRow("Scatter", ScatterElements, 9, 10).Direct(),
    NodeRow("ScatterElements", ScatterElements, 11).Direct(),
    NodeRow("ScatterND", ScatterNd, 11).Direct(),
};

}  // namespace

std::span<const NodeRow> ScatterRows() { return kScatterRows; }

}  // namespace mlc::onnx
