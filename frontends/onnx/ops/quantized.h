// frontends/onnx/ops/quantized.h - tensors of integers with a scale and a zero point, and products of
// them that are exact.
#pragma once

#include <functional>

#include "frontends/onnx/node.h"

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

// Whole numbers in fp32 as a factor of an exact product.
struct Factor {
  Value* value = nullptr;
  double most = 0;   // magnitudes are at most this
  double reach = 0;  // what is multiplied for one result sums up to this; 0: not known
};
// value - zero in fp32; zero broadcasts against value, null is 0.
Factor Centered(Node& node, Value* value, Value* zero, DType integers);

// The sums of products that `multiply` makes of x and y, each of at most `terms` products. fp32
// counts to 2^24: what may leave that is computed in parts and added up in int32. The result is
// fp32 when `most` (which is set) stays within it, else int32.
using Multiply = std::function<Value*(Value* x, Value* y)>;
Factor ExactProduct(Node& node, const Factor& x, const Factor& y, double terms,
                    const Multiply& multiply);
// The greatest sum of magnitudes along the middle dimension of a constant [outer, terms, inner].
double Reach(const Tensor& tensor, int64_t outer, int64_t terms, int64_t inner);
// ExactProduct of matrices [..., M, K] and [..., K, N].
Factor ExactMatrixProduct(Node& node, Factor x, Factor y);

// sum + addend (int32), in fp32 where that is exact.
Factor PlusInteger(Node& node, const Factor& sum, Value* addend);

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
