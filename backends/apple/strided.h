// backends/apple/strided.h - copies between arrays whose rows do not lie close together.
#pragma once

#include <cstddef>

#include "lib/ir/tensor.h"

namespace mlc::apple {

// How many elements lie between the first and the end of the last; 0 when there are none. Strides are in elements. Error
// "schema-mismatch" for negative ones, and where one is missing.
int64_t Extent(const Dims& dims, const Dims& strides);

// Copies the elements, of `element` bytes each; nothing between them is read or written. No address need be aligned.
void CopyStrided(const Dims& dims, size_t element, const std::byte* from, const Dims& from_strides,
                 std::byte* to, const Dims& to_strides);

}  // namespace mlc::apple
