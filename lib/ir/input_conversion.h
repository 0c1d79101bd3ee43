// lib/ir/input_conversion.h - tensors supplied by the user (--input, --inputs, --const, recipes),
// converted to the dtype that the model declares.
#pragma once

#include <string>
#include <string_view>

#include "lib/ir/program.h"
#include "lib/ir/tensor.h"

namespace mlc {

// How error messages refer to a supplied tensor, and the id of these errors.
struct Given {
  std::string_view error_id;  // "bad-input", "bad-constant" or "bad-recipe"
  std::string what;           // `input "x"`
};

// Reinterprets uint16 as bf16 if `declared` is bf16: NumPy has no bfloat16, so files store its bits
// as uint16, as in ONNX's own test data. Returns any other tensor unchanged.
Tensor WithBfloat16(const Tensor& given, DType declared);

// Converts a tensor to `declared`, which must represent every element exactly (-0.0 equals 0, NaN
// equals NaN), and then to `border`, the dtype in which Core ML passes it: floats are rounded but
// must stay finite, integers must keep their value. The error names the first element that does not
// fit.
Tensor ConvertInput(const Tensor& given, DType declared, DType border, const Given& name);
inline Tensor ConvertInput(const Tensor& given, DType declared, const Given& name) {
  return ConvertInput(given, declared, declared, name);
}

// Returns whether `given` is acceptable for an input that the function lacks (AbsentInput).
bool IsValueOf(const AbsentInput& input, const Tensor& given);

}  // namespace mlc
