#include "lib/networks/heads.h"

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::networks {

Value* Heads(Builder& b, Value* x, int64_t heads) {
  const Dim& width = x->type.shape.at(2);
  if (!width.is_constant())
    throw Error("dynamic-shape", "the width {} of {} heads is not constant", width.ToString(),
                heads);
  if (heads < 1 || width.constant() % heads != 0)
    throw Error("bad-operand", "{} elements cannot be divided into {} heads", width.ToString(),
                heads);
  x = Reshaped(b, x, {{x, 0}, {x, 1}, heads, width.constant() / heads});
  return Transposed(b, x, {0, 2, 1, 3});
}

Value* Joined(Builder& b, Value* x) {
  x = Transposed(b, x, {0, 2, 1, 3});
  int64_t width = x->type.shape[2].constant() * x->type.shape[3].constant();
  return Reshaped(b, x, {{x, 0}, {x, 1}, width});
}

Value* Repeated(Builder& b, Value* x, int64_t times) {
  if (times == 1) return x;
  int64_t heads = x->type.shape[1].constant();
  Value* y = Expanded(b, x, {2});
  y = b.Make("tile", {{"x", y}, {"reps", Ints({1, 1, times, 1, 1})}});
  return Reshaped(b, y, {{x, 0}, heads * times, {x, 2}, {x, 3}});
}

}  // namespace mlc::networks
