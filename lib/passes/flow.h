// lib/passes/flow.h - which operations make a value and which read it, through the borders of blocks
// as well: what enters a loop is its block's input, the result of a branch that of the cond.
#pragma once

#include <unordered_map>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

// Of a function that does not change meanwhile.
class Flow {
 public:
  explicit Flow(const Function& function);
  // Calls visit(const Operation*) with the operations whose results are the value, perhaps one of
  // several; null: an input of the function. A loop or a cond is none of them.
  template <class F>
  void ForEachMaker(const Value* value, F&& visit) const {
    ForEachReached(value, origins_, [&](const Value* origin) {
      if (!origins_.contains(origin)) visit(static_cast<const Operation*>(origin->def));
    });
  }
  // Calls visit(const Use&) with where the value is an operand, or an output of the function (no
  // operation). What it is to a loop, or to a branch whose result it is, does not count.
  template <class F>
  void ForEachReader(const Value* value, F&& visit) const {
    ForEachReached(value, followers_, [&](const Value* reached) {
      for (auto it = reached->users.begin(); it != reached->users.end(); ++it)
        if (!IsLoop(**it)) visit(it.use());
      for (auto it = reached->outputs.begin(); it != reached->outputs.end(); ++it)
        if (!it.use().block->parent) visit(it.use());
    });
  }
  // The values that the value is, one of them each time; empty for the result of an operation without
  // blocks, and for an input of the function.
  const std::vector<const Value*>& Origins(const Value* value) const;

 private:
  using Edges = std::unordered_map<const Value*, std::vector<const Value*>>;
  void Connect(const Value* from, const Value* to);
  static bool IsLoop(const Operation& op) { return op.is("while_loop"); }
  // `from` and all values that `edges` lead to, each once.
  static std::vector<const Value*> Reached(const Value* from, const Edges& edges);
  template <class F>
  static void ForEachReached(const Value* from, const Edges& edges, F&& visit) {
    if (edges.empty() || !edges.contains(from)) return visit(from);
    for (const Value* value : Reached(from, edges)) visit(value);
  }
  Edges origins_, followers_;
};

}  // namespace mlc
