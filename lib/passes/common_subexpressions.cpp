// Keeps one of several operations that compute the same.
//
//   a = exp(x); b = exp(x); c = add(a, b)   ->   a = exp(x); c = add(a, a)
//   a = gather(shape(x), 0); b = gather(shape(relu(x)), 0)   ->   a for b: both are known to be n
//
// Must not fire on random or stateful operations, where both results are model outputs, nor where
// the types are written with different symbols. No numeric effect. Constants are compared by
// identity: run deduplicate-constants first.
#include <functional>
#include <unordered_map>

#include "lib/passes/match.h"

namespace mlc {
namespace {

// The operator and its operands, null after those of each parameter.
using Key = std::vector<const void*>;
struct HashOfKey {
  size_t operator()(const Key& key) const {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(key.data()), key.size() * sizeof(key[0])});
  }
};

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

// What stands before an operation in its block and those around it, by how it is computed and by
// what it is known to be.
struct Seen {
  const Seen* outer = nullptr;
  std::unordered_map<Key, Operation*, HashOfKey> operations = {};
  std::unordered_map<std::string, Operation*> sizes = {};

  // The first of this key; null when that is `op`.
  template <class Map>
  Operation* First(Map Seen::*map, typename Map::key_type key, Operation* op) {
    for (const Seen* around = outer; around; around = around->outer)
      if (auto it = (around->*map).find(key); it != (around->*map).end()) return it->second;
    auto [it, inserted] = (this->*map).emplace(std::move(key), op);
    return inserted ? nullptr : it->second;
  }
};

// What operations that go compute, and what stands for it. Uses are rewritten operation by
// operation: one may use many of them.
using Kept = std::unordered_map<Value*, Value*>;

void UseKept(Operation& op, const Kept& kept) {
  for (int i = 0; i < std::ssize(op.args()) && !kept.empty(); ++i) {
    const std::vector<Operand>& given = op.args()[i];
    auto goes = [&](const Operand& operand) { return kept.contains(operand.value); };
    if (std::none_of(given.begin(), given.end(), goes)) continue;
    std::vector<Operand> operands = given;
    for (Operand& operand : operands)
      if (goes(operand)) operand.value = kept.at(operand.value);
    op.SetArg(i, std::move(operands));
  }
}

// The operation that already computes what `op` does; null when there is none.
Operation* Earlier(Operation* op, Seen& seen) {
  if (std::string sizes = Sizes(*op); !sizes.empty())
    if (Operation* first = seen.First(&Seen::sizes, std::move(sizes), op)) return first;
  Key key;
  size_t length = 1;
  for (const std::vector<Operand>& operands : op->args()) length += operands.size() + 1;
  key.reserve(length);
  key.push_back(op->def);
  for (const std::vector<Operand>& operands : op->args()) {
    for (const Operand& operand : operands) {
      if (!operand.value) return nullptr;
      key.push_back(operand.value);
    }
    key.push_back(nullptr);
  }
  return seen.First(&Seen::operations, std::move(key), op);
}

bool RunOnBlock(Block& block, const Seen* outer, Kept& kept) {
  Seen seen{outer};
  bool changed = false;
  std::vector<Operation*> operations, unused;
  for (const std::unique_ptr<Operation>& op : block.operations()) operations.push_back(op.get());
  for (Operation* op : operations) {
    UseKept(*op, kept);
    for (std::unique_ptr<Block>& nested : op->blocks) changed |= RunOnBlock(*nested, &seen, kept);
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
    changed |= RunOnBlock(function->body, nullptr, kept);
  }
  return changed;
}

}  // namespace

extern const PassDef kCommonSubexpressions = {
    "common-subexpressions", "keep one of several operations that compute the same", Run};

}  // namespace mlc
