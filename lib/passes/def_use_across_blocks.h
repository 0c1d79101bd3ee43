// lib/passes/def_use_across_blocks.h - def-use chains across block boundaries: a loop operand
// continues as an input of the loop's blocks, and the result of a branch as the result of its cond.
#pragma once

#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::passes {

// Holds the chains of a function, which must not change during its lifetime.
class DefUseGraph {
 public:
  explicit DefUseGraph(const Function& function);
  // The set of values visited so far. Calls that share a set visit each value once, and skip the
  // values in `others`.
  class Visited {
   public:
    explicit Visited(const Visited* others = nullptr) : others_(others) {}
    bool Contains(const Value* value) const {
      return own_.contains(value) || (others_ && others_->Contains(value));
    }
    // Returns true the first time a value is added.
    bool Add(const Value* value) {
      return !(others_ && others_->Contains(value)) && own_.insert(value).second;
    }

   private:
    std::unordered_set<const Value*> own_;
    const Visited* others_;
  };
  // Calls visit(const Operation*) for each operation that may produce the value, and with null for
  // an input of the function. Loops and conds are never reported.
  template <class F>
  void ForEachProducer(const Value* value, Visited& passed, F&& visit) const {
    ForEachSource(value, passed, [&](const Value* source) {
      return visit(static_cast<const Operation*>(source->def));
    });
  }
  template <class F>
  void ForEachProducer(const Value* value, F&& visit) const {
    Visited passed;
    ForEachProducer(value, passed, visit);
  }
  // The same, but visits the results of those operations and the inputs.
  template <class F>
  void ForEachSource(const Value* value, Visited& passed, F&& visit) const {
    ForEachReached(value, origins_, passed, [&](const Value* origin) {
      return origins_.contains(origin) || GoesOn(visit, origin);
    });
  }
  // Calls visit(const Use&) for each use of the value as an operand or as an output of the function
  // (without an operation). Uses as a loop operand or as the result of a branch are followed, not
  // reported.
  template <class F>
  void ForEachConsumer(const Value* value, Visited& passed, F&& visit) const {
    ForEachReached(value, followers_, passed, [&](const Value* reached) {
      for (auto it = reached->users.begin(); it != reached->users.end(); ++it)
        if (!IsLoop(**it) && !GoesOn(visit, it.use())) return false;
      for (auto it = reached->outputs.begin(); it != reached->outputs.end(); ++it)
        if (!it.use().block->parent && !GoesOn(visit, it.use())) return false;
      return true;
    });
  }
  template <class F>
  void ForEachConsumer(const Value* value, F&& visit) const {
    Visited passed;
    ForEachConsumer(value, passed, visit);
  }
  // The values that may flow into the value; empty for inputs of the function and for results of
  // operations without blocks.
  const std::vector<const Value*>& Origins(const Value* value) const;

 private:
  using Edges = std::unordered_map<const Value*, std::vector<const Value*>>;
  void Connect(const Value* from, const Value* to);
  static bool IsLoop(const Operation& op) { return op.def->effect == Effect::kLoop; }
  // The traversal stops when `visit` returns false.
  template <class F, class T>
  static bool GoesOn(F& visit, const T& at) {
    if constexpr (std::is_void_v<decltype(visit(at))>) {
      visit(at);
      return true;
    } else {
      return visit(at);
    }
  }
  // Calls visit with `from` and every value reachable by `edges`, in breadth-first order.
  template <class F>
  static void ForEachReached(const Value* from, const Edges& edges, Visited& passed, F&& visit) {
    if (!passed.Add(from)) return;
    std::vector<const Value*> reached = {from};
    for (size_t i = 0; i < reached.size() && visit(reached[i]); ++i)
      if (auto next = edges.find(reached[i]); next != edges.end())
        for (const Value* value : next->second)
          if (passed.Add(value)) reached.push_back(value);
  }
  Edges origins_, followers_;
};

}  // namespace mlc::passes
