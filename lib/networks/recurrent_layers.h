// lib/networks/recurrent_layers.h - layers of LSTM, GRU and plain recurrent cells, including
// features that MIL's operators lack: row lengths, clipping, arbitrary activations, weights that
// are not constants.
//
// H is the size of a state. Gates, and the parts of weights and biases, are in this order: LSTM
// input, output, forget, cell; GRU update, reset, hidden.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc::networks {

struct CellActivationRow {
  std::string_view name;
  int parameters;      // number of parameters: alpha, then beta
  double alpha, beta;  // their defaults
  std::string_view
      mil;  // name in MIL's recurrent operators, with the defaults; empty: not supported
};
// Returns the row with this name, in lower case ("hardsigmoid"); null if there is none.
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
  std::optional<double> clip;  // limit for the magnitude of inputs of activations
  bool input_forget = false;   // LSTM: the forget gate is 1 - the input gate
  bool reset_after = false;  // GRU: the reset gate is applied after the product with the recurrence
  bool wants_sequence = true;  // whether to compute y of the results
};

// One direction of a layer.
struct LayerDirection {
  Value *weight, *recurrence;     // [gates * H, inputs], [gates * H, H]
  Value *bias, *recurrence_bias;  // [gates * H]; null: none
  Value* peephole = nullptr;      // LSTM: [3 * H] for input, output and forget; null: none
  Value *h, *c = nullptr;         // initial states [batch, H]; c only for an LSTM
  // LSTM: activations of the gates, the cell and the state; GRU: of the gates and of hidden; RNN:
  // one activation.
  std::vector<CellActivation> activations;
  bool reverse = false;  // from the last step to the first
};

struct RecurrentResult {
  Value* y = nullptr;  // [steps, batch, H] in the order of x, zeros beyond a row's length
  Value *h = nullptr, *c = nullptr;  // final states [batch, H]; c only for an LSTM
};

// Returns one result per direction. If MIL's operator supports the layer, each direction is one
// operation (or both directions of an LSTM together). Otherwise the layer is computed step by step,
// which a decision reports: unrolled if there are at most 2 steps and their number is known,
// otherwise a while_loop.
std::vector<RecurrentResult> Recurrent(Builder& b, const RecurrentLayer& layer,
                                       const std::vector<LayerDirection>& directions);

}  // namespace mlc::networks
