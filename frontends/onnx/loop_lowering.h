// frontends/onnx/loop_lowering.h - lowering of a loop body, shared by Loop and Scan.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

struct LoopSpec {
  const Graph* body = nullptr;
  std::vector<Bound> carried;    // initial values of loop-carried dependencies
  Value* trips = nullptr;        // maximum trip count, a scalar; null: unbounded
  std::optional<int64_t> known;  // the value of `trips` if constant
  // Initial condition, a scalar bool; null: true. If `conditional`, the body's first output is the
  // condition for the next iteration.
  Value* go = nullptr;
  bool conditional = false;  // the body has a condition output
  // The axis along which each scan output is concatenated, and whether iterations are in reverse
  // order.
  struct Joined {
    int axis = 0;
    bool reverse = false;
  };
  std::vector<Joined> joined;
  // Returns the body's inputs, made with this builder from the iteration number `index` (a scalar),
  // the condition `go`, and the loop-carried values.
  std::function<std::vector<Bound>(Builder&, Value* index, Value* go, const std::vector<Bound>&)>
      inputs;
  // Values whose sizes may occur as dimensions of the body's tensors.
  std::vector<Value*> around;
};

struct LoopResults {
  std::vector<Bound> carried, joined;
};

// Unrolls the loop when the trip count is known and small; otherwise makes a while_loop.
LoopResults LowerLoop(Node& node, const LoopSpec& what);

}  // namespace mlc::onnx
