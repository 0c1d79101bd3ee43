// lib/engine/elementwise.h - elementwise operators as loops over floats, and chains of them.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "lib/engine/floats.h"
#include "lib/engine/kernels.h"
#include "lib/engine/layout.h"

namespace mlc {

// to[i] = f(x[i * x_step], y[i * y_step]) for i < n; y is not read by what has one operand, whose x
// has step 1. `to` is x or y, where that has step 1, or overlaps neither.
using Loop = std::function<void(const float* x, int64_t x_step, const float* y, int64_t y_step,
                                float* to, int64_t n)>;

bool HasLoop(std::string_view op);
// With the numbers that the context has; empty where the operator has none.
Loop MakeLoop(const EvalContext& context);

// An operation and elementwise ones after it that one kernel computes. Operands of each link, x and
// y: 0 is the result of the first operation, i that of link i - 1, kOwn a tensor of its own, of one
// element or of as many as the result has.
struct Chain {
  static constexpr int kOwn = -1;
  static constexpr size_t kMostLinks = 6;
  struct Link {
    int x = kOwn, y = kOwn;
  };
  std::vector<Link> links;
};

// What a kernel of a chain runs on: the context of the first operation, whose results are those of
// the last.
struct ChainContext : EvalContext {
  ChainContext(EvalContext first, const Chain& chain, std::vector<EvalContext> links)
      : EvalContext(std::move(first)), chain(&chain), links(std::move(links)) {}
  const Chain* chain;
  std::vector<EvalContext> links;

  // The result of the last link, where `first` holds that of the first operation, as yet unrounded.
  // Each result is rounded to its type.
  Tensor Follow(FloatResult first, const ImageLayout& layout, int threads) const;
  DType last_dtype() const { return links.back().out_dtype(); }
};

}  // namespace mlc
