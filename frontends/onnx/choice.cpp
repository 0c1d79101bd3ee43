#include "frontends/onnx/choice.h"

#include <algorithm>

#include "frontends/onnx/sizes.h"

namespace mlc::onnx {

namespace {

// What two integers, each of one known element, differ by; nothing for other operands.
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
    bool passes = op->is("cast") || op->is("squeeze") || op->is("expand_dims") || op->is("reshape");
    if (op->is("logical_not"))
      when_equal = !when_equal;
    else if (!passes)
      return std::nullopt;
    if (!op->value("x")) return std::nullopt;
  }
  if (!op) return std::nullopt;
  if (op->is("not_equal")) when_equal = !when_equal;
  std::optional<Dim> difference = Difference(*op);
  std::vector<std::string> names;
  if (difference) difference->CollectSymbols(names);
  Symbols& symbols = node.builder().symbols();
  if (names.size() != 1 || !symbols.contains(names[0])) return std::nullopt;

  Symbol& symbol = symbols[names[0]];
  constexpr int64_t kMostSizes = 1 << 16;
  if (symbol.high - symbol.low >= kMostSizes) return std::nullopt;
  std::vector<int64_t> sizes = symbol.enumerated, fit;
  if (sizes.empty())
    for (int64_t size = symbol.low; size <= symbol.high; ++size) sizes.push_back(size);
  for (int64_t size : sizes)
    if (difference->Evaluate({{names[0], size}}) == 0) fit.push_back(size);
  bool in_a_row = !fit.empty() && fit.back() - fit.front() + 1 == std::ssize(fit);
  if (fit.empty() || (symbol.enumerated.empty() && !in_a_row)) return std::nullopt;
  symbol.low = fit.front();
  symbol.high = fit.back();
  if (!symbol.enumerated.empty()) symbol.enumerated = fit;
  std::string what = fmt::format("{} from {} to {}", names[0], symbol.low, symbol.high);
  node.builder().diagnostics().Note(
      fmt::format("{}: only for {} do the branches agree with what follows", node.op(), what));
  node.builder().diagnostics().Decide(
      "shape", what, "a condition on this size chooses between results of different shapes");
  return when_equal;
}

Value* AllOrNone(Builder& builder, Value* x, int axis, Value* keep) {
  int rank = x->type.rank();
  Value* shape = builder.Make("shape", {{"x", x}});
  Value* some = builder.Make("mul", {{"x", shape}, {"y", builder.Cast(keep, DType::kInt32)}});
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
