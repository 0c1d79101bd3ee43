// lib/passes/flow.h - which operations make a value and which read it, through the borders of blocks
// as well: what enters a loop is its block's input, the result of a branch that of the cond.
#pragma once

#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

// Of a function that does not change meanwhile.
class Flow {
 public:
  explicit Flow(const Function& function);
  // Values that were come past: of calls that share one, each visits what those before did not, nor
  // what is in `others`.
  class Passed {
   public:
    explicit Passed(const Passed* others = nullptr) : others_(others) {}
    bool Contains(const Value* value) const {
      return own_.contains(value) || (others_ && others_->Contains(value));
    }
    // Whether it is the first time.
    bool Add(const Value* value) {
      return !(others_ && others_->Contains(value)) && own_.insert(value).second;
    }

   private:
    std::unordered_set<const Value*> own_;
    const Passed* others_;
  };
  // Calls visit(const Operation*) with the operations whose results are the value, perhaps one of
  // several; null: an input of the function. A loop or a cond is none of them.
  template <class F>
  void ForEachMaker(const Value* value, Passed& passed, F&& visit) const {
    ForEachSource(value, passed, [&](const Value* source) {
      return visit(static_cast<const Operation*>(source->def));
    });
  }
  template <class F>
  void ForEachMaker(const Value* value, F&& visit) const {
    Passed passed;
    ForEachMaker(value, passed, visit);
  }
  // The same with the results of those operations and the inputs.
  template <class F>
  void ForEachSource(const Value* value, Passed& passed, F&& visit) const {
    ForEachReached(value, origins_, passed, [&](const Value* origin) {
      return origins_.contains(origin) || GoesOn(visit, origin);
    });
  }
  // Calls visit(const Use&) with where the value is an operand, or an output of the function (no
  // operation). What it is to a loop, or to a branch whose result it is, does not count.
  template <class F>
  void ForEachReader(const Value* value, Passed& passed, F&& visit) const {
    ForEachReached(value, followers_, passed, [&](const Value* reached) {
      for (auto it = reached->users.begin(); it != reached->users.end(); ++it)
        if (!IsLoop(**it) && !GoesOn(visit, it.use())) return false;
      for (auto it = reached->outputs.begin(); it != reached->outputs.end(); ++it)
        if (!it.use().block->parent && !GoesOn(visit, it.use())) return false;
      return true;
    });
  }
  template <class F>
  void ForEachReader(const Value* value, F&& visit) const {
    Passed passed;
    ForEachReader(value, passed, visit);
  }
  // The values that the value is, one of them each time; empty for the result of an operation without
  // blocks, and for an input of the function.
  const std::vector<const Value*>& Origins(const Value* value) const;

 private:
  using Edges = std::unordered_map<const Value*, std::vector<const Value*>>;
  void Connect(const Value* from, const Value* to);
  static bool IsLoop(const Operation& op) { return op.def->effect == Effect::kLoop; }
  // A visit that returns false has seen enough.
  template <class F, class T>
  static bool GoesOn(F& visit, const T& at) {
    if constexpr (std::is_void_v<decltype(visit(at))>) {
      visit(at);
      return true;
    } else {
      return visit(at);
    }
  }
  // Calls visit with `from` and all values that `edges` lead to, the nearest first.
  template <class F>
  static void ForEachReached(const Value* from, const Edges& edges, Passed& passed, F&& visit) {
    if (!passed.Add(from)) return;
    std::vector<const Value*> reached = {from};
    for (size_t i = 0; i < reached.size() && visit(reached[i]); ++i)
      if (auto next = edges.find(reached[i]); next != edges.end())
        for (const Value* value : next->second)
          if (passed.Add(value)) reached.push_back(value);
  }
  Edges origins_, followers_;
};

}  // namespace mlc
