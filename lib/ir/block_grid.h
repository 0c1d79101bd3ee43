// lib/ir/block_grid.h - maps the elements of an encoded tensor to the cells of the encoding's grid
// (encoding.h).
#pragma once

#include <algorithm>

#include "lib/ir/tensor.h"

namespace mlc {

// The blocks of a tensor of `dims` that share a grid cell. Adjacent dimensions that a cell covers
// entirely are merged: a matrix with one scale per row is a vector with long blocks.
class BlockGrid {
 public:
  BlockGrid(const Dims& of, const Dims& grid) {
    for (size_t d = 0; d < of.size(); ++d) {
      int64_t size = of[d], cells = grid[d];
      if (size == 1) continue;
      if (!dims_.empty() && (cells == 1 || blocks_.back() == 1)) {
        blocks_.back() = cells == 1 ? blocks_.back() * size : size / cells;
        dims_.back() *= size;
      } else {
        dims_.push_back(size);
        blocks_.push_back(size / cells);
      }
    }
    if (dims_.empty()) dims_ = blocks_ = {1};
    Dims cells = dims_;
    for (size_t d = 0; d < dims_.size(); ++d) cells[d] /= blocks_[d];
    strides_ = StridesOf(dims_);
    cells_ = StridesOf(cells);
  }

  int64_t CellOf(int64_t i) const {
    int64_t cell = 0;
    for (size_t d = 0; d < dims_.size(); ++d)
      cell += i / strides_[d] % dims_[d] / blocks_[d] * cells_[d];
    return cell;
  }
  // Calls f(i, n, cell, used) for runs of n consecutive elements within one row, starting at
  // element i. `cell` is the grid cell of the first block; its first `used` elements precede i.
  // Later blocks of the run use consecutive cells.
  template <class F>
  void Rows(int64_t first, int64_t count, F&& f) const {
    const int64_t row = dims_.back(), block = blocks_.back();
    for (int64_t i = first; i < first + count;) {
      int64_t at = i % row, n = std::min(first + count - i, row - at);
      f(i, n, CellOf(i), at % block);
      i += n;
    }
  }
  int64_t block() const { return blocks_.back(); }  // block size along a row
  // Returns whether element i belongs to cell i / block() for every i.
  bool is_one_row() const { return dims_.size() == 1; }

 private:
  Dims dims_, blocks_, strides_, cells_;
};

}  // namespace mlc
