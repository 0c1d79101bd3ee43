#include "frontends/onnx/branch_folding.h"

#include "frontends/onnx/scope.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::onnx {

namespace {

// The difference of two integer operands with one known element each; nothing for other operands.
std::optional<Dim> Difference(const Operation& op) {
  const Value *x = op.value("x"), *y = op.value("y");
  auto a = x ? ElementsOf(x) : std::nullopt, b = y ? ElementsOf(y) : std::nullopt;
  if (!a || !b || a->size() != 1 || b->size() != 1) return std::nullopt;
  return a->front() - b->front();
}

}  // namespace

std::optional<bool> AssumeSize(Node& node, const Value* condition) {
  bool when_equal = true;
  const Operation* op = condition->def;
  for (; op && !op->is("equal") && !op->is("not_equal"); op = op->value("x")->def) {
    bool passes = op->is("cast") || op->def->moves == Moves::kShape;
    if (op->is("logical_not"))
      when_equal = !when_equal;
    else if (!passes)
      return std::nullopt;
    if (!op->value("x")) return std::nullopt;
  }
  if (!op) return std::nullopt;
  if (op->is("not_equal")) when_equal = !when_equal;
  std::optional<Dim> difference = Difference(*op);
  if (!difference || node.scope().import().trial) return std::nullopt;
  std::optional<Narrowed> narrowed = Narrow(
      node, *difference, [](int64_t value) { return value == 0; },
      "only for these sizes do the branches produce shapes that later nodes accept");
  if (!narrowed || !narrowed->all) return std::nullopt;
  return when_equal;
}

Value* AllOrNone(Builder& builder, Value* x, int axis, Value* keep) {
  int rank = x->type.rank();
  Value* shape = builder.Make("shape", {{"x", x}});
  Value* some = Binary(builder, "mul", shape, builder.Cast(keep, DType::kInt32));
  std::vector<bool> whole(rank, true);
  whole[axis] = false;
  Value* result = builder.Make("slice_by_index", {{"x", x},
                                                  {"begin", Ints(std::vector<int64_t>(rank))},
                                                  {"end", some},
                                                  {"end_mask", Tensor::Vector(whole)}});
  Bounded(builder, result->type.shape[axis], x->type.shape[axis]);
  return result;
}

}  // namespace mlc::onnx
