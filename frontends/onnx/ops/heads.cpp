#include "frontends/onnx/ops/heads.h"

#include <algorithm>

#include "lib/ir/arithmetic.h"
#include "lib/ir/sizes.h"

namespace mlc::onnx {

Value* Heads(Node& node, Value* x, int64_t heads) {
  const Dim& width = x->type.shape.at(2);
  if (!width.is_constant())
    node.Fail("dynamic-shape", fmt::format("{} elements of {} heads", width.ToString(), heads));
  if (heads < 1 || width.constant() % heads != 0)
    node.Fail("bad-operand", fmt::format("{} heads of {} elements", heads, width.ToString()));
  x = Reshaped(node, x, {{x, 0}, {x, 1}, heads, width.constant() / heads});
  return Transposed(node, x, {0, 2, 1, 3});
}

Value* Joined(Node& node, Value* x) {
  x = Transposed(node, x, {0, 2, 1, 3});
  int64_t width = x->type.shape[2].constant() * x->type.shape[3].constant();
  return Reshaped(node, x, {{x, 0}, {x, 1}, width});
}

Value* Rotated(Node& node, Value* x, Value* cosine, Value* sine, bool interleaved) {
  int64_t half = cosine->type.shape.back().constant(), size = x->type.shape[3].constant();
  if (half * 2 > size)
    node.Fail("bad-operand", fmt::format("{} angles for heads of {} elements", half, size));
  cosine = Expanded(node, cosine, {1});
  sine = Expanded(node, sine, {1});
  Value* rest = nullptr;
  if (half * 2 < size) {
    std::vector<Value*> parts = Parts(node, x, {half * 2, size - half * 2}, 3);
    x = parts[0];
    rest = parts[1];
  }
  Value *a, *b;
  if (interleaved) {
    auto every = [&](int64_t first) {
      return node.Make("slice_by_index",
                       {{"x", x},
                        {"begin", Ints({0, 0, 0, first})},
                        {"end", Ints({0, 0, 0, half * 2})},
                        {"stride", Ints({1, 1, 1, 2})},
                        {"end_mask", Tensor::Vector<bool>({true, true, true, false})}});
    };
    a = every(0);
    b = every(1);
  } else {
    std::vector<Value*> parts = Parts(node, x, {half, half}, 3);
    a = parts[0];
    b = parts[1];
  }
  auto turned = [&](std::string_view op, Value* p, Value* with_p, Value* r, Value* with_r) {
    return Binary(node, op, Binary(node, "mul", p, with_p), Binary(node, "mul", r, with_r));
  };
  Value *first = turned("sub", a, cosine, b, sine), *second = turned("add", a, sine, b, cosine);
  Value* y = nullptr;
  if (interleaved) {
    first = Expanded(node, first, {4});
    second = Expanded(node, second, {4});
    y = Reshaped(node, Concat(node, {first, second}, 4), {{x, 0}, {x, 1}, {x, 2}, half * 2});
  } else {
    y = Concat(node, {first, second}, 3);
  }
  return rest ? Concat(node, {y, rest}, 3) : y;
}

Value* Repeated(Node& node, Value* x, int64_t times) {
  if (times == 1) return x;
  int64_t heads = x->type.shape[1].constant();
  Value* y = Expanded(node, x, {2});
  y = node.Make("tile", {{"x", y}, {"reps", Ints({1, 1, times, 1, 1})}});
  return Reshaped(node, y, {{x, 0}, heads * times, {x, 2}, {x, 3}});
}

}  // namespace mlc::onnx
