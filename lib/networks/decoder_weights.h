// lib/networks/decoder_weights.h - checks the tensors of a decoder and turns them into constants of
// its program.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "lib/ir/builder.h"
#include "lib/networks/decoder.h"

namespace mlc::networks {

// Each tensor becomes one constant, even if it is requested several times. Values are fp32; a
// tensor keeps its encoding.
class DecoderTensors {
 public:
  DecoderTensors(Builder& b, const DecoderWeights& weights) : builder_(b), weights_(weights) {}

  bool Has(Role role, int64_t layer = 0) const {
    return static_cast<bool>(weights_.find(role, Part::kWeight, layer));
  }
  // Errors "missing-tensor", "bad-tensor".
  Value* Weight(Role role, int64_t layer, const Dims& dims);
  // Returns null if there is no bias and it is not `needed`.
  Value* Bias(Role role, int64_t layer, const Dims& dims, bool needed = false);
  // Permutes the rows of each of `heads` heads from interleaved pairs to pairs of the two halves.
  // Whole rows are moved, so an encoding is preserved.
  Value* InHalves(Role role, Part part, int64_t layer, const Dims& dims, int64_t heads);
  // Returns the divisors of rotary frequencies. Error "bad-tensor" if one is not positive.
  std::vector<double> Factors(Role role, int64_t size);

 private:
  Tensor Checked(Role role, Part part, int64_t layer, const Dims& dims, bool needed);
  Value* Constant(Role role, Part part, int64_t layer, const Tensor& tensor);
  Builder& builder_;
  const DecoderWeights& weights_;
  std::map<std::tuple<Role, Part, int64_t>, Value*> made_;
};

}  // namespace mlc::networks
