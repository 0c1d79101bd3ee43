// lib/networks/bends.h - the functions of one number that stand between two linear layers.
#pragma once

#include <cstdint>

#include "lib/ir/builder.h"

namespace mlc {

enum class Bend : uint8_t {
  kNone,  // x itself
  kSilu,
  kGelu,
  kGeluTanh,  // gelu by an approximation with tanh
  kRelu,
  kTanh,
  kClampedSilu,  // of gpt-oss: x at most kBendClamp, times sigmoid(1.702 x)
};
inline constexpr double kBendClamp = 7;

Value* Bent(Builder& b, Bend bend, Value* x);

}  // namespace mlc
