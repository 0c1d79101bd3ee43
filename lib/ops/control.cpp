#include <algorithm>

#include "lib/ir/program.h"
#include "lib/ops/eval.h"
#include "lib/ops/operand_constraint.h"
#include "lib/ops/range_rules.h"
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
    context.Fail("cond is {}, expected bool", context.type("cond").ToString());
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
  context.Set(Dispatch(a.dtype(), [&]<class T>(T) {
    Out<T> out(dims);
    Pin<bool> c = cond.data<bool>();
    Pin<T> x = a.data<T>(), y = b.data<T>();
    T* to = out.data.data();
    Walk<3>(dims,
            {BroadcastStrides(cond.dims(), dims), BroadcastStrides(a.dims(), dims),
             BroadcastStrides(b.dims(), dims)},
            [&](int64_t i, int64_t j, int64_t k) { *to++ = c[i] ? x[j] : y[k]; });
    return out.tensor;
  }));
}

// The common type of a and b: dimensions that differ become symbolic. Fails if the types differ in
// any other way.
Type Join(InferContext& context, const Type& a, const Type& b, std::string_view what) {
  auto fail = [&] {
    context.Fail("{}: {} and {} are incompatible", what, a.ToString(), b.ToString());
  };
  if (a.kind != b.kind || a.dtype != b.dtype || a.shape.size() != b.shape.size() ||
      a.elements.size() != b.elements.size())
    fail();
  auto join = [&](const Dim& x, const Dim& y) { return x == y ? x : context.Fresh("size"); };
  Type type = a;
  for (size_t i = 0; i < type.shape.size(); ++i) type.shape[i] = join(a.shape[i], b.shape[i]);
  if (type.kind == Type::Kind::kList) type.length = join(a.length, b.length);
  for (size_t i = 0; i < type.elements.size(); ++i)
    type.elements[i] = Join(context, a.elements[i], b.elements[i], what);
  return type;
}

const Operation& WithBlocks(InferContext& context) {
  const Operation* op = context.operation();
  if (!op || op->blocks.size() != 2) context.Fail("needs two blocks");
  return *op;
}

bool IsOneBool(const Type& type) {
  return type.is_tensor() && type.dtype == DType::kBool && Product(type.shape) == Dim(1);
}

void InferCond(InferContext& context) {
  const Operation& op = WithBlocks(context);
  if (!IsOneBool(context.type("pred")))
    context.Fail("pred is {}, expected a single bool", context.type("pred").ToString());
  const std::vector<Value*>&yes = op.blocks[0]->outputs(), &no = op.blocks[1]->outputs();
  if (!op.blocks[0]->inputs.empty() || !op.blocks[1]->inputs.empty())
    context.Fail("its blocks have inputs, expected none");
  if (yes.size() != no.size())
    context.Fail("its blocks have {} and {} outputs", yes.size(), no.size());
  for (size_t i = 0; i < yes.size(); ++i)
    context.Result(
        Join(context, yes[i]->type, no[i]->type, fmt::format("output {} of the blocks", i)));
}

void InferWhileLoop(InferContext& context) {
  const Operation& op = WithBlocks(context);
  const Block &condition = *op.blocks[0], &body = *op.blocks[1];
  size_t count = static_cast<size_t>(context.count("loop_vars"));
  if (condition.outputs().size() != 1 || !IsOneBool(condition.outputs()[0]->type))
    context.Fail("its condition block must return a single bool");
  if (body.outputs().size() != count)
    context.Fail("has {} loop variables, but its body returns {}", count, body.outputs().size());
  for (const Block* block : {&condition, &body}) {
    if (block->inputs.size() != count)
      context.Fail("has {} loop variables, but a block has {} inputs", count, block->inputs.size());
    for (size_t i = 0; i < count; ++i) {
      const Type &given = context.type("loop_vars", static_cast<int>(i)),
                 &taken = block->inputs[i]->type, &made = body.outputs()[i]->type;
      if (!MayAgree(given, taken) || !MayAgree(made, taken))
        context.Fail(
            "loop variable {} starts as {} and is updated to {}, but the block input is {}", i,
            given.ToString(), made.ToString(), taken.ToString());
    }
  }
  for (size_t i = 0; i < count; ++i)
    context.Result(Join(context, body.inputs[i]->type, body.outputs()[i]->type,
                        fmt::format("loop variable {}", i)));
}

Type WrappedBy(const InferContext& context, std::string_view state) {
  const Type& type = context.type(state);
  if (type.kind != Type::Kind::kState)
    context.Fail("{} is {}, expected a state", state, type.ToString());
  return type.elements[0];
}
void InferReadState(InferContext& context) { context.Result(WrappedBy(context, "input")); }
void EvalReadState(EvalContext& context) { context.Set(context.in("input")); }

void InferWriteState(InferContext& context) {
  Type wrapped = WrappedBy(context, "input");
  if (!MayAgree(context.type("data"), wrapped))
    context.Fail("data is {}, but the state is {}", context.type("data").ToString(),
                 wrapped.ToString());
}

Interval RangeConst(const RangeContext& context, int) {
  return context.operation() ? IntervalOf(context.operation()->val) : Interval();
}
Interval RangeSelect(const RangeContext& context, int) {
  return Join(context.in("a"), context.in("b"));
}

OperandConstraint WantOfSelect(const ConstraintContext& context) {
  if (context.param != "cond") {
    OperandConstraint constraint = context.Moved();
    constraint.branch = &context.op;
    return constraint;
  }
  OperandConstraint constraint;
  constraint.mask = true;
  std::optional<Interval> a = context.Known("a"), b = context.Known("b");
  if (a && a->high <= kMasked) constraint.valid = 0;
  if (b && b->high <= kMasked) constraint.valid = 1;
  constraint.why = fmt::format("condition of {}", Quoted(context.op));
  return constraint;
}

OperandConstraint WantOfLoop(const ConstraintContext& context) {
  OperandConstraint constraint;
  for (const auto& block : context.op.blocks)
    if (context.index < block->inputs.size())
      constraint = Meet(std::move(constraint), context.Of(*block->inputs[context.index]));
  return constraint;
}

constexpr OpRow kControlRows[] = {
    {.name = "cond",
     .doc = "the results of the first block if pred, else of the second",
     .signatures = {{{kIos15, "pred:bool"}}},
     .infer = InferCond,
     .no_eval = "blocks are executed by the engine",
     .effect = Effect::kBranch,
     .no_range = "depends on the executed block"},
    {.name = "const",
     .doc = "a constant",
     .signatures = {{{kIos15, ""}}},
     .infer = InferConst,
     .eval = EvalConst,
     .constant = ConstantKind::kDense,
     .range = RangeConst},
    {.name = "identity",
     .doc = "x, unchanged",
     .signatures = {{{kIos15,
                      "x:T | "
                      "T=fp16/fp32/int4/int8/int16/int32/uint1/uint2/uint3/uint4/uint6/uint8/"
                      "uint16/uint32/bool/string"}}},
     .infer = InferIdentity,
     .eval = EvalIdentity,
     .moves = Moves::kView,
     .layout = {.data = {"x"}},
     .range = RangeOfX},
    {.name = "read_state",
     .doc = "the current value of a state",
     .signatures = {{{kIos18, "input:state"}}},
     .infer = InferReadState,
     .eval = EvalReadState,
     .effect = Effect::kReadsState,
     .no_range = "depends on the values written"},
    {.name = "select",
     .doc = "elementwise: a if cond, else b",
     .signatures = {{{kIos15, "cond:bool a:T b:T | T=fp16/fp32/bool/int32"}}},
     .infer = InferSelect,
     .eval = EvalSelect,
     .layout = {.data = {"cond", "a", "b"}},
     .fp16 = {.carries = kPlaces | kSteps},
     .range = RangeSelect,
     .constraints = {{{"", WantOfSelect}}}},
    {.name = "while_loop",
     .doc = "loop_vars, updated by the second block while the first returns true",
     .signatures = {{{kIos15, "loop_vars:any..."}}},
     .infer = InferWhileLoop,
     .no_eval = "blocks are executed by the engine",
     .effect = Effect::kLoop,
     .no_range = "depends on the executed iterations",
     .constraints = {{{"", WantOfLoop}}}},
    {.name = "write_state",
     .doc = "stores data in a state",
     .signatures = {{{kIos18,
                      "input:state data:T | T=fp16/fp32/int8/int16/int32/uint8/uint16/bool"}}},
     .infer = InferWriteState,
     .no_eval = "states are stored by the engine",
     .effect = Effect::kWritesState,
     .no_range = "no results"},
};

}  // namespace

std::span<const OpRow> ControlRows() { return kControlRows; }

}  // namespace mlc
