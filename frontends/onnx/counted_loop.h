// frontends/onnx/counted_loop.h - a while_loop that takes a known kind of steps.
#pragma once

#include <functional>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc::onnx {

// The operations of one step: the number of steps done before it, int32 [1], and the variables;
// gives the variables after it, of the same types.
using LoopStep =
    std::function<std::vector<Value*>(Builder&, Value* done, const std::vector<Value*>&)>;

// `variables` (at least one, of MIL's own types) after `steps` (int32 [1]) steps.
std::vector<Value*> CountedLoop(Builder& b, Value* steps, std::vector<Value*> variables,
                                const LoopStep& step);

}  // namespace mlc::onnx
