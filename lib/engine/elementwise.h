// lib/engine/elementwise.h - elementwise operators as loops over floats, and chains of such
// operators.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "lib/engine/fp32_view.h"
#include "lib/engine/kernels.h"
#include "lib/engine/layout.h"

namespace mlc::engine {

// to[i] = f(x[i * x_step], y[i * y_step]) for i < n. A unary operator ignores y, and its x_step is
// 1. `to` may be x or y if the step of that operand is 1; otherwise it overlaps neither.
using Loop = std::function<void(const float* x, int64_t x_step, const float* y, int64_t y_step,
                                float* to, int64_t n)>;

bool HasLoop(std::string_view op);
// Makes the loop with the constant parameters of the context; empty if the operator has none.
Loop MakeLoop(const EvalContext& context);

// An operation and the elementwise operations after it that one kernel computes. The operands x and
// y of each link are: 0 for the result of the first operation, i for the result of link i - 1, or
// kOwn for another tensor, which has one element or as many as the result.
struct Chain {
  static constexpr int kOwn = -1;
  static constexpr size_t kMostLinks = 6;
  struct Link {
    int x = kOwn, y = kOwn;
  };
  std::vector<Link> links;
};

// The context of a chain's kernel: operands are those of the first operation, results are those of
// the last.
struct ChainContext : EvalContext {
  ChainContext(EvalContext first, const Chain& chain, std::vector<EvalContext> links)
      : EvalContext(std::move(first)), chain(&chain), links(std::move(links)) {}
  const Chain* chain;
  std::vector<EvalContext> links;

  // Returns the result of the last link, given the unrounded result of the first operation. Each
  // result is rounded to its type.
  Tensor Follow(Fp32Result first, const ImageLayout& layout, int threads) const;
  DType last_dtype() const { return links.back().out_dtype(); }
};

}  // namespace mlc::engine
