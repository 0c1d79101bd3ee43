#include "lib/networks/norms.h"

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::networks {

Value* Mean(Builder& b, Value* x, const std::vector<int64_t>& axes) {
  return Reduced(b, "reduce_mean", x, axes, true);
}

Value* InverseRoot(Builder& b, Value* x, double epsilon) {
  return b.Make("rsqrt", {{"x", x}, {"epsilon", epsilon}});
}

Value* PerChannel(Builder& b, Value* vector, int rank) {
  if (vector->type.rank() != 1 || rank <= 2) return vector;
  return Expanded(b, vector, Consecutive(1, rank - 1));
}

Value* LayerNorm(Builder& b, Value* x, const std::vector<int64_t>& axes, Value* scale, Value* bias,
                 double epsilon) {
  int64_t first = axes[0] < 0 ? axes[0] + x->type.rank() : axes[0];
  Shape normalized(x->type.shape.begin() + first, x->type.shape.end());
  auto inside = [&](Value* value) {
    return !value || (value->is_constant() && value->type.shape == normalized);
  };
  Builder::Args args = {{"x", x}, {"axes", Ints(axes)}, {"epsilon", epsilon}};
  if (inside(scale) && inside(bias)) {
    args.emplace_back("gamma", scale);
    args.emplace_back("beta", bias);
    return b.Make("layer_norm", std::move(args));
  }
  Value* y = Binary(b, "mul", b.Make("layer_norm", std::move(args)), scale);
  return bias ? Binary(b, "add", y, bias) : y;
}

Normalized RmsNorm(Builder& b, Value* x, const std::vector<int64_t>& axes, Value* scale,
                   Value* bias, double epsilon, Value* squares) {
  if (!squares) squares = b.Make("square", {{"x", x}});
  Value* inverse = InverseRoot(b, Mean(b, squares, axes), epsilon);
  Value* y = Binary(b, "mul", x, inverse);
  if (scale) y = Binary(b, "mul", y, scale);
  return {bias ? Binary(b, "add", y, bias) : y, inverse};
}

Value* GroupNorm(Builder& b, Value* x, int64_t groups, double epsilon) {
  const Shape& shape = x->type.shape;
  if (!shape[1].is_constant() || groups < 1 || shape[1].constant() % groups != 0)
    throw Error("bad-attribute", "{} channels cannot be divided into {} groups",
                shape[1].ToString(), groups);
  // If only one dimension is unknown, both reshapes are constants; otherwise the second one
  // restores the shape of x at run time.
  int unknown = 0;
  std::vector<int64_t> back;
  for (const Dim& dim : shape) {
    unknown += !dim.is_constant();
    back.push_back(dim.is_constant() ? dim.constant() : -1);
  }
  std::vector<int64_t> grouped = {shape[0].is_constant() ? shape[0].constant() : -1, groups, -1};
  if (!shape[0].is_constant()) {
    if (unknown > 1)
      throw Error("dynamic-shape", "the batch size and another dimension are dynamic");
    grouped = {-1, groups, (Product(Shape(shape.begin() + 1, shape.end())).constant()) / groups};
  }
  Value* rows = WithShape(b, x, grouped);
  Value* normal = b.Make("layer_norm", {{"x", rows}, {"axes", Ints({2})}, {"epsilon", epsilon}});
  if (unknown <= 1) return WithShape(b, normal, back);
  return b.Make("reshape", {{"x", normal}, {"shape", ShapeOf(b, x)}});
}

}  // namespace mlc::networks
