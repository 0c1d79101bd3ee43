// frontends/gguf/blocks.h - ggml's tensor types: how many elements a block has, and which integers,
// scales and biases it holds.
//
// An element of a block is scale * integer + bias, where a cell of neighbouring elements shares scale
// and bias. That is the encoding (lib/ir/encoding.h) that the constants have: its integers are the
// file's own, its fp32 values are bit for bit what ggml and gguf-py make of them. (A scale of fp16, its
// factor in the block and the integer have at most 24 digits together, so that nothing is rounded but
// the sum with a bias.) Types whose integers come from a table have a palette for data, of int8.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lib/ir/tensor.h"

namespace mlc {

struct BlockType {
  uint32_t id = 0;             // in files
  std::string_view name;       // as gguf-py writes it: "Q4_0"
  int elements = 1;            // of a block; they lie in one row
  int bytes = 0;               // of a block
  DType plain = DType::kNone;  // elements of this type lie one after another: no blocks

  DType integers = DType::kNone;
  std::span<const int8_t> palette = {};  // what the integers are indices of
  // The integers of `count` blocks, packed, in the order of the elements.
  void (*unpack)(const uint8_t* blocks, int64_t count, std::byte* out) = nullptr;

  int cell = 0;  // elements that share scale and bias
  bool biased = false;
  int scale_at = -1, bias_at = -1;  // a block of one cell has them there, in fp16
  // Others have this: scales and biases of the block's cells, in fp32. No `bias` without biases.
  void (*scales)(const uint8_t* block, float* scale, float* bias) = nullptr;

  double bits_per_element() const { return 8.0 * bytes / elements; }
};

// Sorted by id.
std::span<const BlockType> BlockTypes();
const BlockType* FindBlockType(uint32_t id);  // null: not known

// The constant of `dims` whose blocks are `bytes` (uint8, a vector): lazy, in fp32. The last dimension
// is a multiple of the elements of a block.
Tensor FromBlocks(const BlockType& type, const Tensor& bytes, Dims dims);

}  // namespace mlc
