// lib/lower/quantized_arithmetic.h - quantised integer tensors with scale and zero point:
// conversion to and from floats, and use as factors of exact products (matrix_products.h).
//
// `integers` and other dtypes are source types (convert.h). A function with a parameter `fits`
// calls it with the value after and before broadcasting against a scale or zero point, and uses its
// result, so that the caller can handle an enlarged shape; null: no check. Error "bad-operand" if
// scales or zero points do not match the tensor, "unsupported-dtype" for unsupported types.
#pragma once

#include <functional>

#include "lib/ir/builder.h"
#include "lib/lower/matrix_products.h"

namespace mlc::lower {

// real = scale * (integer - zero). scale and zero are scalars (or have one element), vectors along
// `axis`, or, if a block size is given, tensors of the same rank with one element per block along
// `axis`.
struct Scheme {
  Value* scale = nullptr;
  Value* zero = nullptr;  // null: 0
  DType integers = DType::kUint8;
  int64_t axis = 1, block = 0;   // a negative axis counts from the end
  Opset target = Opset::kIos17;  // MIL has quantize and dequantize from iOS17 on
};
using Fits = std::function<Value*(Value* changed, Value* before)>;

// round(x / scale) + zero, saturated to the range of the integers; ties round to even. x is fp16 or
// fp32. The result is MIL's int8 or uint8 if MIL has the operator, else int32.
Value* Quantize(Builder& b, Value* x, const Scheme& scheme);
// Dequantises x, run-time integers or a constant, to floats of type `to`. A constant keeps its
// encoding.
Value* Dequantize(Builder& b, Value* x, const Scheme& scheme, DType to);

// Dynamic quantisation of x (fp32): integers from 0 to 255 in fp32, and the scale and zero point
// (fp32 scalars) that cover the range of x and 0.
struct DynamicallyQuantized {
  Value *steps, *scale, *zero;
};
DynamicallyQuantized QuantizeDynamically(Builder& b, Value* x);

// value - zero in fp32; zero broadcasts against value, null means 0.
Factor Centered(Builder& b, Value* value, Value* zero, DType integers, const Fits& fits = {});
// round(sum * scale) + zero, saturated to the range of `integers`, as int32; scale and zero
// broadcast against sum.
Value* Requantize(Builder& b, Value* sum, Value* scale, Value* zero, DType integers,
                  const Fits& fits = {});

// Reshapes a vector along `axis` so that it broadcasts against a tensor of this rank; scalars and
// tensors of one element become scalars.
Value* Along(Builder& b, Value* vector, int axis, int rank);
// Reshapes a scale or zero point of the rows or columns of matrices: a scalar, a vector, or a value
// that already has the shape of a reduced matrix.
Value* OverRows(Builder& b, Value* value);
Value* OverColumns(Builder& b, Value* value);
// The float type used to compute with a source type.
DType FloatType(DType source);

}  // namespace mlc::lower
