// Replaces operations that compute the same values by the first of them.
//
//   a = exp(x); b = exp(x); c = add(a, b)   ->   a = exp(x); c = add(a, a)
//   a = gather(shape(x), 0); b = gather(shape(relu(x)), 0)   ->   a replaces b: both are known to be n
//
// Must not fire on random or stateful operations, if both results are model outputs, or if the
// types differ in their symbols. No numeric effect. Constants are compared by identity, so
// deduplicate-constants should run first.
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

// Hash and equality of operations: two are equal if they have the same operator and the same
// operands, which must all be values.
struct Computes {
  size_t operator()(const Operation* op) const {
    auto hash = reinterpret_cast<uintptr_t>(op->def);
    auto add = [&hash](uintptr_t next) { hash = std::rotl(hash ^ next, 23) * 0x9E3779B97F4A7C15; };
    for (const Operands& operands : op->args()) {
      add(operands.size());
      for (const Operand& operand : operands) add(reinterpret_cast<uintptr_t>(operand.value));
    }
    return hash;
  }
  bool operator()(const Operation* a, const Operation* b) const {
    auto same = [](const Operand& x, const Operand& y) { return x.value == y.value; };
    auto equal = [&](const Operands& x, const Operands& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
    };
    return a->def == b->def && std::equal(a->args().begin(), a->args().end(), b->args().begin(),
                                          b->args().end(), equal);
  }
};

// Returns the elements of an integer value in symbolic form; empty if they are unknown or all are
// numbers, which fold-constants handles.
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

// The operations before the current one in its block and the enclosing blocks, by computation and
// by known elements.
struct Seen {
  const Seen* outer = nullptr;
  std::unordered_set<Operation*, Computes, Computes> operations = {};
  std::unordered_map<std::string, Operation*> sizes = {};

  // Returns the first equivalent operation, or null if that is `op`.
  Operation* First(Operation* op) {
    for (const Seen* around = outer; around; around = around->outer)
      if (auto it = around->operations.find(op); it != around->operations.end()) return *it;
    auto [it, inserted] = operations.insert(op);
    return inserted ? nullptr : *it;
  }
  Operation* First(const std::string& known, Operation* op) {
    for (const Seen* around = outer; around; around = around->outer)
      if (auto it = around->sizes.find(known); it != around->sizes.end()) return it->second;
    auto [it, inserted] = sizes.emplace(known, op);
    return inserted ? nullptr : it->second;
  }
};

// Maps the results of erased operations to their replacements. Uses are rewritten one operation at
// a time, because an operation may use many of these results.
using Kept = std::unordered_map<Value*, Value*>;

void UseKept(Operation& op, const Kept& kept) {
  for (int i = 0; i < std::ssize(op.args()) && !kept.empty(); ++i) {
    const Operands& given = op.args()[i];
    auto goes = [&](const Operand& operand) { return kept.contains(operand.value); };
    if (std::ranges::none_of(given, goes)) continue;
    Operands operands = given;
    for (Operand& operand : operands)
      if (goes(operand)) operand.value = kept.at(operand.value);
    op.SetArg(i, std::move(operands));
  }
}

// Returns an earlier operation that computes the same as `op`, or null.
Operation* Earlier(Operation* op, Seen& seen) {
  if (std::string sizes = Sizes(*op); !sizes.empty())
    if (Operation* first = seen.First(sizes, op)) return first;
  for (const Operands& operands : op->args())
    for (const Operand& operand : operands)
      if (!operand.value) return nullptr;
  return seen.First(op);
}

bool RunOnBlock(Block& block, const Seen* outer, Kept& kept) {
  Seen seen{outer};
  bool changed = false;
  std::vector<Operation*> unused;
  for (Operation* op : block.operations()) {
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

bool RunCommonSubexpressions(Program& program, PassContext&) {
  return OnEachFunction(program, [](Function& function) {
    Kept kept;
    return RunOnBlock(function.body, nullptr, kept);
  });
}

}  // namespace

extern const PassDef kCommonSubexpressions = {"common-subexpressions",
                                              "merge operations that compute the same values",
                                              RunCommonSubexpressions};

}  // namespace mlc::passes
