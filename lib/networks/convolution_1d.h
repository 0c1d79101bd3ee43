// lib/networks/convolution_1d.h - convolutions over time, of sequences [1, C, N].
#pragma once

#include <string>

#include "lib/networks/layers.h"

namespace mlc::networks {

struct Convolution1d {
  int64_t channels, taps;  // of the result
  int64_t stride = 1, padding = 0, groups = 1, dilation = 1;
};
// Convolves x with name.weight [channels, C / groups, taps] and, if there is one, name.bias.
Value* Convolved(Builder& b, Layers& layers, const std::string& name, Value* x,
                 const Convolution1d& how);
// The same with this weight.
Value* Convolved(Builder& b, Value* weight, Value* bias, Value* x, const Convolution1d& how);

// Returns v [O, I, K] with each tap scaled to the length g [1, 1, K] (torch.nn.utils.weight_norm with
// dim 2). Error "bad-tensor" for other sizes.
Tensor NormalisedTaps(const Tensor& v, const Tensor& g, const std::string& name);

}  // namespace mlc::networks
