// lib/networks/recurrent.h - layers of LSTM, GRU and plain recurrent cells, with what MIL's
// operators lack too: lengths of rows, clips, any activation, weights of the run time.
//
// H is the size of a state. Gates, and the parts of weights and biases, stand in this order: LSTM
// input, output, forget, cell; GRU update, reset, hidden.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc {

struct CellActivationRow {
  std::string_view name;
  int parameters;        // how many of alpha and beta it takes
  double alpha, beta;    // their defaults
  std::string_view mil;  // inside MIL's recurrent operators, with the defaults; empty: not there
};
// The row of this name, in lower case ("hardsigmoid"); null: there is none.
const CellActivationRow* FindCellActivation(std::string_view name);

struct CellActivation {
  const CellActivationRow* row;
  double alpha, beta;
  friend bool operator==(const CellActivation&, const CellActivation&) = default;
};

enum class Cell { kLstm, kGru, kRnn };

struct RecurrentLayer {
  Cell cell;
  Value* x;                    // [steps, batch, inputs]
  Value* lengths = nullptr;    // int32 [batch], 0 to steps; null: all steps
  std::optional<double> clip;  // the magnitude of what goes into an activation
  bool input_forget = false;   // LSTM: the forget gate is 1 - the input gate
  bool reset_after = false;    // GRU: the reset gate scales the product with the recurrence
  bool wants_sequence = true;  // y of the results
};

// One direction of a layer.
struct LayerDirection {
  Value *weight, *recurrence;     // [gates * H, inputs], [gates * H, H]
  Value *bias, *recurrence_bias;  // [gates * H]; null: none
  Value* peephole = nullptr;      // LSTM: [3 * H] for input, output and forget; null: none
  Value *h, *c = nullptr;         // first states [batch, H]; c of an LSTM alone
  // LSTM: of the gates, of the cell, of the state; GRU: of the gates, of hidden; RNN: one.
  std::vector<CellActivation> activations;
  bool reverse = false;  // from the last step to the first
};

struct RecurrentResult {
  Value* y = nullptr;                // [steps, batch, H] in the order of x, zeros beyond a length
  Value *h = nullptr, *c = nullptr;  // last states [batch, H]; c of an LSTM alone
};

// A result for each direction. One MIL operation for each (for both directions of an LSTM together)
// where it says the same; else step by step, which a decision says: unrolled where at most 64 steps
// are known, else a while_loop.
std::vector<RecurrentResult> Recurrent(Builder& b, const RecurrentLayer& layer,
                                       const std::vector<LayerDirection>& directions);

}  // namespace mlc
