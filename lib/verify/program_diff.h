// lib/verify/program_diff.h - the differences between two programs, independent of value names.
#pragma once

#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::verify {

struct OperationPair {
  const Operation *a, *b;            // null if only the other program has it
  std::vector<std::string> changes;  // in parameters and results: "axis: 1 -> 2"
};

// A constant of at least ten elements that is read by an operation of both programs.
struct WeightPair {
  const Operation *a, *b;  // the operations that read it
  std::string param;
  enum class State {
    kEqual,
    kClose,
    kChanged
  } state;  // bitwise equal; within 1e-3 of the largest magnitude; further apart
  double largest_difference = 0;  // infinite for different shapes or a NaN on one side
  size_t bytes_a = 0, bytes_b = 0;
};

struct ProgramDiff {
  std::vector<std::string>
      interface;        // differences in inputs, outputs, states, functions and metadata
  int64_t matched = 0;  // unchanged operations that both programs have
  std::vector<OperationPair> operations;  // changed, removed and inserted operations
  std::vector<WeightPair> weights;        // all weight pairs, in the order of `a`

  bool same() const;
};

// Operations are matched by type, parameters, and neighbourhoods of inputs and users, starting with
// the widest neighbourhoods. Unmatched operations of equal type next to matched ones are paired as
// changed. Constants do not count as operations.
ProgramDiff Diff(const Program& a, const Program& b);

}  // namespace mlc::verify
