// frontends/onnx/ops/convolve.h - convolution for operators that contain one.
#pragma once

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// Convolves x [N, C, ...] with weight [M, C / group, ...] and adds bias [M] (or null). Reads the
// node's attributes auto_pad, dilations, group, kernel_shape, pads and strides.
Value* Convolve(Node& node, Value* x, Value* weight, Value* bias);

}  // namespace mlc::onnx
