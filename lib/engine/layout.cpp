#include "lib/engine/layout.h"

#include <algorithm>
#include <numeric>

namespace mlc::engine {

namespace {

// The permutations between [n, c, ...] and [n, ..., c].
std::vector<int> ToLast(size_t rank) {
  std::vector<int> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return perm;
}
std::vector<int> FromLast(size_t rank) {
  std::vector<int> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  return perm;
}

}  // namespace

ImageLayout ImageLayout::Of(const Tensor& image) {
  if (image.rank() < 3 || image.rank() > 5 || !image.is_lazy()) return ImageLayout();
  return ImageLayout(!image.Transposed(ToLast(image.dims().size())).is_lazy());
}

ImageLayout ImageLayout::Of(std::span<const Tensor> operands, const Dims& result) {
  for (const Tensor& operand : operands)
    if (operand.dims() == result)
      if (ImageLayout layout = Of(operand); layout.channels_last()) return layout;
  return ImageLayout();
}

Dims ImageLayout::Laid(const Dims& dims) const {
  Dims laid = dims;
  if (channels_last_) std::rotate(laid.begin() + 1, laid.begin() + 2, laid.end());
  return laid;
}

Tensor ImageLayout::Laid(const Tensor& tensor, size_t rank) const {
  if (!channels_last_ || tensor.rank() == 0) return tensor;
  Dims dims = tensor.dims();
  dims.insert(dims.begin(), rank - dims.size(), 1);
  return tensor.Reshaped(dims).Transposed(ToLast(rank)).InMemory();
}

Tensor ImageLayout::Shown(Tensor laid) const {
  if (!channels_last_) return laid;
  return laid.Transposed(FromLast(laid.dims().size()));
}

}  // namespace mlc::engine
