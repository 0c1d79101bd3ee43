// Keeps one of several operations that compute the same.
//
//   a = exp(x); b = exp(x); c = add(a, b)   ->   a = exp(x); c = add(a, a)
//   a = gather(shape(x), 0); b = gather(shape(relu(x)), 0)   ->   a for b: both are known to be n
//
// Must not fire on random or stateful operations, where both results are model outputs, nor where
// the types are written with different symbols. No numeric effect. Constants are compared by
// identity: run deduplicate-constants first.
#include <map>
#include <unordered_map>

#include "lib/passes/match.h"

namespace mlc {
namespace {

using Key = std::pair<const OpDef*, std::vector<std::vector<const Value*>>>;

// What is known of an integer value's elements, written out; empty when they are not known or all
// are numbers (fold-constants' business).
std::string Sizes(const Operation& op) {
  if (op.results.size() != 1 || !op.result()->elements) return "";
  std::string text = op.result()->type.ToString();
  bool symbolic = false;
  for (const Dim& element : *op.result()->elements) {
    symbolic = symbolic || !element.is_constant();
    text += ';' + element.ToString();
  }
  return symbolic ? text : "";
}

// What stands before an operation, by how it is computed and by what it is known to be.
struct Seen {
  std::map<Key, Operation*> operations;
  std::map<std::string, Operation*> sizes;
};

// What operations that go compute, and what stands for it. Uses are rewritten operation by
// operation: one may use many of them.
using Kept = std::unordered_map<Value*, Value*>;

void UseKept(Operation& op, const Kept& kept) {
  for (size_t i = 0; i < op.args().size(); ++i) {
    std::vector<Operand> operands = op.args()[i];
    bool changed = false;
    for (Operand& operand : operands)
      if (auto it = kept.find(operand.value); it != kept.end()) {
        operand.value = it->second;
        changed = true;
      }
    if (changed) op.SetArg(static_cast<int>(i), std::move(operands));
  }
}

// The operation that already computes what `op` does; null when there is none.
Operation* Earlier(Operation* op, Seen& seen) {
  if (std::string sizes = Sizes(*op); !sizes.empty()) {
    auto [it, inserted] = seen.sizes.emplace(std::move(sizes), op);
    if (!inserted) return it->second;
  }
  Key key{op->def, {}};
  for (const std::vector<Operand>& operands : op->args()) {
    key.second.emplace_back();
    for (const Operand& operand : operands) {
      if (!operand.value) return nullptr;
      key.second.back().push_back(operand.value);
    }
  }
  auto [it, inserted] = seen.operations.emplace(std::move(key), op);
  return inserted ? nullptr : it->second;
}

bool RunOnBlock(Block& block, Seen seen, Kept& kept) {
  bool changed = false;
  std::vector<Operation*> operations, unused;
  for (const std::unique_ptr<Operation>& op : block.operations()) operations.push_back(op.get());
  for (Operation* op : operations) {
    UseKept(*op, kept);
    for (std::unique_ptr<Block>& nested : op->blocks) changed |= RunOnBlock(*nested, seen, kept);
    if (op->def->is_const() || !op->def->pure || !op->blocks.empty() || op->results.empty())
      continue;
    Operation* first = Earlier(op, seen);
    if (!first) continue;
    bool replaceable = first->results.size() == op->results.size();
    int count = static_cast<int>(op->results.size());
    for (int i = 0; replaceable && i < count; ++i)
      replaceable = op->result(i)->type == first->result(i)->type &&
                    CanReplace(op->result(i), first->result(i));
    if (!replaceable) continue;
    for (int i = 0; i < count; ++i) {
      if (op->result(i)->is_output()) ReplaceAllUses(op->result(i), first->result(i));
      auto again = kept.find(first->result(i));
      kept[op->result(i)] = again == kept.end() ? first->result(i) : again->second;
    }
    unused.push_back(op);
    changed = true;
  }
  for (auto it = unused.rbegin(); it != unused.rend(); ++it) block.Erase(*it);
  return changed;
}

bool Run(Program& program, PassContext&) {
  bool changed = false;
  for (std::unique_ptr<Function>& function : program.functions) {
    Kept kept;
    changed |= RunOnBlock(function->body, {}, kept);
  }
  return changed;
}

}  // namespace

const PassDef kCommonSubexpressions = {"common-subexpressions",
                                       "keep one of several operations that compute the same", Run};

}  // namespace mlc
