// test/lib/ir/tensors.h - shorthands for tensors with given elements, named by their element type.
#pragma once

#include <vector>

#include "lib/ir/tensor.h"

namespace mlc::test {

using Ints64 = std::vector<int64_t>;

inline Tensor F32(Dims dims, const std::vector<float>& values) {
  return Tensor::Of(std::move(dims), values);
}
inline Tensor F64(Dims dims, const std::vector<double>& values) {
  return Tensor::Of(std::move(dims), values);
}
inline Tensor I32(Dims dims, const std::vector<int32_t>& values) {
  return Tensor::Of(std::move(dims), values);
}
inline Tensor I64(Dims dims, const std::vector<int64_t>& values) {
  return Tensor::Of(std::move(dims), values);
}
inline Tensor F16(Dims dims, const std::vector<double>& values) {
  return F64(std::move(dims), values).Cast(DType::kFp16);
}

}  // namespace mlc::test
