// lib/networks/norms.h - normalisations.
//
// Scales and biases broadcast against x; a bias may be null, and the scale of RmsNorm. Where they are larger than x, so is
// the result: a source whose values do not broadcast that way looks.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc {

enum class NormKind : uint8_t { kRms, kLayer };

// Over `axes`, which stay as sizes of 1.
Value* Mean(Builder& b, Value* x, const std::vector<int64_t>& axes);
// 1 / sqrt(x + epsilon)
Value* InverseRoot(Builder& b, Value* x, double epsilon);
// A vector of channels (dimension 1) in the form that broadcasts against a tensor of `rank`: [C, 1,
// 1]. Others as they are.
Value* PerChannel(Builder& b, Value* vector, int rank);

// (x - mean) / sqrt(variance + epsilon) * scale + bias over `axes`, which are the last ones: one
// operation, with scale and bias in it where they are constants of just these dimensions.
Value* LayerNorm(Builder& b, Value* x, const std::vector<int64_t>& axes, Value* scale, Value* bias,
                 double epsilon);

struct Normalized {
  Value* y;
  Value* inverse;  // 1 / sqrt(mean square + epsilon)
};
// x / sqrt(mean square + epsilon) * scale + bias: of x less its mean, a LayerNorm in operations of
// which each is a result. `squares` are those of x in the source's own form; null: they are made.
Normalized RmsNorm(Builder& b, Value* x, const std::vector<int64_t>& axes, Value* scale,
                   Value* bias, double epsilon, Value* squares = nullptr);

// x [N, C, ...] with each group of channels, over all its positions, normalised as one row. Error
// "bad-attribute" where groups do not divide C, "dynamic-shape" where N and another size are open.
Value* GroupNorm(Builder& b, Value* x, int64_t groups, double epsilon);

}  // namespace mlc
