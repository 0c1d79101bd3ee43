// Bounds the numbers that masks add before a softmax, so that fp16 can hold them.
//
//   m = select(p, 0.0, -3.4e38); y = softmax(add(scores, m))
//     ->   m = select(p, 0.0, -40000.0); y = softmax(add(scores, m))
//
// A constant element below -30000 (also -inf) that reaches nothing but softmax through sums,
// choices, products with 0 or 1, and moves becomes -40000. Where another element of the row is not
// masked, exp(-40000 + score - max) is 0, as long as scores lie within +-19000. A row that is
// masked everywhere gives equal shares, as -3.4e38 does (fp16 numbers around 40000 are 32 apart, so
// usual scores vanish beside it), instead of the NaN that -inf gives.
//
// Must not fire where the masked value is used otherwise (its users must all be such steps), on
// products with anything that is not a converted boolean or integer, nor with --precision fp32.
// Numeric effect: none beyond fp16 rounding.
//
// Operators by name: what it matches and what it makes.
#include <limits>
#include <unordered_set>

#include "lib/passes/match.h"

namespace mlc {
namespace {

constexpr double kMasked = -30000, kBound = -40000;

bool IsMove(const Operation& op) { return op.def->moves != Moves::kNone || op.is("cast"); }

// Whether every element is 0 or 1, as far as masks are written.
bool IsTruth(const Value* value, int depth = 0) {
  const Operation* op = value ? value->def : nullptr;
  if (!op || depth > 8) return false;
  if (op->is("cast")) return !IsFloat(op->value("x")->type.dtype);
  if (op->is("sub") && IsUniform(op->value("x"), 1)) return IsTruth(op->value("y"), depth + 1);
  if (IsMove(*op) && op->def->Find("x") >= 0) return IsTruth(op->value("x"), depth + 1);
  return false;
}

// The constant with what masks bounded; empty when nothing does.
Tensor Bounded(const Tensor& tensor) {
  if (!tensor || !IsFloat(tensor.dtype()) || tensor.size() > (int64_t{1} << 24)) return {};
  std::vector<double> numbers = tensor.Doubles();
  bool changed = false;
  for (double& number : numbers) {
    if (!(number < kMasked) || number == kBound) continue;
    number = kBound;
    changed = true;
  }
  return changed ? Tensor::Of<double>(tensor.dims(), numbers).Cast(tensor.dtype()) : Tensor();
}

bool RunOnBlock(Block& block, PassContext& context) {
  bool changed = false;
  // First, since they may erase constants of this block.
  for (const std::unique_ptr<Operation>& op : block.operations())
    for (const std::unique_ptr<Block>& nested : op->blocks) changed |= RunOnBlock(*nested, context);
  std::vector<Operation*> operations;
  for (const std::unique_ptr<Operation>& op : block.operations()) operations.push_back(op.get());
  std::vector<Operation*> unused;
  std::unordered_set<const Operation*> masks;  // all their results end in softmax
  for (auto it = operations.rbegin(); it != operations.rend(); ++it) {
    Operation* op = *it;
    bool sum = op->is("add"), choice = op->is("select"), product = op->is("mul");
    if (!sum && !choice && !product && !IsMove(*op)) continue;
    bool only = true;
    for (const std::unique_ptr<Value>& result : op->results) {
      only = only && result->has_uses() && !result->is_output();
      for (const Operation* user : result->users)
        only = only && (user->is("softmax") || (masks.contains(user) && !user->is("mul")));
    }
    if (!only) continue;
    masks.insert(op);
    for (std::string_view param : sum || product ? std::vector<std::string_view>{"x", "y"}
                                  : choice       ? std::vector<std::string_view>{"a", "b"}
                                                 : std::vector<std::string_view>{}) {
      Value* constant = op->value(param);
      if (!constant || !constant->is_constant()) continue;
      if (product && !IsTruth(OtherOperand(op, constant))) continue;
      Tensor bounded = Bounded(constant->constant());
      if (!bounded) continue;
      Builder builder = BuilderBefore(op, context);
      op->SetArg(param, {builder.Const(bounded, constant->name)});
      if (!constant->has_uses()) unused.push_back(constant->def);
      context.diagnostics.Decide("safe-form", op->name,
                                 fmt::format("{}: the mask is {:g}, which fp16 holds and softmax "
                                             "cannot tell from less",
                                             op->def->name, kBound));
      changed = true;
    }
  }
  for (Operation* op : unused) op->block->Erase(op);
  return changed;
}

bool Run(Program& program, PassContext& context) {
  if (context.precision == PassContext::Precision::kFp32) return false;
  bool changed = false;
  for (std::unique_ptr<Function>& function : program.functions)
    changed |= RunOnBlock(function->body, context);
  return changed;
}

}  // namespace

extern const PassDef kSafeMasks = {"safe-masks", "bound what masks add before softmax, for fp16",
                                   Run};

}  // namespace mlc
