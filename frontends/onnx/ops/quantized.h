// frontends/onnx/ops/quantized.h - the functions of lib/lower/quantized.h on a node's values, whose open
// sizes are narrowed to those with which scales and zero points fit (need.h).
#pragma once

#include "frontends/onnx/node.h"
#include "lib/lower/quantized.h"

namespace mlc::onnx {

// The scheme whose scale and zero point are these inputs of the node.
Scheme SchemeOf(Node& node, int scale, int zero, DType integers);

Value* Quantize(Node& node, Value* x, Scheme scheme);
Value* Dequantize(Node& node, Value* x, Scheme scheme, DType to);
Factor Centered(Node& node, Value* value, Value* zero, DType integers);
Value* Requantize(Node& node, Value* sum, Value* scale, Value* zero, DType integers);

}  // namespace mlc::onnx
