#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

struct Reduction {
  std::vector<int64_t> axes;
  bool keep = true;
};

// Axes are an attribute, or input 1 since opset `axes_input_since`. Without axes, all dimensions
// are reduced, or none with noop_with_empty_axes.
Reduction AxesOf(Node& node, int axes_input_since) {
  Reduction reduction;
  reduction.keep = node.Int("keepdims", 1) != 0;
  std::vector<int64_t> given;
  bool noop = false;
  if (node.opset() >= axes_input_since) {
    noop = node.Int("noop_with_empty_axes", 0) != 0;
    if (node.HasInput(1)) given = node.ConstantInts(1, "axes");
  } else {
    given = node.Ints("axes", std::vector<int64_t>());
  }
  int rank = node.rank();
  std::vector<bool> reduced(rank, given.empty() && !noop);
  for (int64_t axis : given) reduced[node.Axis(axis, rank)] = true;
  for (int i = 0; i < rank; ++i)
    if (reduced[i]) reduction.axes.push_back(i);
  return reduction;
}

// `alone` is the operation that a reduction over a single element amounts to; "" is the identity.
void Reduce(Node& node, std::string_view op, std::string_view alone, int axes_input_since) {
  Reduction reduction = AxesOf(node, axes_input_since);
  DType dtype = node.dtype();
  Value* x = node.In(0);
  bool sums = op != "reduce_max" && op != "reduce_min";
  if (sums && !x->is_constant()) node.RequireRunTimeArithmetic(dtype);
  if (sums && !x->is_constant() && IsInteger(dtype) && Bits(dtype) < 32)
    node.Fail("unsupported-dtype", "sums and products of {} are not supported", Name(dtype));
  if (reduction.axes.empty()) {
    if (alone == "log") return node.Set(node.Make("log", {{"x", x}, {"epsilon", 0.0}}), dtype);
    return node.Set(alone.empty() ? x : node.Make(alone, {{"x", x}}), dtype);
  }
  if (dtype == DType::kBool) x = lower::Convert(node, x, dtype, DType::kInt32);
  Value* result = Reduced(node, op, x, reduction.axes, reduction.keep);
  node.Set(dtype == DType::kBool ? lower::Convert(node, result, DType::kInt32, dtype) : result,
           dtype);
}

void ReduceSum(Node& node) { Reduce(node, "reduce_sum", "", 13); }
void ReduceMax(Node& node) { Reduce(node, "reduce_max", "", 18); }
void ReduceMin(Node& node) { Reduce(node, "reduce_min", "", 18); }
void ReduceMean(Node& node) { Reduce(node, "reduce_mean", "", 18); }
void ReduceProd(Node& node) { Reduce(node, "reduce_prod", "", 18); }
void ReduceL1(Node& node) { Reduce(node, "reduce_l1_norm", "abs", 18); }
void ReduceL2(Node& node) { Reduce(node, "reduce_l2_norm", "abs", 18); }
void ReduceLogSum(Node& node) { Reduce(node, "reduce_log_sum", "log", 18); }
void ReduceSumSquare(Node& node) { Reduce(node, "reduce_sum_square", "square", 18); }

// max + log(sum(e^(x - max))), which does not overflow. An infinite maximum is replaced by 0,
// because inf - inf is NaN.
void ReduceLogSumExp(Node& node) {
  Reduction reduction = AxesOf(node, 18);
  DType dtype = node.dtype();
  Value* x = node.In(0);
  if (reduction.axes.empty()) return node.Set(x, dtype);
  if (!IsFloat(dtype)) x = lower::Convert(node, x, dtype, DType::kFp32);
  Value* greatest = Reduced(node, "reduce_max", x, reduction.axes, true);
  Value* rest = Binary(node, "sub", greatest, greatest);
  Value* finite = Binary(node, "equal", rest, 0.0);
  greatest = Select(node, finite, greatest, 0.0);
  Value* exp = node.Make("exp", {{"x", Binary(node, "sub", x, greatest)}});
  Value* sum = Reduced(node, "reduce_sum", exp, reduction.axes, reduction.keep);
  if (!reduction.keep) greatest = Squeezed(node, greatest, reduction.axes);
  Value* log = node.Make("log", {{"x", sum}, {"epsilon", 0.0}});
  Value* result = Binary(node, "add", log, greatest);
  node.Set(IsFloat(dtype) ? result : lower::Convert(node, result, DType::kFp32, dtype), dtype);
}

constexpr NodeRow kReductionRows[] = {
    NodeRow("ReduceL1", ReduceL1).Direct(),
    NodeRow("ReduceL2", ReduceL2).Direct(),
    NodeRow("ReduceLogSum", ReduceLogSum).Direct(),
    NodeRow("ReduceLogSumExp", ReduceLogSumExp).Direct(),
    NodeRow("ReduceMax", ReduceMax).Direct(),
    NodeRow("ReduceMean", ReduceMean).Direct(),
    NodeRow("ReduceMin", ReduceMin).Direct(),
    NodeRow("ReduceProd", ReduceProd).Direct(),
    NodeRow("ReduceSum", ReduceSum).Direct(),
    NodeRow("ReduceSumSquare", ReduceSumSquare).Direct(),
};

}  // namespace

std::span<const NodeRow> ReductionRows() { return kReductionRows; }

}  // namespace mlc::onnx
