// Losses over classes: input [n, c, d...], target [n, d...], weight [c].
#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"

namespace mlc::onnx {

namespace {

Value* Sum(Node& node, Value* x) {
  return node.Make("reduce_sum", {{"x", x}, {"keep_dims", false}});
}

// The mean is weighted: the sum of the weighted losses divided by the sum of the weights. Elements
// whose target is ignore_index have weight 0.
Value* Loss(Node& node, Value* log_probabilities) {
  std::string reduction = node.String("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    node.Unsupported("reduction", "unknown reduction \"{}\"", reduction);
  Value* target = node.In(1);
  if (target->type.rank() + 1 != log_probabilities->type.rank())
    node.Fail("bad-operand", "the shapes of input, {}, and target, {}, do not match",
              ToString(node.shape(0)), ToString(node.shape(1)));
  DType type = log_probabilities->type.dtype;
  Value* weights = nullptr;  // one per element; null: 1
  if (node.Has("ignore_index")) {
    Value* counts = Binary(node, "not_equal", target, node.Int("ignore_index"));
    target = Select(node, counts, target, 0);
    weights = node.builder().Cast(counts, type);
  }
  if (node.HasInput(2)) {
    Value* weight = node.Make("gather", {{"x", node.In(2)}, {"indices", target}, {"axis", 0}});
    weights = weights ? Binary(node, "mul", weight, weights) : weight;
  }
  Value* index = Expanded(node, target, {1});
  Value* chosen =
      node.Make("gather_along_axis", {{"x", log_probabilities}, {"indices", index}, {"axis", 1}});
  Value* loss = Binary(node, "mul", Squeezed(node, chosen, {1}), -1.0);
  if (weights) loss = Binary(node, "mul", loss, weights);
  if (reduction == "none") return loss;
  if (reduction == "mean" && !weights)
    return node.Make("reduce_mean", {{"x", loss}, {"keep_dims", false}});
  Value* sum = Sum(node, loss);
  return reduction == "sum" ? sum : Binary(node, "real_div", sum, Sum(node, weights));
}

void NegativeLogLikelihoodLoss(Node& node) { node.SetAlike(Loss(node, node.In(0))); }

void SoftmaxCrossEntropyLoss(Node& node) {
  Value* x = node.In(0);
  auto over_classes = [&](std::string_view op, Value* value) {
    return node.Make(op, {{"x", value}, {"axes", Ints({1})}, {"keep_dims", true}});
  };
  Value* below = Binary(node, "sub", x, over_classes("reduce_max", x));
  Value* sum = over_classes("reduce_sum", node.Make("exp", {{"x", below}}));
  Value* log = node.Make("log", {{"x", sum}, {"epsilon", 0.0}});
  Value* log_probabilities = Binary(node, "sub", below, log);
  node.Set(0, Loss(node, log_probabilities), node.dtype());
  node.Set(1, log_probabilities, node.dtype());
}

constexpr NodeRow kLossRows[] = {
    {"NegativeLogLikelihoodLoss", NegativeLogLikelihoodLoss, 12},
    {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropyLoss, 12},
};

}  // namespace

std::span<const NodeRow> LossRows() { return kLossRows; }

}  // namespace mlc::onnx
