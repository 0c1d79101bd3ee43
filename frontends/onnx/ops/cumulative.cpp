// CumSum and CumProd.
#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// The operands and attributes of a cumulative operator.
struct Running {
  Value* x;
  int axis;
  bool exclusive, reverse;
};
Running ReadRunning(Node& node) {
  Value* x = node.In(0);
  std::vector<int64_t> axis = {0};
  if (node.rank() != 1 || node.Known(1)) {
    axis = node.ConstantInts(1, "axis");
  } else {  // a vector has only one axis
    auto bound = [&](int32_t number) { return node.Const(Tensor::Scalar(number)); };
    Value* given = Single(node, node.In(1), "axis");
    Value* ok = node.Make("logical_and", {{"x", Binary(node, "greater_equal", given, bound(-1))},
                                          {"y", Binary(node, "less_equal", given, bound(0))}});
    x = Guarded(node, lower::AtRunTime(node, x, node.dtype()), ok);
  }
  if (axis.size() != 1) node.Fail("bad-operand", "axis must be a single number");
  if (!node.In(0)->is_constant()) node.RequireRunTimeArithmetic(node.dtype());
  return {x, node.Axis(axis[0], node.rank()), node.Int("exclusive", 0) != 0,
          node.Int("reverse", 0) != 0};
}

void CumSum(Node& node) {
  Running running = ReadRunning(node);
  node.SetAlike(node.Make("cumsum", {{"x", running.x},
                                     {"axis", running.axis},
                                     {"exclusive", running.exclusive},
                                     {"reverse", running.reverse}}));
}

// Prefix product by doubling: in each step, every element is multiplied by the one 1, 2, 4, ...
// positions before it.
void CumProd(Node& node) {
  Running running = ReadRunning(node);
  DType dtype = node.dtype();
  Value* x = lower::AtRunTime(node, running.x, dtype);
  int rank = node.rank();
  constexpr int64_t kLongest = int64_t{1} << 20;
  int64_t length = Greatest(node, node.shape()[running.axis]);
  if (length > kLongest)
    node.Fail("resource-limit", "a product of up to {} elements is too large", length);
  // Positions without a source element hold ones.
  auto shifted = [&](Value* value, int64_t by) {
    std::vector<int64_t> pad(2 * rank, 0), begin(rank, 0), end(rank, 0);
    std::vector<bool> first(rank, true), last(rank, true);
    pad[2 * running.axis + (running.reverse ? 1 : 0)] = by;
    (running.reverse ? begin : end)[running.axis] = running.reverse ? by : -by;
    (running.reverse ? first : last)[running.axis] = false;
    value = node.Make("pad", {{"x", value},
                              {"pad", Ints(pad)},
                              {"mode", "constant"},
                              {"constant_val", Tensor::Full(value->type.dtype, {}, 1)}});
    return node.Make("slice_by_index", {{"x", value},
                                        {"begin", Ints(begin)},
                                        {"end", Ints(end)},
                                        {"begin_mask", Tensor::Vector<bool>(first)},
                                        {"end_mask", Tensor::Vector<bool>(last)}});
  };
  if (running.exclusive) x = shifted(x, 1);
  for (int64_t by = 1; by < length; by *= 2) x = Binary(node, "mul", x, shifted(x, by));
  node.Set(x, dtype);
}

constexpr NodeRow kCumulativeRows[] = {
    {"CumProd", CumProd, 26},
    NodeRow("CumSum", CumSum, 11).Direct(),
};

}  // namespace

std::span<const NodeRow> CumulativeRows() { return kCumulativeRows; }

}  // namespace mlc::onnx
