// lib/ir/packed.h - elements of less than a byte: each follows the one before without a gap, LSB
// first, across bytes too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

inline bool IsSubByte(DType dtype) { return Bits(dtype) % 8 != 0; }
// The type of the byte that holds a sub-byte element alone; others are what they are.
DType InBytes(DType dtype);

// Element i of packed bytes, sign-extended where the type has a sign.
uint8_t GetPacked(const std::byte* bytes, DType dtype, int64_t i);
// Into zeroed bytes.
void PutPacked(std::byte* bytes, DType dtype, int64_t i, uint8_t value);
// Elements [first, first + count), from anywhere; each sub-byte one in a byte of its own, with its
// sign.
void ReadBytes(const Tensor& source, int64_t first, int64_t count, std::byte* out);

// Bytes that hold elements of `dtype`, as those elements; lazy for sub-byte types.
Tensor ViewedPacked(const Tensor& bytes, DType dtype, Dims dims);
// And back: the bytes in which the elements lie, as a vector.
Tensor BytesOf(const Tensor& tensor);

// Lazy; what Tensor::Cast is where either type is sub-byte, and Tensor::Transposed and
// Tensor::Rows where the tensor's is.
Tensor CastPacked(const Tensor& source, DType dtype);
Tensor TransposePacked(const Tensor& source, const std::vector<int>& perm);
Tensor RowsOfPacked(const Tensor& source, int64_t begin, int64_t end);

}  // namespace mlc
