// lib/passes/encoded_constants.h - lowers constants that the source stores encoded to Core ML's
// constexpr operations.
#pragma once

#include <optional>

#include "lib/ir/encoding.h"
#include "lib/passes/pass.h"

namespace mlc::passes {

// Returns the first target that can store the constant in its own encoding, or nothing if the pass
// makes it dense for every target.
std::optional<Opset> EncodedSince(const Operation& op, PassContext::Precision precision);

// Returns whether an fp32 constant, or the result of a constexpr operation, keeps its encoding only
// in fp32, because fp16 cannot represent its scales or its table. Reads these. `values` is the
// decoded result.
bool NeedsFp32(const Operation& op, const Tensor& values, Opset target);

// Rewrites scale * data + bias as scale * (data - offset), with scale, offset and the arithmetic in
// `dtype`. `error` is the root mean square error relative to that of the values, measured on at
// most 131072 of them. Where scale is 0, or fp16 cannot represent the offset, data is set to 0 and
// the result is scale' * (0 - offset') with scale' = bias and offset' = -1.
struct Unbiased {
  Encoding encoding;
  double error = 0;
};
Unbiased WithoutBias(const Encoding& encoding, DType dtype);

}  // namespace mlc::passes
