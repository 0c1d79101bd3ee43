// lib/ops/recurrent.h - what the definition of the recurrent operators and their fast kernels
// share.
#pragma once

#include "lib/ir/op_def.h"

namespace mlc {

// scaled_tanh has the factors 1 and 1 inside recurrent operators, hard_sigmoid 0.2 and 0.5
// (coremltools, tests of lstm).
enum class RecurrentActivation : uint8_t { kLinear, kRelu, kSigmoid, kHardSigmoid, kTanh };

// The activation that string operand `param` names; context.Fail when there is none.
RecurrentActivation RecurrentActivationOf(const OpContext& context, std::string_view param);

// Sizes of one call: x [steps, batch, inputs], and states [batch, directions * hidden].
struct RecurrentSizes {
  explicit RecurrentSizes(const OpContext& context);
  int64_t steps, batch, inputs, hidden;
};

// One direction of an operation. `suffix` is that of its operands: "" or "_back". Of direction
// "reverse" the sequence of results is in the order of computing, last step of x first; of
// "bidirectional" both halves are in the order of x (coremltools, tests of gru, lstm and rnn).
struct RecurrentDirection {
  std::string_view suffix;
  bool reads_backward, writes_backward;
  int64_t half;  // 0 or 1: its part of states and results
};
std::vector<RecurrentDirection> RecurrentDirections(const OpContext& context);

}  // namespace mlc
