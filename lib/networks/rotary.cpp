#include "lib/networks/rotary.h"

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::networks {

Value* Rotated(Builder& b, Value* x, Value* cosine, Value* sine, bool interleaved) {
  int64_t half = cosine->type.shape.back().constant(), size = x->type.shape[3].constant();
  if (half * 2 > size)
    throw Error("bad-operand", "{} rotary angles are too many for heads of {} dimensions", half,
                size);
  cosine = Expanded(b, cosine, {1});
  sine = Expanded(b, sine, {1});
  Value* rest = nullptr;
  if (half * 2 < size) {
    std::vector<Value*> parts = Parts(b, x, {half * 2, size - half * 2}, 3);
    x = parts[0];
    rest = parts[1];
  }
  Value *p, *r;
  if (interleaved) {
    auto every = [&](int64_t first) {
      return b.Make("slice_by_index",
                    {{"x", x},
                     {"begin", Ints({0, 0, 0, first})},
                     {"end", Ints({0, 0, 0, half * 2})},
                     {"stride", Ints({1, 1, 1, 2})},
                     {"end_mask", Tensor::Vector<bool>({true, true, true, false})}});
    };
    p = every(0);
    r = every(1);
  } else {
    std::vector<Value*> parts = Parts(b, x, {half, half}, 3);
    p = parts[0];
    r = parts[1];
  }
  auto rotated = [&](std::string_view op, Value* with_p, Value* with_r) {
    Value* of_r = Binary(b, "mul", r, with_r);
    return Binary(b, op, Binary(b, "mul", p, with_p), of_r);
  };
  Value *first = rotated("sub", cosine, sine), *second = rotated("add", sine, cosine);
  Value* y = nullptr;
  if (interleaved) {
    first = Expanded(b, first, {4});
    second = Expanded(b, second, {4});
    y = Reshaped(b, Concat(b, {first, second}, 4), {{x, 0}, {x, 1}, {x, 2}, half * 2});
  } else {
    y = Concat(b, {first, second}, 3);
  }
  return rest ? Concat(b, {y, rest}, 3) : y;
}

}  // namespace mlc::networks
