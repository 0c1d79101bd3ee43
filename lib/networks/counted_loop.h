// lib/networks/counted_loop.h - a while_loop of a number of steps that is known before the first: a
// counter goes around with its variables.
#pragma once

#include <functional>
#include <vector>

#include "lib/ir/builder.h"
#include "lib/ir/sizes.h"

namespace mlc {

// The operations of one step: the number of steps done before it, int32 [1], and the variables;
// gives the variables after it, of the same types.
using LoopStep =
    std::function<std::vector<Value*>(Builder&, Value* done, const std::vector<Value*>&)>;

// `variables` (at least one, of MIL's own types) after `steps` (int32 [1]) steps.
std::vector<Value*> CountedLoop(Builder& b, Value* steps, std::vector<Value*> variables,
                                const LoopStep& step);

// What a step over a sequence, or all of them, leave: the states, and what goes into the result:
// [1, ...] of one step, [steps, ...] of all; null where nobody wants it.
struct Swept {
  std::vector<Value*> states;
  Value* y = nullptr;
};
// Step `t` (int32 [1]) of a sequence.
using SweepStep = std::function<Swept(Builder&, Value* t, const std::vector<Value*>& states)>;

// One step for each element of x's first dimension, from the last to the first if `reverse`. The
// result is [steps, element] of this type; an empty `element`: none is wanted.
Swept Sweep(Builder& b, Value* x, std::vector<Value*> states, const std::vector<Size>& element,
            DType dtype, bool reverse, const SweepStep& step);

}  // namespace mlc
