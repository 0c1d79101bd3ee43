// lib/ir/given.h - tensors that a user gives (--input, --inputs, --const, recipes), in the type
// that the model declares.
#pragma once

#include <string>
#include <string_view>

#include "lib/ir/program.h"
#include "lib/ir/tensor.h"

namespace mlc {

// What names a given tensor in errors, and their id.
struct Given {
  std::string_view error_id;  // "bad-input", "bad-constant" or "bad-recipe"
  std::string what;           // `input "x"`
};

// NumPy has no bfloat16: files hold its bits as uint16, as ONNX's own test data do. Any other
// tensor is returned as it is.
Tensor WithBfloat16(const Tensor& given, DType declared);

// The tensor as `declared`, which must hold each element exactly (-0.0 is 0, a NaN is a NaN), then
// as `border`, the type in which Core ML passes `declared`: floats are rounded there, but stay
// finite, integers stay what they are. The error names the first element that does not fit.
Tensor TakeGiven(const Tensor& given, DType declared, DType border, const Given& name);
inline Tensor TakeGiven(const Tensor& given, DType declared, const Given& name) {
  return TakeGiven(given, declared, declared, name);
}

// Whether an input that the function has not may be given as `given` (AbsentInput).
bool IsValueOf(const AbsentInput& input, const Tensor& given);

}  // namespace mlc
