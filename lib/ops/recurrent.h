// lib/ops/recurrent.h - shared by the definition of the recurrent operators and their optimised
// kernels.
#pragma once

#include "lib/ir/op_def.h"

namespace mlc {

// Inside recurrent operators, scaled_tanh has the factors 1 and 1, and hard_sigmoid 0.2 and 0.5
// (coremltools, tests of lstm).
enum class RecurrentActivation : uint8_t { kLinear, kRelu, kSigmoid, kHardSigmoid, kTanh };

// The activation named by string operand `param`; context.Fail if it is unknown.
RecurrentActivation RecurrentActivationOf(const OpContext& context, std::string_view param);

// Sizes of one call: x is [steps, batch, inputs], states are [batch, directions * hidden].
struct RecurrentSizes {
  explicit RecurrentSizes(const OpContext& context);
  int64_t steps, batch, inputs, hidden;
};

// One direction of an operation; `suffix` is "" or "_back" in its operand names. For direction
// "reverse", the result sequence is in order of computation, so the last step of x comes first; for
// "bidirectional", both halves are in the order of x (coremltools, tests of gru, lstm and rnn).
struct RecurrentDirection {
  std::string_view suffix;
  bool reads_backward, writes_backward;
  int64_t half;  // 0 or 1: its half of the states and results
};
std::vector<RecurrentDirection> RecurrentDirections(const OpContext& context);

}  // namespace mlc
