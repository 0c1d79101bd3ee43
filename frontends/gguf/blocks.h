// frontends/gguf/blocks.h - ggml's tensor types: the sizes of their blocks, and the integers,
// scales and biases in them.
//
// An element of a block is scale * integer + bias, where a cell of adjacent elements shares scale
// and bias. That is the encoding (lib/ir/encoding.h) that the constants have: its integers are
// those of the file, its fp32 values are bit for bit those of ggml and gguf-py. (A scale of fp16,
// its factor in the block and the integer have at most 24 digits together, so that nothing is
// rounded but the sum with a bias.) Types whose integers come from a table have a palette for data,
// of int8.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lib/ir/tensor.h"

namespace mlc {

struct BlockType {
  uint32_t id = 0;             // in files
  std::string_view name;       // in gguf-py: "Q4_0"
  int elements = 1;            // of a block; they lie in one row
  int bytes = 0;               // of a block
  DType plain = DType::kNone;  // the type of elements that are not in blocks

  DType integers = DType::kNone;
  std::span<const int8_t> palette = {};  // which the integers index
  // The integers of `count` blocks, packed, in the order of the elements.
  void (*unpack)(const uint8_t* blocks, int64_t count, std::byte* out) = nullptr;

  int cell = 0;  // elements that share scale and bias
  bool biased = false;
  int scale_at = -1, bias_at = -1;  // offsets of the fp16 scale and bias of a block of one cell
  // Computes scales and biases of the cells of other blocks, in fp32; no `bias` without biases.
  void (*scales)(const uint8_t* block, float* scale, float* bias) = nullptr;

  double bits_per_element() const { return 8.0 * bytes / elements; }
};

// Sorted by id.
std::span<const BlockType> BlockTypes();
const BlockType* FindBlockType(uint32_t id);  // null: unknown type

// The constant of `dims` whose blocks are `bytes` (uint8, a vector): lazy, in fp32. The last
// dimension is a multiple of the elements of a block.
Tensor FromBlocks(const BlockType& type, const Tensor& bytes, Dims dims);

}  // namespace mlc
