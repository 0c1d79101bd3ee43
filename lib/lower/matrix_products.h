// lib/lower/matrix_products.h - matrix products of any ranks, and exact sums of integer products.
#pragma once

#include <functional>

#include "lib/ir/builder.h"

namespace mlc::lower {

// The matrix product by NumPy's rules: vectors act as rows or columns, and leading dimensions
// broadcast. Error "bad-operand" for scalars.
Value* MatrixProduct(Builder& b, Value* x, Value* y);

// An integer-valued fp32 factor of an exact product.
struct Factor {
  Value* value = nullptr;
  double most = 0;  // upper bound of the magnitudes
  double reach =
      0;  // upper bound of the sum of magnitudes that contribute to one result; 0: unknown
};

// Computes sums of products of x and y with `multiply`, each over at most `terms` products. fp32
// represents integers exactly up to 2^24; sums that may exceed this are computed in parts and added
// in int32. The result is fp32 if `most` (which is set) stays within the limit, else int32. Error
// "resource-limit" if no split into parts suffices.
using Multiply = std::function<Value*(Value* x, Value* y)>;
Factor ExactProduct(Builder& b, const Factor& x, const Factor& y, double terms,
                    const Multiply& multiply);
// The maximum sum of magnitudes along the middle dimension of a constant [outer, terms, inner].
double Reach(const Tensor& tensor, int64_t outer, int64_t terms, int64_t inner);
// ExactProduct for matrices [..., M, K] and [..., K, N].
Factor ExactMatrixProduct(Builder& b, Factor x, Factor y);

// sum + addend (int32), in fp32 if that is exact.
Factor PlusInteger(Builder& b, const Factor& sum, Value* addend);

}  // namespace mlc::lower
