// frontends/onnx/ops/quantized.h - tensors of integers with a scale and a zero point, as factors of
// exact products (lib/lower/products.h).
#pragma once

#include "frontends/onnx/node.h"
#include "lib/lower/products.h"

namespace mlc::onnx {

// real = scale * (integer - zero). scale and zero are scalars (or have one element), or vectors
// along `axis`, or, with a block size, of the tensor's rank with one element for a block along
// `axis`.
struct Scheme {
  Value* scale = nullptr;
  Value* zero = nullptr;           // null: 0
  DType integers = DType::kUint8;  // in ONNX
  int64_t axis = 1, block = 0;
};

// The scheme whose scale and zero point are these inputs of the node.
Scheme SchemeOf(Node& node, int scale, int zero, DType integers);

// round(x / scale) + zero within the range of the integers; ties to even. x: fp16 or fp32. Gives
// MIL's int8 or uint8 where MIL has the operator, else int32.
Value* Quantize(Node& node, Value* x, Scheme scheme);
// x, integers at run time or a constant, as floats of the ONNX type `to`. A constant keeps its
// quantised form.
Value* Dequantize(Node& node, Value* x, Scheme scheme, DType to);

// value - zero in fp32; zero broadcasts against value, null is 0.
Factor Centered(Node& node, Value* value, Value* zero, DType integers);

// DynamicQuantizeLinear: the whole numbers in fp32, the scale and the zero point, scalars in fp32.
struct DynamicallyQuantized {
  Value *steps, *scale, *zero;
};
DynamicallyQuantized QuantizeDynamically(Node& node, Value* x);

// round(sum * scale) + zero in the range of `integers`; scale and zero broadcast against it.
Value* Requantize(Node& node, Value* sum, Value* scale, Value* zero, DType integers);

// A vector of `axis` of a tensor of this rank in the form that broadcasts; scalars and tensors of
// one element become scalars.
Value* Along(Node& node, Value* vector, int axis, int rank);

struct Range {
  double low, high;
};
Range RangeOf(DType integers);

}  // namespace mlc::onnx
