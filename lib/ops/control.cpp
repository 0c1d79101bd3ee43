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
};

}  // namespace

std::span<const Row> ControlRows() { return kRows; }

}  // namespace mlc
