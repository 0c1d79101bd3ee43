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

// Eight elements of `bits` each, which are packed into as many bytes, each in a byte of its own, and
// back; the lowest comes first. What is above the bits of an element is 0.
constexpr uint64_t Spread(uint64_t packed, int bits) {
  auto ones = [](int count) { return (uint64_t{1} << count) - 1; };
  uint64_t x = (packed & ones(4 * bits)) | (packed >> 4 * bits & ones(4 * bits)) << 32;
  const uint64_t pairs = ones(2 * bits) * 0x0000000100000001u;
  x = (x & pairs) | (x >> 2 * bits & pairs) << 16;
  const uint64_t single = ones(bits) * 0x0001000100010001u;
  return (x & single) | (x >> bits & single) << 8;
}
constexpr uint64_t Gathered(uint64_t spread, int bits) {
  uint64_t x = (spread & 0x00FF00FF00FF00FFu) | (spread & 0xFF00FF00FF00FF00u) >> (8 - bits);
  x = (x & 0x0000FFFF0000FFFFu) | (x & 0xFFFF0000FFFF0000u) >> (16 - 2 * bits);
  return (x & 0x00000000FFFFFFFFu) | (x & 0xFFFFFFFF00000000u) >> (32 - 4 * bits);
}

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
