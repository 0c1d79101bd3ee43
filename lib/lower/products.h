// lib/lower/products.h - matrix products of whatever ranks, and sums of products of whole numbers that
// are exact.
#pragma once

#include <functional>

#include "lib/ir/builder.h"

namespace mlc {

// x times y as numpy has it: vectors become rows and columns, what stands before the last two
// dimensions broadcasts. Error "bad-operand" for scalars.
Value* MatrixProduct(Builder& b, Value* x, Value* y);

// Whole numbers in fp32 as a factor of an exact product.
struct Factor {
  Value* value = nullptr;
  double most = 0;   // magnitudes are at most this
  double reach = 0;  // what is multiplied for one result sums up to this; 0: not known
};

// The sums of products that `multiply` makes of x and y, each of at most `terms` products. fp32
// counts to 2^24: what may leave that is computed in parts and added up in int32. The result is
// fp32 when `most` (which is set) stays within it, else int32. Error "resource-limit" where no
// parts are small enough.
using Multiply = std::function<Value*(Value* x, Value* y)>;
Factor ExactProduct(Builder& b, const Factor& x, const Factor& y, double terms,
                    const Multiply& multiply);
// The greatest sum of magnitudes along the middle dimension of a constant [outer, terms, inner].
double Reach(const Tensor& tensor, int64_t outer, int64_t terms, int64_t inner);
// ExactProduct of matrices [..., M, K] and [..., K, N].
Factor ExactMatrixProduct(Builder& b, Factor x, Factor y);

// sum + addend (int32), in fp32 where that is exact.
Factor PlusInteger(Builder& b, const Factor& sum, Value* addend);

}  // namespace mlc
