// lib/compress/weight_view.h - a weight in the order in which its blocks are contiguous.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lib/ir/op_def.h"
#include "lib/ir/tensor.h"

namespace mlc::compress {

// The elements of a weight as [batch ..., outputs, inputs, kernel ...], or with inputs before
// outputs. A row is what one output channel of one matrix is computed from.
class WeightView {
 public:
  // `axes` are those of a weight operand (lib/ir/op_def.h).
  WeightView(const Tensor& weight, const WeightOperand& axes, bool inputs_first);

  const Tensor& tensor() const { return tensor_; }  // in the order of the view
  int batch() const { return batch_; }              // number of leading axes that are a batch
  int64_t size(int axis) const { return tensor_.dims()[axis]; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return tensor_.size() / rows_; }

  // A tensor in the order of the view, or a grid of its cells, in the order of the weight. Extra
  // trailing axes stay in place.
  Tensor Stored(const Tensor& in_view) const;

 private:
  Tensor tensor_;
  std::vector<int> back_;  // permutation from the view to the weight
  int batch_ = 0;
  int64_t rows_ = 1;
};

// Sums over a weight, or a part of it.
struct Sums {
  double error = 0, other_error = 0, energy = 0;
  bool finite = true;

  Sums& operator+=(const Sums& other) {
    error += other.error;
    other_error += other.other_error;
    energy += other.energy;
    finite = finite && other.finite;
    return *this;
  }
};
// Reads the tensor as floats in blocks of whole cells of `cell` elements, on up to `threads`
// threads, and calls f(first, numbers) for each block, with the index of its first cell. A cell
// must fit in memory. Blocks depend on the tensor only, and their sums are added in order.
Sums ForCells(const Tensor& tensor, int64_t cell, int threads,
              const std::function<Sums(int64_t first, std::span<const float> numbers)>& f);

std::vector<float> ReadFloats(const Tensor& floats, int64_t first, int64_t count);

}  // namespace mlc::compress
