// Elements replaced or combined at indices.
#include "frontends/onnx/row.h"
#include "lib/lower/convert.h"
#include "lib/lower/indices.h"

namespace mlc::onnx {

namespace {

// What MIL calls a reduction.
std::string ModeOf(Node& node, int max_since) {
  std::string name = node.opset() >= 16 ? node.String("reduction", "none") : "none";
  if (name == "none") return "update";
  bool extreme = name == "max" || name == "min";
  if (name != "add" && name != "mul" && !(extreme && node.opset() >= max_since))
    node.Unsupported("reduction", fmt::format("reduction \"{}\" is unknown", name));
  return name;
}

struct Operands {
  Value *data, *indices, *updates;
};

Operands OperandsOf(Node& node, std::string_view mode) {
  Operands operands{node.In(0), node.In(1), node.In(2)};
  DType dtype = node.dtype(0);
  if (node.dtype(2) != dtype)
    node.Fail("bad-operand",
              fmt::format("data is {} and updates {}", Name(dtype), Name(node.dtype(2))));
  if (operands.data->is_constant() && operands.indices->is_constant() &&
      operands.updates->is_constant())
    return operands;
  if ((mode == "add" || mode == "mul") && (dtype == DType::kUint32 || dtype == DType::kUint64))
    node.Fail("unsupported-dtype",
              fmt::format("arithmetic on {} at run time; Core ML has 32-bit signed integers",
                          Name(dtype)));
  operands.data = AtRunTime(node, operands.data, dtype);
  operands.updates = AtRunTime(node, operands.updates, dtype);
  return operands;
}

void SetScattered(Node& node, std::string_view op, const Operands& operands, Builder::Args args) {
  args.insert(
      args.end(),
      {{"data", operands.data}, {"indices", operands.indices}, {"updates", operands.updates}});
  DType dtype = node.dtype(0);
  node.Set(Wrap(node, node.Make(op, std::move(args)), dtype), dtype);
}

// Places in all elements of the data: index vectors of its five dimensions would have six.
void ScatterPlaces(Node& node, Operands operands, const std::string& mode, int axis) {
  Dims data = StaticDims(node.shape(0)), dims = StaticDims(node.shape(1));
  std::vector<int64_t> places(ElementCount(dims)), strides(data.size(), 1);
  for (size_t i = data.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * data[i];
  int64_t stride = strides[axis];
  strides[axis] = 0;
  for (size_t k = 0; k < places.size(); ++k)
    for (int64_t i = static_cast<int64_t>(dims.size()) - 1, rest = k; i >= 0; rest /= dims[i--])
      places[k] += rest % dims[i] * strides[i];
  auto flat = [&](Value* x) { return node.Make("reshape", {{"x", x}, {"shape", Ints({-1})}}); };
  Value* along = node.Make("mul", {{"x", node.builder().Cast(operands.indices, DType::kInt32)},
                                   {"y", node.Const(Tensor::Scalar<int32_t>(stride))}});
  Value* others = node.Const(Tensor::Of(dims, places).Cast(DType::kInt32));
  Value* y =
      node.Make("scatter", {{"data", flat(operands.data)},
                            {"indices", flat(node.Make("add", {{"x", along}, {"y", others}}))},
                            {"updates", flat(operands.updates)},
                            {"axis", 0},
                            {"mode", mode}});
  DType dtype = node.dtype(0);
  y = node.Make("reshape", {{"x", y}, {"shape", Ints(data)}});
  node.Set(Wrap(node, y, dtype), dtype);
}

// MIL's indices have the data's dimensions beside the axis. Where ONNX's have less, they become
// index vectors of all dimensions.
void ScatterElements(Node& node) {
  std::string mode = ModeOf(node, 18);
  Operands operands = OperandsOf(node, mode);
  int rank = node.rank(), axis = node.Axis(node.Int("axis", 0), rank);
  const Shape data = node.shape(0), indices = node.shape(1);
  if (node.rank(1) != rank || node.rank(2) != rank)
    node.Fail("bad-operand", fmt::format("data is {}, indices {} and updates {}", ToString(data),
                                         ToString(indices), ToString(node.shape(2))));
  operands.indices = FromFront(node, operands.indices, operands.data, axis);
  bool less = false;
  for (int i = 0; i < rank; ++i) less = less || (i != axis && data[i] != indices[i]);
  if (!less || !IsStatic(indices))
    return SetScattered(node, "scatter_along_axis", operands, {{"axis", axis}, {"mode", mode}});
  if (rank == 5 && IsStatic(data)) return ScatterPlaces(node, operands, mode, axis);
  Dims dims = StaticDims(indices), column = dims;
  column.push_back(1);
  std::vector<Value*> columns;
  DType dtype = operands.indices->type.dtype;
  int64_t stride = ElementCount(dims), count = stride;
  for (int i = 0; i < rank; ++i) {
    stride /= dims[i];
    if (i == axis) {
      columns.push_back(
          node.Make("expand_dims", {{"x", operands.indices}, {"axes", Ints({rank})}}));
      continue;
    }
    std::vector<int64_t> places(count);
    for (int64_t k = 0; k < count; ++k) places[k] = k / stride % dims[i];
    columns.push_back(node.Const(Tensor::Of(column, places).Cast(dtype)));
  }
  operands.indices = node.Make("concat", {{"values", columns}, {"axis", rank}});
  SetScattered(node, "scatter_nd", operands, {{"mode", mode}});
}

void ScatterNd(Node& node) {
  std::string mode = ModeOf(node, 18);
  Operands operands = OperandsOf(node, mode);
  operands.indices = VectorsFromFront(node, operands.indices, operands.data, 0);
  SetScattered(node, "scatter_nd", operands, {{"mode", mode}});
}

constexpr NodeRow kRows[] = {
    NodeRow("Scatter", ScatterElements, 9, 10).Direct(),
    NodeRow("ScatterElements", ScatterElements, 11).Direct(),
    NodeRow("ScatterND", ScatterNd, 11).Direct(),
};

}  // namespace

std::span<const NodeRow> ScatterRows() { return kRows; }

}  // namespace mlc::onnx
