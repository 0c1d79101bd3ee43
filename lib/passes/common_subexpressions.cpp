// Keeps one of several operations that compute the same.
//
//   a = exp(x); b = exp(x); c = add(a, b)   ->   a = exp(x); c = add(a, a)
//
// Must not fire on random or stateful operations, where both results are model outputs, nor where
// the types are written with different symbols. No numeric effect. Constants are compared by
// identity: run deduplicate-constants first.
#include <map>

#include "lib/passes/match.h"

namespace mlc {
namespace {

using Key = std::pair<const OpDef*, std::vector<std::vector<const Value*>>>;

bool RunOnBlock(Block& block, std::map<Key, Operation*> seen) {
  bool changed = false;
  std::vector<Operation*> operations;
  for (const std::unique_ptr<Operation>& op : block.operations()) operations.push_back(op.get());
  for (Operation* op : operations) {
    for (std::unique_ptr<Block>& nested : op->blocks) changed |= RunOnBlock(*nested, seen);
    if (op->is("const") || !op->def->pure || !op->blocks.empty() || op->results.empty()) continue;
    Key key{op->def, {}};
    bool literal = false;
    for (const std::vector<Operand>& operands : op->args()) {
      key.second.emplace_back();
      for (const Operand& operand : operands) {
        literal = literal || !operand.value;
        key.second.back().push_back(operand.value);
      }
    }
    if (literal) continue;
    auto [it, inserted] = seen.emplace(key, op);
    if (inserted) continue;
    Operation* first = it->second;
    bool replaceable = first->results.size() == op->results.size();
    int count = static_cast<int>(op->results.size());
    for (int i = 0; replaceable && i < count; ++i)
      replaceable = op->result(i)->type == first->result(i)->type &&
                    CanReplace(op->result(i), first->result(i));
    if (!replaceable) continue;
    for (int i = 0; i < count; ++i) ReplaceAllUses(op->result(i), first->result(i));
    block.Erase(op);
    changed = true;
  }
  return changed;
}

bool Run(Program& program, PassContext&) {
  bool changed = false;
  for (std::unique_ptr<Function>& function : program.functions)
    changed |= RunOnBlock(function->body, {});
  return changed;
}

}  // namespace

const PassDef kCommonSubexpressions = {"common-subexpressions",
                                       "keep one of several operations that compute the same", Run};

}  // namespace mlc
