// Converts blocks to the encodings of lib/ir.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "frontends/gguf/ggml_quants.h"
#include "lib/ir/encoding.h"

namespace mlc::gguf {

namespace {

// Calls f(blocks, count) for consecutive blocks in order; once for all blocks if they are in
// memory.
template <class F>
void ForBlocks(const BlockType& type, const Tensor& bytes, int64_t first, int64_t count, F&& f) {
  std::span<const std::byte> there = bytes.InPlace(first * type.bytes, count * type.bytes);
  if (!there.empty()) return f(reinterpret_cast<const uint8_t*>(there.data()), count);
  constexpr int64_t kBufferBytes = int64_t{1} << 16;
  const int64_t most = std::min(count, kBufferBytes / type.bytes);
  std::vector<uint8_t> buffer(static_cast<size_t>(most * type.bytes));
  for (int64_t end = first + count; first < end; first += most) {
    int64_t n = std::min(most, end - first);
    bytes.Read(first * type.bytes, n * type.bytes, reinterpret_cast<std::byte*>(buffer.data()));
    f(buffer.data(), n);
  }
}

void ReadIntegers(const BlockType& type, const Tensor& bytes, int64_t first, int64_t count,
                  std::byte* out) {
  constexpr int kMostBytes = 256;  // upper bound for the integers of one block
  while (count > 0) {
    const int64_t block = first / type.elements, skip = first % type.elements;
    int64_t part = count / type.elements * type.elements;
    if (skip == 0 && part > 0) {
      ForBlocks(type, bytes, block, part / type.elements, [&](const uint8_t* blocks, int64_t n) {
        type.unpack(blocks, n, out);
        out += ByteCount(type.integers, n * type.elements);
      });
    } else {
      std::array<std::byte, kMostBytes> all;
      ForBlocks(type, bytes, block, 1,
                [&](const uint8_t* blocks, int64_t) { type.unpack(blocks, 1, all.data()); });
      part = std::min(count, type.elements - skip);
      const size_t size = ByteCount(type.integers, part);
      std::copy_n(all.begin() + ByteCount(type.integers, skip), size, out);
      out += size;
    }
    first += part, count -= part;
  }
}

// Reads one fp16 number per block without conversion.
void ReadHalves(const BlockType& type, const Tensor& bytes, int at, int64_t first, int64_t count,
                std::byte* out) {
  ForBlocks(type, bytes, first, count, [&](const uint8_t* blocks, int64_t n) {
    for (int64_t i = 0; i < n; ++i) std::memcpy(out + 2 * i, blocks + i * type.bytes + at, 2);
    out += 2 * n;
  });
}

// Reads the scales or biases of cells.
void ReadCells(const BlockType& type, const Tensor& bytes, bool bias, int64_t first, int64_t count,
               std::byte* out) {
  constexpr int kMostCells = 16;
  const int64_t cells = type.elements / type.cell, block = first / cells;
  int64_t skip = first % cells;
  std::array<float, kMostCells> scales, biases;
  const float* values = bias ? biases.data() : scales.data();
  ForBlocks(type, bytes, block, (first + count + cells - 1) / cells - block,
            [&](const uint8_t* blocks, int64_t n) {
              for (int64_t i = 0; i < n; ++i, skip = 0) {
                type.scales(blocks + i * type.bytes, scales.data(), biases.data());
                const int64_t part = std::min(count, cells - skip);
                std::memcpy(out, values + skip, static_cast<size_t>(part) * sizeof(float));
                out += part * static_cast<int64_t>(sizeof(float)), count -= part;
              }
            });
}

Tensor Parameters(const BlockType& type, const Tensor& bytes, const Dims& grid, bool bias) {
  const BlockType* row = &type;
  if (type.scales)
    return Tensor::Lazy(
        DType::kFp32, grid,
        [=](int64_t first, int64_t count, std::byte* out) {
          ReadCells(*row, bytes, bias, first, count, out);
        },
        bytes);
  const int at = bias ? type.bias_at : type.scale_at;
  return Tensor::Lazy(
      DType::kFp16, grid,
      [=](int64_t first, int64_t count, std::byte* out) {
        ReadHalves(*row, bytes, at, first, count, out);
      },
      bytes);
}

}  // namespace

Tensor FromBlocks(const BlockType& type, const Tensor& bytes, Dims dims) {
  const BlockType* row = &type;  // points to the row of the static table
  Dims grid = dims;
  grid.back() /= type.cell;
  Encoding encoding{.dtype = DType::kFp32};
  encoding.data = Tensor::Lazy(
      type.integers, dims,
      [row, bytes](int64_t first, int64_t count, std::byte* out) {
        ReadIntegers(*row, bytes, first, count, out);
      },
      bytes);
  if (!type.palette.empty()) {
    Dims table(dims.size() + 2, 1);
    table[dims.size()] = std::ssize(type.palette);
    std::vector<int8_t> entries(type.palette.begin(), type.palette.end());
    encoding.data = Tensor::Encoded({.form = Encoding::Form::kPalette,
                                     .data = encoding.data,
                                     .table = Tensor::Of<int8_t>(std::move(table), entries)});
  }
  encoding.scale = Parameters(type, bytes, grid, false);
  if (type.biased) encoding.bias = Parameters(type, bytes, grid, true);
  return Tensor::Encoded(std::move(encoding));
}

}  // namespace mlc::gguf
