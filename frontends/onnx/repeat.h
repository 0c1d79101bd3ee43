// frontends/onnx/repeat.h - what Loop and Scan share: a body that runs again and again.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

struct Repetition {
  const Graph* body = nullptr;
  std::vector<Bound> carried;    // before the first time
  Value* trips = nullptr;        // scalar; null: no bound
  std::optional<int64_t> known;  // `trips` where it is known
  // Scalar bool: whether there is a first time; null: there is. The body's first output then says
  // whether there is another.
  Value* go = nullptr;
  bool conditional = false;  // the body has that output
  // Where the elements of each sequence that the body gives are joined, and whether from the back.
  struct Joined {
    int axis = 0;
    bool reverse = false;
  };
  std::vector<Joined> joined;
  // The body's inputs, made by this builder: number `index` (scalar), `go`, and what is carried.
  std::function<std::vector<Bound>(Builder&, Value* index, Value* go, const std::vector<Bound>&)>
      inputs;
  // Values whose dimensions those of the body's tensors may be.
  std::vector<Value*> around;
};

struct Repeated {
  std::vector<Bound> carried, joined;
};

// Unrolled where the number of times is known and small, else a while_loop.
Repeated Repeat(Node& node, const Repetition& what);

}  // namespace mlc::onnx
