// lib/ir/view_reader.h - reads a tensor that is a transposed and/or converted view of another.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/ir/dispatch_width.h"
#include "lib/ir/tensor.h"
#include "lib/ir/transpose.h"

namespace mlc {

// A View has a source, the dimensions of the result (`dims`, with contiguous neighbours merged),
// its strides in the source, the element count below each dimension (`inner`), and the dimension
// with stride 1 (`unit`, or -1). Transposition uses a tile that fits in the cache: contiguous runs
// of the source are converted into the tile, and its columns are written out.
template <class View>
class ViewReader {
 public:
  ViewReader(const View& view, const std::byte* address, DType to)
      : view_(view),
        from_(view.source.dtype()),
        to_(to),
        address_(address),
        size_(Bits(to) / 8),
        last_(view.dims.size() - 1) {}

  // Reads elements [first, first + count) of the sub-array at `axis` whose source starts at `base`.
  void Range(size_t axis, int64_t base, int64_t first, int64_t count, std::byte* out) {
    int64_t stride = view_.strides[axis], inner = view_.inner[axis];
    if (axis == last_) {
      if (stride == 1) return Run(base + first, count, out);
      return Strided(base + first * stride, stride, count, out);
    }
    while (count > 0) {
      int64_t index = first / inner, skip = first % inner;
      if (static_cast<int>(axis) == view_.unit && skip == 0 && count >= inner) {
        int64_t rows = count / inner;
        Plane(axis + 1, base + index, rows, inner, out);
        first += rows * inner, count -= rows * inner, out += rows * inner * size_;
        continue;
      }
      int64_t part = std::min(count, inner - skip);
      Range(axis + 1, base + index * stride, skip, part, out);
      first += part, count -= part, out += part * size_;
    }
  }

 private:
  // Elements converted at a time, and the columns of a tile.
  static constexpr int64_t kBlock = int64_t{1} << 16, kTileColumns = 1024;
  // Mapped source bytes that a transposition keeps resident.
  static constexpr int64_t kReleaseBytes = int64_t{16} << 20;

  void Run(int64_t first, int64_t count, std::byte* out) {
    if (address_) {
      ConvertElements(from_, address_ + first * (Bits(from_) / 8), to_, out, count);
    } else if (from_ == to_) {
      view_.source.Read(first, count, out);
    } else {
      for (int64_t done = 0; done < count; done += kBlock) {
        int64_t n = std::min(kBlock, count - done);
        raw_.resize(std::max(raw_.size(), ByteCount(from_, n)));
        view_.source.Read(first + done, n, raw_.data());
        ConvertElements(from_, raw_.data(), to_, out + done * size_, n);
      }
    }
  }

  // Reads part of an output row at the cost of a cache line per element.
  void Strided(int64_t first, int64_t stride, int64_t count, std::byte* out) {
    int64_t element = Bits(from_) / 8;
    for (int64_t done = 0; done < count; done += kBlock) {
      int64_t n = std::min(kBlock, count - done);
      strided_.resize(std::max(strided_.size(), ByteCount(from_, n)));
      for (int64_t i = 0; i < n; ++i) {
        int64_t index = first + (done + i) * stride;
        std::byte* to = strided_.data() + i * element;
        if (address_) {
          std::memcpy(to, address_ + index * element, static_cast<size_t>(element));
        } else {
          view_.source.Read(index, 1, to);
        }
      }
      ConvertElements(from_, strided_.data(), to_, out + done * size_, n);
    }
  }

  // Reads `rows` adjacent source elements, each of which becomes a row of the output: everything
  // below the unit dimension.
  void Plane(size_t axis, int64_t base, int64_t rows, int64_t row, std::byte* out) {
    if (axis < last_) {
      for (int64_t i = 0; i < view_.dims[axis]; ++i)
        Plane(axis + 1, base + i * view_.strides[axis], rows, row,
              out + i * view_.inner[axis] * size_);
      return;
    }
    DispatchWidth(to_, [&](auto word) { Transpose<decltype(word)>(base, rows, row, out); });
  }

  template <class T>
  void Transpose(int64_t base, int64_t rows, int64_t row, std::byte* out) {
    // A tile writes whole cache lines and reads whole pages; its padding keeps rows in different
    // cache sets.
    constexpr int64_t kLine = 64 / sizeof(T), kTileRow = kTileColumns + kLine;
    tile_.resize(kLine * kTileRow * sizeof(T));
    int64_t count = view_.dims[last_], stride = view_.strides[last_], kept = 0;
    bool mapped = view_.source.file_view().file != nullptr;
    for (int64_t i0 = 0; i0 < count; i0 += kLine) {
      int64_t ni = std::min(kLine, count - i0);
      for (int64_t j0 = 0; j0 < rows; j0 += kTileColumns) {
        int64_t nj = std::min(kTileColumns, rows - j0);
        for (int64_t i = 0; i < ni; ++i)
          Run(base + (i0 + i) * stride + j0, nj, tile_.data() + i * kTileRow * sizeof(T));
        TransposeTile<T>(tile_.data(), kTileRow, ni, nj, out + (j0 * row + i0) * sizeof(T), row);
      }
      // Releases the pages behind before the whole source is resident.
      int64_t end = i0 + ni;
      if (mapped && (end - kept) * stride * (Bits(from_) / 8) >= kReleaseBytes) {
        view_.source.Release(
            base + kept * stride,
            std::min((end - kept) * stride, view_.source.size() - base - kept * stride));
        kept = end;
      }
    }
  }

  const View& view_;
  DType from_, to_;
  const std::byte* address_;
  int64_t size_;
  size_t last_;
  std::vector<std::byte> tile_, raw_, strided_;
};

}  // namespace mlc
