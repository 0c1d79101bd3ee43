// frontends/gguf/ggml_quants.h - ggml's tensor types: the sizes of their blocks, and the integers,
// scales and biases in them.
//
// An element of a block is scale * integer + bias, where a cell of adjacent elements shares scale
// and bias. Constants have this encoding (lib/ir/encoding.h): the integers are those of the file,
// and the fp32 values are bit for bit those of ggml and gguf-py. (The fp16 scale, its factor in the
// block and the integer have at most 24 digits together, so only the sum with a bias is rounded.)
// Types with a lookup table of integers have palette data of int8.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lib/ir/tensor.h"

namespace mlc::gguf {

struct BlockType {
  uint32_t id = 0;             // the type's number in files
  std::string_view name;       // the name in gguf-py: "Q4_0"
  int elements = 1;            // elements per block; all lie in one row
  int bytes = 0;               // bytes per block
  DType plain = DType::kNone;  // the element type of types without blocks

  DType integers = DType::kNone;
  std::span<const int8_t> palette = {};  // the values that the integers index
  // Unpacks the integers of `count` blocks into `out`, packed, in the order of the elements.
  void (*unpack)(const uint8_t* blocks, int64_t count, std::byte* out) = nullptr;

  int cell = 0;  // number of elements that share scale and bias
  bool biased = false;
  int scale_at = -1, bias_at = -1;  // offsets of fp16 scale and bias in blocks of one cell
  // Computes the scales and biases of all cells of a block in fp32, for types without offsets.
  // `bias` is null for types without biases.
  void (*scales)(const uint8_t* block, float* scale, float* bias) = nullptr;
};

// Returns all types, sorted by id.
std::span<const BlockType> BlockTypes();
const BlockType* FindBlockType(uint32_t id);  // null if the type is unknown

// Returns a lazy fp32 constant of `dims` with the blocks `bytes` (a uint8 vector). The last
// dimension must be a multiple of the elements per block.
Tensor FromBlocks(const BlockType& type, const Tensor& bytes, Dims dims);

}  // namespace mlc::gguf
