// lib/lower/quantized.h - tensors of integers with a scale and a zero point: to and from floats, and as
// factors of exact products (products.h).
//
// `integers` and other dtypes are those of the source (convert.h). A function that takes `fits` gives
// it what broadcasting against a scale or zero point may have enlarged, and that before; null: nothing
// has. Error "bad-operand" where scales or zero points do not fit a tensor, "unsupported-dtype" where
// a type cannot be computed with.
#pragma once

#include <functional>

#include "lib/ir/builder.h"
#include "lib/lower/products.h"

namespace mlc {

// real = scale * (integer - zero). scale and zero are scalars (or have one element), or vectors
// along `axis`, or, with a block size, of the tensor's rank with one element for a block along
// `axis`.
struct Scheme {
  Value* scale = nullptr;
  Value* zero = nullptr;  // null: 0
  DType integers = DType::kUint8;
  int64_t axis = 1, block = 0;   // a negative axis counts from the end
  Opset target = Opset::kIos17;  // MIL has operators for it from iOS17 on
};
using Fits = std::function<Value*(Value* changed, Value* before)>;

// round(x / scale) + zero within the range of the integers; ties to even. x: fp16 or fp32. Gives
// MIL's int8 or uint8 where MIL has the operator, else int32.
Value* Quantize(Builder& b, Value* x, const Scheme& scheme);
// x, integers at run time or a constant, as floats of type `to`. A constant keeps its encoding.
Value* Dequantize(Builder& b, Value* x, const Scheme& scheme, DType to);

// The whole numbers in fp32 from 0 to 255, the scale and the zero point, scalars in fp32, into which
// the range of x (fp32) and 0 is divided.
struct DynamicallyQuantized {
  Value *steps, *scale, *zero;
};
DynamicallyQuantized QuantizeDynamically(Builder& b, Value* x);

// value - zero in fp32; zero broadcasts against value, null is 0.
Factor Centered(Builder& b, Value* value, Value* zero, DType integers, const Fits& fits = {});
// round(sum * scale) + zero in the range of `integers`, int32; scale and zero broadcast against it.
Value* Requantize(Builder& b, Value* sum, Value* scale, Value* zero, DType integers,
                  const Fits& fits = {});

// A vector of `axis` of a tensor of this rank in the form that broadcasts; scalars and tensors of
// one element become scalars.
Value* Along(Builder& b, Value* vector, int axis, int rank);
// The float type that computes with a source's type.
DType FloatType(DType source);

}  // namespace mlc
