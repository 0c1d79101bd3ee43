// frontends/onnx/ops/convolve.h - convolutions, for the operators that have one inside.
#pragma once

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// x [N, C, ...] convolved with weight [M, C / group, ...] plus bias [M] (or null), with the node's
// attributes auto_pad, dilations, group, kernel_shape, pads and strides.
Value* Convolve(Node& node, Value* x, Value* weight, Value* bias);

}  // namespace mlc::onnx
