// lib/ops/narrow_result.h - stores the results of operators that compute in whole vectors of wide
// elements.
#pragma once

#include <vector>

#include "lib/ops/eval.h"

namespace mlc {

// Rounds (floats) or wraps (integers) each element once.
template <class W>
Tensor Store(DType dtype, Dims dims, const std::vector<W>& values) {
  return Dispatch(dtype, [&]<class T>(T) {
    Out<T> out(std::move(dims));
    for (size_t i = 0; i < out.data.size(); ++i) out.data[i] = Narrow<T>(values[i]);
    return out.tensor;
  });
}

}  // namespace mlc
