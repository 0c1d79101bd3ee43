// OneHot.
#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"
#include "lib/ops/value_range.h"

namespace mlc::onnx {

namespace {

// Since opset 11, negative indices count from the end; out-of-range indices select nothing.
void OneHot(Node& node) {
  Value* indices = lower::Convert(node, node.In(0), node.dtype(0), DType::kInt64);
  Value* depth = lower::Convert(node, node.In(1), node.dtype(1), DType::kInt64);
  Value* values = node.In(2);
  DType dtype = node.dtype(2);
  int axis = node.Axis(node.Int("axis", -1), node.rank() + 1);
  depth = Single(node, depth, "depth");
  if (node.rank(2) != 1) node.Fail("bad-operand", "values must be [off, on]");
  values = Sized(node, values, 0, 2, "values must be [off, on]");
  if (node.opset() >= 11 && !IsNatural(indices)) {
    Value* raised = Binary(node, "add", indices, depth);
    Value* negative = Binary(node, "less", indices, 0);
    indices = Select(node, negative, raised, indices);
  }
  Builder::Args args = {{"indices", indices}, {"one_hot_vector_size", depth}, {"axis", axis}};
  if (values->is_constant()) {
    if (!indices->is_constant() || !depth->is_constant())
      values = lower::AtRunTime(node, values, dtype);
    Tensor pair = values->constant();
    args.emplace_back("on_value", pair.Rows(1, 2).Reshaped({}));
    args.emplace_back("off_value", pair.Rows(0, 1).Reshaped({}));
    return node.Set(node.Make("one_hot", std::move(args)), dtype);
  }
  // Core ML derives the shape of a select from its value operands alone, so one of them is
  // broadcast by adding zeros of the full shape.
  DType type = values->type.dtype == DType::kBool ? DType::kInt32 : values->type.dtype;
  values = node.builder().Cast(values, type);
  auto one_hot = [&](bool on) {
    Builder::Args each = args;
    each.emplace_back("on_value", Tensor::Full(on ? DType::kBool : type, {}, on));
    each.emplace_back("off_value", Tensor::Full(on ? DType::kBool : type, {}, 0));
    return node.Make("one_hot", std::move(each));
  };
  auto value = [&](int64_t i) { return SliceBetween(node, values, {i}, {i + 1}); };
  Value* off = node.Make("add", {{"x", one_hot(false)}, {"y", value(0)}});
  Value* chosen = node.Make("select", {{"cond", one_hot(true)}, {"a", value(1)}, {"b", off}});
  node.Set(node.builder().Cast(chosen, lower::RuntimeType(dtype)), dtype);
}

constexpr NodeRow kOneHotRows[] = {
    NodeRow("OneHot", OneHot, 9).Direct(),
};

}  // namespace

std::span<const NodeRow> OneHotRows() { return kOneHotRows; }

}  // namespace mlc::onnx
