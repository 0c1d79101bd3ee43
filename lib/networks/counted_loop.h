// lib/networks/counted_loop.h - builds a while_loop whose number of steps is known before the first
// step, from a counter that is added to the loop variables.
#pragma once

#include <functional>
#include <vector>

#include "lib/ir/builder.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::networks {

// Builds one step from the number of completed steps, int32 [1], and the variables. Returns the new
// values of the variables, of the same types.
using LoopStep =
    std::function<std::vector<Value*>(Builder&, Value* done, const std::vector<Value*>&)>;

// Returns `variables` (at least one; all of MIL's types) after `steps` (int32 [1]) steps.
std::vector<Value*> CountedLoop(Builder& b, Value* steps, std::vector<Value*> variables,
                                const LoopStep& step);

// The results of one step over a sequence, or of all steps: the states, and y, the output: [1, ...]
// for one step, [steps, ...] for all steps; null if it is not requested.
struct Swept {
  std::vector<Value*> states;
  Value* y = nullptr;
};
// Builds step `t` (int32 [1]) of a sequence.
using SweepStep = std::function<Swept(Builder&, Value* t, const std::vector<Value*>& states)>;

// Runs one step for each element of x's first dimension, from the last to the first if `reverse`.
// The output y is [steps, element] of type `dtype`; it is not requested if `element` is empty.
Swept Sweep(Builder& b, Value* x, std::vector<Value*> states, const std::vector<Size>& element,
            DType dtype, bool reverse, const SweepStep& step);

}  // namespace mlc::networks
