// lib/ir/encoding.h - compressed representations of a constant, as source models store them.
//
//   affine    scale * (data - offset), or scale * data + bias
//   palette   the table entry at each index: one element, or a vector along an axis
//   sparse    data where a mask is set, 0 elsewhere
//
// Values are computed in double and rounded once. scale, offset, bias and table form a grid with
// the rank of data (or of the indices). Each grid cell applies to one block of elements; all blocks
// have the same size along a dimension. Every tensor may be lazy, and may itself be encoded: an
// int8 table with a scale is a palette whose table is affine, and a palette with one scale per row
// is affine with a palette as its data.
//
// With a mask, affine and palette encode the nonzero values of a sparse constant: data and result
// are vectors of the elements that the mask selects, in order, and the blocks of the grid refer to
// the shape of the mask. Encodings correspond to MIL's constexpr operations, which create them when
// evaluated.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

struct Encoding {
  enum class Form : uint8_t { kAffine, kPalette, kSparse };
  Form form = Form::kAffine;
  DType dtype = DType::kFp32;  // dtype of the values; for palette and sparse, that of table or data

  Tensor data;                 // integers or floats; palette: indices
  Tensor scale, offset, bias;  // affine; at most one of offset and bias, with the shape of scale
  Tensor table;                // palette: [grid ..., entries, vector]
  int vector_axis = 0;         // palette: axis of the result that a vector extends along
  Tensor mask;                 // uint1; sparse, or a mask for affine and palette (see above)

  int64_t vector() const { return table.dims().back(); }
  int64_t entries() const { return table.dims()[table.rank() - 2]; }
  Dims dims() const;  // dims of the decoded values
};

// The decoded values, computed block by block when read. Tensor::Encoded also attaches the
// encoding. Error "bad-constant" if the parts are inconsistent.
Tensor DecodedFrom(const std::shared_ptr<const Encoding>& encoding);
// The tensor without its encoding: its values, computed when they are read.
Tensor Dense(const Tensor& tensor);

// The encoding of the constant after a reshape, transpose, slice or concatenation. nullopt if no
// encoding of the same kind exists, because blocks would be split or differ.
std::optional<Encoding> Reshaped(const Encoding& encoding, const Dims& dims);
std::optional<Encoding> Transposed(const Encoding& encoding, const std::vector<int>& perm);
std::optional<Encoding> Sliced(const Encoding& encoding, int axis, int64_t begin, int64_t end);
std::optional<Encoding> Joined(const std::vector<const Encoding*>& parts, int axis);

// The number of set elements in [first, last) of a uint1 tensor.
int64_t CountSet(const Tensor& mask, int64_t first, int64_t last);
// The mask of vector elements: repeats each element `vector` times along the axis. Lazy.
Tensor Repeated(const Tensor& mask, int axis, int64_t vector);

// The elements of a tensor that a mask of the same shape selects, as a vector. Lazy.
Tensor Taken(const Tensor& tensor, const Tensor& mask);

}  // namespace mlc
