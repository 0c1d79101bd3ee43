// lib/passes/encoded_constants.h - constants that their source holds encoded, in Core ML's operations.
#pragma once

#include <optional>

#include "lib/ir/encoding.h"
#include "lib/passes/pass.h"

namespace mlc {

// The first target that stores the constant in its encoding as it is; nothing where the pass leaves
// it dense whatever the target.
std::optional<Opset> EncodedSince(const Operation& op, PassContext::Precision precision);

// Whether an fp32 constant, or what a constexpr operation decodes, keeps its encoding as long as it is
// fp32: scales or a table that fp16 cannot hold. Reads those. `values` are the result's.
bool NeedsFp32(const Operation& op, const Tensor& values, Opset target);

// scale * data + bias as scale * (data - offset), scale and offset in `dtype`, in which the arithmetic
// is done too. `error` is its root mean square error by that of the values, over 131072 of them at
// most. Where scale is 0, or fp16 has no such offset, so are the data: what is left is
// scale' * (0 - offset') with scale' = bias and offset' = -1.
struct Unbiased {
  Encoding encoding;
  double error = 0;
};
Unbiased WithoutBias(const Encoding& encoding, DType dtype);

}  // namespace mlc
