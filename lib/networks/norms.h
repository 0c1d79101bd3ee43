// lib/networks/norms.h - normalisations.
//
// Scales and biases broadcast against x; a bias may be null, and so may the scale of RmsNorm. If
// they are larger than x, so is the result; callers whose sources do not allow this must check.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc::networks {

enum class NormKind : uint8_t { kRms, kLayer };

// Returns the mean over `axes`, which are kept as dimensions of 1.
Value* Mean(Builder& b, Value* x, const std::vector<int64_t>& axes);
// Returns 1 / sqrt(x + epsilon).
Value* InverseRoot(Builder& b, Value* x, double epsilon);
// Reshapes a vector of channels (dimension 1) so that it broadcasts against a tensor of `rank`: [C,
// 1, 1]. Other tensors are returned unchanged.
Value* PerChannel(Builder& b, Value* vector, int rank);

// Returns (x - mean) / sqrt(variance + epsilon) * scale + bias over the trailing dimensions `axes`.
// This is one operation, which includes scale and bias if they are constants with exactly these
// dimensions.
Value* LayerNorm(Builder& b, Value* x, const std::vector<int64_t>& axes, Value* scale, Value* bias,
                 double epsilon);

struct Normalized {
  Value* y;
  Value* inverse;  // 1 / sqrt(mean square + epsilon)
};
// Returns x / sqrt(mean square + epsilon) * scale + bias. If the mean has been subtracted from x,
// this is a LayerNorm in separate operations with individual results. `squares` are those of x in
// the source's own form; null: they are computed.
Normalized RmsNorm(Builder& b, Value* x, const std::vector<int64_t>& axes, Value* scale,
                   Value* bias, double epsilon, Value* squares = nullptr);

// Normalises x [N, C, ...]: each group of channels, with all its positions, is one row. Error
// "bad-attribute" if groups do not divide C, "dynamic-shape" if N and another size are unknown.
Value* GroupNorm(Builder& b, Value* x, int64_t groups, double epsilon);

}  // namespace mlc::networks
