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
  // The operations whose results are the value, perhaps one of several; null: an input of the
  // function. A loop or a cond is none of them.
  std::vector<const Operation*> Makers(const Value* value) const;
  // Where the value is an operand, or an output of the function (no operation). What it is to a loop,
  // or to a branch whose result it is, does not count.
  std::vector<Use> Readers(const Value* value) const;
  // The values that the value is, one of them each time; empty for the result of an operation without
  // blocks, and for an input of the function.
  const std::vector<const Value*>& Origins(const Value* value) const;

 private:
  using Edges = std::unordered_map<const Value*, std::vector<const Value*>>;
  void Connect(const Value* from, const Value* to);
  Edges origins_, followers_;
};

}  // namespace mlc
