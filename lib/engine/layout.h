// lib/engine/layout.h - channels-last images.
//
// Convolutions are fastest on images [n, c, ...] that are stored as [n, ..., c]. Such a result is a
// lazy transposition of its memory and can be read like any other tensor. Kernels with
// KernelRow::any_layout accept it without conversion; for all others the engine converts it to
// row-major order once.
#pragma once

#include <span>

#include "lib/ir/tensor.h"

namespace mlc::engine {

class ImageLayout {
 public:
  ImageLayout() = default;  // row-major
  explicit ImageLayout(bool channels_last) : channels_last_(channels_last) {}
  // Returns the layout of an image of three to five dimensions; row-major if both layouts are the
  // same.
  static ImageLayout Of(const Tensor& image);
  // Returns the layout for the result of an elementwise operation: that of an operand of the same
  // sizes.
  static ImageLayout Of(std::span<const Tensor> operands, const Dims& result);

  bool channels_last() const { return channels_last_; }
  // Returns the sizes in memory order.
  Dims Laid(const Dims& dims) const;
  // Returns the same elements with dims() in memory order, in contiguous memory. A tensor of fewer
  // than `rank` dimensions gets leading dimensions of 1, as in broadcasting; a scalar is unchanged.
  Tensor Laid(const Tensor& tensor, size_t rank) const;
  Tensor Laid(const Tensor& image) const { return Laid(image, image.dims().size()); }
  // The inverse of Laid().
  Tensor Shown(Tensor laid) const;

 private:
  bool channels_last_ = false;
};

}  // namespace mlc::engine
