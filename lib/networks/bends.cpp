#include "lib/networks/bends.h"

#include "lib/ir/arithmetic.h"

namespace mlc {

namespace {
constexpr double kSteepness = 1.702;  // openai/gpt-oss, gpt_oss/torch/model.py, swiglu
}  // namespace

Value* Bent(Builder& b, Bend bend, Value* x) {
  switch (bend) {
    case Bend::kNone:
      return x;
    case Bend::kSilu:
      return b.Make("silu", {{"x", x}});
    case Bend::kGelu:
      return b.Make("gelu", {{"x", x}, {"mode", "EXACT"}});
    case Bend::kGeluTanh:
      return b.Make("gelu", {{"x", x}, {"mode", "TANH_APPROXIMATION"}});
    case Bend::kRelu:
      return b.Make("relu", {{"x", x}});
    case Bend::kTanh:
      return b.Make("tanh", {{"x", x}});
    case Bend::kClampedSilu:
      x = Binary(b, "minimum", x, kBendClamp);
      return Binary(b, "mul", x, b.Make("sigmoid", {{"x", Binary(b, "mul", x, kSteepness)}}));
  }
  return x;
}

}  // namespace mlc
