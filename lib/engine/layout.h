// lib/engine/layout.h - images whose channels lie last in memory.
//
// Convolutions are fastest on images [n, c, ...] whose elements lie as [n, ..., c]. Such a result
// is a lazy transposition of what lies in memory: everybody may read it as any other tensor.
// Kernels that say so (KernelRow::any_layout) take it as it lies, which costs nothing; for all
// others the engine brings it into row-major order once.
#pragma once

#include <span>

#include "lib/ir/tensor.h"

namespace mlc {

class ImageLayout {
 public:
  ImageLayout() = default;  // row-major
  explicit ImageLayout(bool channels_last) : channels_last_(channels_last) {}
  // How an image of three to five dimensions lies. Where both are the same: row-major.
  static ImageLayout Of(const Tensor& image);
  // How the result of an elementwise operation shall lie: as an operand of the same sizes does.
  static ImageLayout Of(std::span<const Tensor> operands, const Dims& result);

  bool channels_last() const { return channels_last_; }
  // Sizes in the order of memory.
  Dims Laid(const Dims& dims) const;
  // The same elements with dims() in the order of memory, in memory. What has fewer dimensions than
  // `rank` is given ones in front, as broadcasting does; a scalar stays.
  Tensor Laid(const Tensor& tensor, size_t rank) const;
  Tensor Laid(const Tensor& image) const { return Laid(image, image.dims().size()); }
  // What Laid() came from.
  Tensor Shown(Tensor laid) const;

 private:
  bool channels_last_ = false;
};

}  // namespace mlc
