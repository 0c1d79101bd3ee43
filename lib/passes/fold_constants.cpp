// Constant folding: replaces pure operations by constants, if all operands are constant or if their
// integer results are known from shapes.
//
//   a = const(2); b = const(3); c = add(a, b)   ->   c = const(5)
//
// Must not fire on random or stateful operations, on results of more than 4 Mi elements unless the
// operation only moves elements (which folds lazily), on constexpr operations, or on operations
// whose evaluation fails. No numeric effect: evaluation is exact in the operands' type.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

// Returns whether all operands are constant, or some elements of the results are known.
bool MayBeKnown(const Operation& op) {
  for (const std::unique_ptr<Value>& result : op.results)
    if (result->elements) return true;
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (!operand.constant()) return false;
  return true;
}

bool Foldable(const Operation& op) {
  if (op.def->is_const() || !op.def->pure || op.def->is_constexpr() || op.results.empty() ||
      !op.blocks.empty() || !MayBeKnown(op))
    return false;
  std::vector<Type> results;
  for (const std::unique_ptr<Value>& result : op.results) results.push_back(result->type);
  return Folds(OpContext(*op.def, op.args(), &op), results);
}

// Returns constants for all results, or nothing.
std::vector<Tensor> Known(const Operation& op) {
  std::vector<Tensor> known;
  try {
    known = Evaluate(op);
  } catch (const Error&) {
    return {};  // the error remains at run time, if the operation is executed at all
  }
  if (!known.empty()) return known;
  for (const std::unique_ptr<Value>& result : op.results) {
    if (!result->elements || !IsInteger(result->type.dtype)) return {};
    std::vector<int64_t> values;
    for (const Dim& element : *result->elements) {
      if (!element.is_constant()) return {};
      values.push_back(element.constant());
    }
    known.push_back(
        Tensor::Of<int64_t>(StaticDims(result->type.shape), values).Cast(result->type.dtype));
  }
  return known;
}

bool RunOnBlock(Block& block, Diagnostics& diagnostics) {
  bool changed = false;
  for (auto it = block.operations().begin(); it != block.operations().end();) {
    Operation* op = *it++;
    for (std::unique_ptr<Block>& nested : op->blocks) changed |= RunOnBlock(*nested, diagnostics);
    if (!Foldable(*op)) continue;
    std::vector<Tensor> known = Known(*op);
    if (known.empty()) continue;
    Builder builder(block, diagnostics, op);
    builder.SetLocation(op->location);
    for (size_t i = 0; i < known.size(); ++i) {
      Value* result = op->result(static_cast<int>(i));
      ReplaceAllUses(result, builder.Const(std::move(known[i]), result->name));
    }
    block.Erase(op);
    changed = true;
  }
  return changed;
}

bool RunFoldConstants(Program& program, PassContext& context) {
  return OnEachFunction(program,
                        [&](Function& f) { return RunOnBlock(f.body, context.diagnostics); });
}

}  // namespace

extern const PassDef kFoldConstants = {
    "fold-constants", "evaluate operations with constant operands or static shapes",
    RunFoldConstants};

}  // namespace mlc::passes
