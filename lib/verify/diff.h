// lib/verify/diff.h - what differs between two programs, whatever their values are called.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

struct OperationPair {
  const Operation *a, *b;            // null: only the other program has it
  std::vector<std::string> changes;  // of parameters and results: "axis: 1 -> 2"
};

// A constant of ten elements or more that an operation of both programs reads.
struct WeightPair {
  const Operation *a, *b;  // the readers
  std::string param;
  enum class State {
    kEqual,
    kClose,
    kChanged
  } state;                        // equal in every bit; within 1e-3 of the
                                  // greatest magnitude; further apart
  double largest_difference = 0;  // infinite: other shapes, NaN on one side
  size_t bytes_a = 0, bytes_b = 0;
};

struct ProgramDiff {
  std::vector<std::string> interface;  // inputs, outputs, states, functions, metadata: what differs
  int64_t matched = 0;                 // operations that both have, unchanged
  std::vector<OperationPair> operations;  // the others
  std::vector<WeightPair> weights;        // all, by order in `a`

  bool same() const;
};

// Operations are matched by what they compute from what for whom: type, parameters, and the
// neighbourhoods of inputs and users, widest first; those left over next to matched ones pair up as
// changed where their types are equal. Constants are no operations here.
ProgramDiff Diff(const Program& a, const Program& b);

}  // namespace mlc
