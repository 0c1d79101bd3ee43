// backends/apple/strided.h - copies between arrays with strides.
#pragma once

#include <cstddef>

#include "lib/ir/tensor.h"

namespace mlc::apple {

// Returns the number of elements spanned by the array, gaps included; 0 if it is empty. Strides are
// in elements. Error "schema-mismatch" for negative or missing strides.
int64_t Extent(const Dims& dims, const Dims& strides);

// Copies elements of `element` bytes each and does not touch the gaps between them. Addresses need
// not be aligned.
void CopyStrided(const Dims& dims, size_t element, const std::byte* from, const Dims& from_strides,
                 std::byte* to, const Dims& to_strides);

}  // namespace mlc::apple
