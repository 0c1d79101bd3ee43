// lib/ir/subbyte.h - packed elements of less than a byte, stored least significant bits first and
// without gaps, even across byte boundaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

inline bool IsSubByte(DType dtype) { return Bits(dtype) % 8 != 0; }
// The 8-bit type that represents a sub-byte type unpacked; any other type unchanged.
DType InBytes(DType dtype);

// Unpacks eight elements of `bits` bits each to one byte per element, and packs them again. The
// lowest element comes first; the upper bits of each byte are 0.
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

// Element i of packed bytes, sign-extended for signed types.
uint8_t GetSubByte(const std::byte* bytes, DType dtype, int64_t i);
// Stores element i; its bits must be zero before.
void SetSubByte(std::byte* bytes, DType dtype, int64_t i, uint8_t value);
// Reads elements [first, first + count), without any alignment of `first`. Sub-byte elements are
// unpacked to a sign-extended byte each.
void ReadBytes(const Tensor& source, int64_t first, int64_t count, std::byte* out);

// Reinterprets bytes as packed elements of `dtype`; lazy for sub-byte types.
Tensor ViewSubByte(const Tensor& bytes, DType dtype, Dims dims);
// The packed bytes of a tensor, as a vector.
Tensor BytesOf(const Tensor& tensor);

// The lazy sub-byte implementations of Tensor::Cast (if either type is sub-byte),
// Tensor::Transposed and Tensor::Rows.
Tensor CastSubByte(const Tensor& source, DType dtype);
Tensor TransposeSubByte(const Tensor& source, const std::vector<int>& perm);
Tensor RowsOfSubByte(const Tensor& source, int64_t begin, int64_t end);

}  // namespace mlc
