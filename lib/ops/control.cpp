#include <algorithm>

#include "lib/ir/program.h"
#include "lib/ops/eval.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

void InferConst(InferContext& context) {
  if (!context.operation() || !context.operation()->val) context.Fail("a const has no value");
  const Tensor& value = context.operation()->val;
  context.Result(value.dtype(), ToShape(value.dims()));
}
void EvalConst(EvalContext& context) { context.Set(context.operation()->val); }

void InferIdentity(InferContext& context) {
  InferSameAsX(context);
  if (auto elements = WholeElements(context, "x")) context.Elements(std::move(*elements));
}
void EvalIdentity(EvalContext& context) { context.Set(context.in("x")); }

void InferSelect(InferContext& context) {
  if (context.dtype("cond") != DType::kBool)
    context.Fail(fmt::format("cond is {}, expected bool", context.type("cond").ToString()));
  DType dtype = SharedDType(context, "a", "b");
  Shape shape = BroadcastShapes(context, context.shape("a"), context.shape("b"));
  context.Result(dtype, BroadcastShapes(context, context.shape("cond"), shape));
  if (context.results[0].rank() > 1) return;
  auto cond = WholeElements(context, "cond");
  auto a = WholeElements(context, "a"), b = WholeElements(context, "b");
  if (!cond || !a || !b || cond->empty() || a->empty() || b->empty()) return;
  std::vector<Dim> elements;
  for (size_t i = 0; i < std::max({cond->size(), a->size(), b->size()}); ++i) {
    auto at = [&](const std::vector<Dim>& dims) -> const Dim& {
      return dims[dims.size() == 1 ? 0 : i];
    };
    if (!at(*cond).is_constant()) return;
    elements.push_back(at(at(*cond).constant() != 0 ? *a : *b));
  }
  context.Elements(std::move(elements));
}
void EvalSelect(EvalContext& context) {
  Tensor cond = context.in("cond"), a = context.in("a"), b = context.in("b");
  Dims dims = context.out_dims();
  context.Set(Dispatch(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Out<T> out(dims);
    const bool* c = cond.data<bool>().data();
    const T *x = a.data<T>().data(), *y = b.data<T>().data();
    T* to = out.data.data();
    Walk<3>(dims,
            {BroadcastStrides(cond.dims(), dims), BroadcastStrides(a.dims(), dims),
             BroadcastStrides(b.dims(), dims)},
            [&](int64_t i, int64_t j, int64_t k) { *to++ = c[i] ? x[j] : y[k]; });
    return out.tensor;
  }));
}

constexpr Row kRows[] = {
    {.name = "const",
     .doc = "a constant",
     .forms = {{{kIos15, ""}}},
     .infer = InferConst,
     .eval = EvalConst},
    {.name = "identity",
     .doc = "x itself",
     .forms = {{{kIos15,
                 "x:T | T=fp16/fp32/int4/int8/int16/int32/uint1/uint2/uint3/uint4/uint6/uint8/"
                 "uint16/uint32/bool/string"}}},
     .infer = InferIdentity,
     .eval = EvalIdentity,
     .view = true},
    {.name = "select",
     .doc = "a where cond, else b",
     .forms = {{{kIos15, "cond:bool a:T b:T | T=fp16/fp32/bool/int32"}}},
     .infer = InferSelect,
     .eval = EvalSelect},
};

}  // namespace

std::span<const Row> ControlRows() { return kRows; }

}  // namespace mlc
