// lib/ops/sliding_window.h - sliding windows of convolutions and pools: attributes, output sizes,
// padding.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lib/ir/op_def.h"

namespace mlc {

// The window of conv, conv_transpose or a pool, with one entry per spatial dimension; `pad` has
// two.
struct Window {
  Shape kernel;
  std::vector<int64_t> strides, dilations, pad;
  std::string pad_type;
  bool ceil_mode = false;

  int spatial() const { return static_cast<int>(kernel.size()); }
  // (kernel - 1) * dilation + 1
  Dim Extent(int i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  // The output size for input size `in`.
  Dim Out(int i, const Dim& in) const;
  // The padding before the first input element; for `same` it depends on the input size.
  int64_t Before(int i, int64_t in) const;
  // The number of elements of a pool's window starting at `start` that lie in the input of size
  // `in` or its padding. That is all of them unless ceil_mode lets the window extend beyond the
  // padding (as torch counts). 1 for i < 0.
  int64_t PaddedTaps(int i, int64_t in, int64_t start) const;
};

// Reads the operands `strides`, `pad_type`, `pad` and, if present, `dilations`. The kernel sizes
// are those of `weight` from its third dimension (conv, conv_transpose) or `kernel_sizes`. Fails if
// the number of spatial dimensions is not 1 to 3 or differs between operands, or a value is invalid
// for a window.
Window ReadWindow(const OpContext& context);

// Defaults as int32 vectors: ones for strides and dilations, zeros for pad.
Tensor WindowDefault(const OpContext& context, std::string_view param);

// A window over static shapes, extended to three spatial dimensions with leading ones.
struct Geometry {
  using Spatial = std::array<int64_t, 3>;
  Spatial in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1},
      before{0, 0, 0};
  Geometry(const Window& window, const Dims& in_dims, const Dims& out_dims);
  // The half-open range of kernel indices whose elements lie inside the input, for output index o
  // of dimension i.
  std::array<int64_t, 2> Taps(int i, int64_t o) const;
  int64_t In(int i, int64_t o, int64_t k) const {
    return o * stride[i] - before[i] + k * dilation[i];
  }
};

// The leading crop of conv_transpose's full result per spatial dimension, for static shapes.
std::vector<int64_t> TransposedCrop(const Window& window, const Dims& in_dims,
                                    const Dims& out_dims);

}  // namespace mlc
