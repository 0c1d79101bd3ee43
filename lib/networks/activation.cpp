#include "lib/networks/activation.h"

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {
// Sources: huggingface/transformers, activations.py, QuickGELUActivation; openai/gpt-oss,
// gpt_oss/torch/model.py, swiglu.
constexpr double kSteepness = 1.702;
}  // namespace

Value* Activate(Builder& b, Activation activation, Value* x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kSilu:
      return b.Make("silu", {{"x", x}});
    case Activation::kGelu:
      return b.Make("gelu", {{"x", x}, {"mode", "EXACT"}});
    case Activation::kGeluTanh:
      return b.Make("gelu", {{"x", x}, {"mode", "TANH_APPROXIMATION"}});
    case Activation::kRelu:
      return b.Make("relu", {{"x", x}});
    case Activation::kRelu6:
      return b.Make("relu6", {{"x", x}});
    case Activation::kHardSwish:
      return Binary(b, "mul", x, Activate(b, Activation::kHardSigmoid, x));
    case Activation::kHardSigmoid:
      return b.Make("sigmoid_hard", {{"x", x}, {"alpha", 1.0 / 6}, {"beta", 0.5}});
    case Activation::kSigmoid:
      return b.Make("sigmoid", {{"x", x}});
    case Activation::kTanh:
      return b.Make("tanh", {{"x", x}});
    case Activation::kClampedSilu:
      x = Binary(b, "minimum", x, kActivationClamp);
      [[fallthrough]];
    case Activation::kQuickGelu:
      return Binary(b, "mul", x, b.Make("sigmoid", {{"x", Binary(b, "mul", x, kSteepness)}}));
  }
  return x;
}

}  // namespace mlc::networks
