#include "lib/networks/feed_forward.h"

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {

// gpt-oss (openai/gpt-oss, gpt_oss/torch/model.py, swiglu) clamps the up projection to [-7, 7] and
// adds 1.
Value* Gated(Builder& b, Activation activation, Value* gate, Value* up) {
  if (activation == Activation::kClampedSilu)
    up = Binary(
        b, "add",
        b.Make("clip", {{"x", up}, {"alpha", -kActivationClamp}, {"beta", kActivationClamp}}), 1.0);
  return Binary(b, "mul", Activate(b, activation, gate), up);
}

// Applies the matrix of each expert to x [1 or experts, S, in]: [experts, S, out].
Value* EachExpert(Builder& b, DecoderTensors& tensors, Role role, int64_t layer, Value* x,
                  int64_t experts, int64_t out) {
  const int64_t in = x->type.shape.back().constant();
  Value* weight = tensors.Weight(role, layer, {experts, out, in});
  Value* y = b.Make("matmul", {{"x", x}, {"y", weight}, {"transpose_y", true}});
  Value* bias = tensors.Bias(role, layer, {experts, out});
  return bias ? Binary(b, "add", y, Expanded(b, bias, {1})) : y;
}

// Returns the routing weight of each expert for each token, 0 for experts not chosen: [1, S,
// experts].
Value* RoutingWeights(Builder& b, DecoderTensors& tensors, const DecoderConfig& config,
                      int64_t layer, Value* x) {
  Value* scores = Projected(b, tensors, Role::kRouter, layer, x, config.experts);
  auto softmax = [&](Value* of) { return b.Make("softmax", {{"x", of}, {"axis", -1}}); };
  if (config.gating == Gating::kSoftmax) scores = softmax(scores);
  std::vector<Value*> chosen =
      b.MakeAll("topk", {{"x", scores}, {"k", config.experts_used}, {"axis", -1}});
  Value* shares = chosen[0];
  if (config.gating == Gating::kSoftmaxOfChosen) {
    shares = softmax(shares);
  } else if (config.normalised_gates) {
    Value* sum = Reduced(b, "reduce_sum", shares, {-1}, true);
    shares = Binary(b, "real_div", shares, sum);
  }
  Value* places = b.Make("one_hot", {{"indices", chosen[1]},
                                     {"one_hot_vector_size", config.experts},
                                     {"on_value", Tensor::Scalar<float>(1)},
                                     {"off_value", Tensor::Scalar<float>(0)}});
  Value* spread = Binary(b, "mul", places, Expanded(b, shares, {3}));
  return Reduced(b, "reduce_sum", spread, {2}, false);
}

// Every expert processes every token: MIL has no sparse product.
Value* Experts(Builder& b, DecoderTensors& tensors, const DecoderConfig& config, int64_t layer,
               Value* x) {
  auto each = [&](Role role, Value* in, int64_t out) {
    return EachExpert(b, tensors, role, layer, in, config.experts, out);
  };
  Value* gates = Transposed(b, RoutingWeights(b, tensors, config, layer, x), {2, 1, 0});
  Value* up = each(Role::kExpertUps, x, config.expert_feed_forward);
  Value* gate = each(Role::kExpertGates, x, config.expert_feed_forward);
  Value* y = each(Role::kExpertDowns, Gated(b, config.activation, gate, up), config.width);
  y = Binary(b, "mul", y, gates);
  return Reduced(b, "reduce_sum", y, {0}, true);
}

// The expert for all tokens, weighted by a separate gate.
Value* SharedExpert(Builder& b, DecoderTensors& tensors, const DecoderConfig& config, int64_t layer,
                    Value* x) {
  Value* gate = Projected(b, tensors, Role::kSharedGate, layer, x, config.shared_feed_forward);
  Value* up = Projected(b, tensors, Role::kSharedUp, layer, x, config.shared_feed_forward);
  Value* y = Projected(b, tensors, Role::kSharedDown, layer, Gated(b, config.activation, gate, up),
                       config.width);
  if (!tensors.Has(Role::kSharedRouter, layer)) return y;
  Value* share = Projected(b, tensors, Role::kSharedRouter, layer, x, 1);
  return Binary(b, "mul", y, b.Make("sigmoid", {{"x", share}}));
}

}  // namespace

Value* Projected(Builder& b, DecoderTensors& tensors, Role role, int64_t layer, Value* x,
                 int64_t out, bool needs_bias) {
  const int64_t in = x->type.shape.back().constant();
  Value* weight = tensors.Weight(role, layer, {out, in});
  Builder::Args args = {{"x", x}, {"weight", weight}};
  if (Value* bias = tensors.Bias(role, layer, {out}, needs_bias)) args.emplace_back("bias", bias);
  return b.Make("linear", std::move(args));
}

Value* FeedForward(Builder& b, DecoderTensors& tensors, const DecoderConfig& config, int64_t layer,
                   Value* x) {
  if (config.experts > 0) {
    Value* y = Experts(b, tensors, config, layer, x);
    if (config.shared_feed_forward == 0) return y;
    return Binary(b, "add", y, SharedExpert(b, tensors, config, layer, x));
  }
  const int64_t size = config.feed_forward;
  Value* y = nullptr;
  if (!config.gated) {
    y = Activate(b, config.activation, Projected(b, tensors, Role::kUp, layer, x, size));
  } else if (config.gate_in_up) {
    Value* both = Projected(b, tensors, Role::kUp, layer, x, 2 * size);
    std::vector<Value*> parts = Parts(b, both, {size, size}, 2);
    y = Gated(b, config.activation, parts[0], parts[1]);
  } else {
    Value* gate = Projected(b, tensors, Role::kGate, layer, x, size);
    y = Gated(b, config.activation, gate, Projected(b, tensors, Role::kUp, layer, x, size));
  }
  return Projected(b, tensors, Role::kDown, layer, y, config.width);
}

}  // namespace mlc::networks
