// frontends/onnx/ops/quantized.h - the functions of lib/lower/quantized_arithmetic.h for inputs of
// a node. Flexible sizes are narrowed to those that match scales and zero points (shape_guard.h).
#pragma once

#include "frontends/onnx/node.h"
#include "lib/lower/quantized_arithmetic.h"

namespace mlc::onnx {

// Returns the scheme given by the node's inputs `scale` and `zero`.
lower::Scheme SchemeOf(Node& node, int scale, int zero, DType integers);

Value* Quantize(Node& node, Value* x, lower::Scheme scheme);
Value* Dequantize(Node& node, Value* x, lower::Scheme scheme, DType to);
lower::Factor Centered(Node& node, Value* value, Value* zero, DType integers);
Value* Requantize(Node& node, Value* sum, Value* scale, Value* zero, DType integers);
// Moves the channels from dimension 1 to the last one, or back.
Value* ChannelsMoved(Node& node, Value* x, bool to_last);

}  // namespace mlc::onnx
