// lib/ir/encoding.h - how the source of a constant holds it in fewer bits than its values have.
//
//   affine    scale * (data - offset), or scale * data + bias
//   palette   what a table has at each index: an element, or several along an axis
//   sparse    data where a mask is set, 0 elsewhere
//
// Each value is computed in double and rounded once. scale, offset, bias and table lie on a grid: it
// has the dimensions of data (or indices), and each of its cells serves a block, all blocks being of
// one size along a dimension. Every tensor here may be lazy, and may be encoded itself: a table of
// int8 with a scale is a palette whose table is affine; a palette with a scale for each row is affine
// and has a palette for data.
//
// With a mask, affine and palette say the values of a sparse constant: data and result are vectors of
// what is set, in order, while the grid's blocks lie in the mask's shape. These are MIL's constexpr
// operations, whose evaluation makes encodings.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

struct Encoding {
  enum class Form : uint8_t { kAffine, kPalette, kSparse };
  Form form = Form::kAffine;
  DType dtype =
      DType::kFp32;  // of the values; a palette's and a sparse one's are its table's and data's

  Tensor data;                 // integers or floats; palette: indices
  Tensor scale, offset, bias;  // affine; an offset or a bias at most, of scale's shape
  Tensor table;                // palette: [grid ..., entries, vector]
  int vector_axis = 0;         // palette: of the result
  Tensor mask;                 // uint1; sparse, and what gives a sparse one's values

  int64_t vector() const { return table.dims().back(); }
  int64_t entries() const { return table.dims()[table.rank() - 2]; }
  Dims dims() const;  // of the values
};

// The values, decoded block by block when read; Tensor::Encoded adds the encoding. Error
// "bad-constant" where the parts do not fit together.
Tensor DecodedFrom(const std::shared_ptr<const Encoding>& encoding);

// The encoding of the constant under another shape, in another order, of a slice of it, of several
// one after the other; nothing where it has none of this kind: blocks are cut, or are unlike.
std::optional<Encoding> Reshaped(const Encoding& encoding, const Dims& dims);
std::optional<Encoding> Transposed(const Encoding& encoding, const std::vector<int>& perm);
std::optional<Encoding> Sliced(const Encoding& encoding, int axis, int64_t begin, int64_t end);
std::optional<Encoding> Joined(const std::vector<const Encoding*>& parts, int axis);

// How many elements of [first, last) of a uint1 tensor are set.
int64_t CountSet(const Tensor& mask, int64_t first, int64_t last);
// A mask of vectors: each element `vector` times along the axis. Lazy.
Tensor Repeated(const Tensor& mask, int axis, int64_t vector);

// The elements of a tensor where a mask of its shape is set, as a vector. Lazy.
Tensor Taken(const Tensor& tensor, const Tensor& mask);

}  // namespace mlc
