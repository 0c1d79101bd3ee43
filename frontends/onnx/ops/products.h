// frontends/onnx/ops/products.h - convolutions and matrix products, for the operators that have one
// inside.
#pragma once

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// x [N, C, ...] convolved with weight [M, C / group, ...] plus bias [M] (or null), with the node's
// attributes auto_pad, dilations, group, kernel_shape, pads and strides.
Value* Convolve(Node& node, Value* x, Value* weight, Value* bias);

// a x b as numpy has it: vectors become rows and columns, what stands before the last two
// dimensions broadcasts.
Value* MatrixProduct(Node& node, Value* a, Value* b);

}  // namespace mlc::onnx
