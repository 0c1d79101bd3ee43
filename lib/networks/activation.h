// lib/networks/activation.h - activation functions.
#pragma once

#include <cstdint>

#include "lib/ir/builder.h"

namespace mlc::networks {

enum class Activation : uint8_t {
  kNone,  // x itself
  kSilu,
  kGelu,
  kGeluTanh,  // the tanh approximation of gelu
  kRelu,
  kRelu6,        // min(max(x, 0), 6)
  kHardSwish,    // x min(max(x + 3, 0), 6) / 6
  kHardSigmoid,  // min(max(x + 3, 0), 6) / 6
  kSigmoid,
  kTanh,
  kQuickGelu,    // x sigmoid(1.702 x)
  kClampedSilu,  // gpt-oss: min(x, kActivationClamp) sigmoid(1.702 x)
};
inline constexpr double kActivationClamp = 7;

Value* Activate(Builder& b, Activation activation, Value* x);

}  // namespace mlc::networks
