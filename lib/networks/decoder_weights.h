// lib/networks/decoder_weights.h - the tensors of a decoder as values of its program, checked.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "lib/ir/builder.h"
#include "lib/networks/decoder.h"

namespace mlc {

// A tensor that is requested twice is one constant. Values are fp32; a tensor keeps its encoding.
class DecoderTensors {
 public:
  DecoderTensors(Builder& b, const DecoderWeights& weights) : builder_(b), weights_(weights) {}

  bool Has(Role role, int64_t layer = 0) const {
    return static_cast<bool>(weights_.find(role, Part::kWeight, layer));
  }
  // Errors "missing-tensor", "bad-tensor".
  Value* Weight(Role role, int64_t layer, const Dims& dims);
  // Null where there is none and it is not `needed`.
  Value* Bias(Role role, int64_t layer, const Dims& dims, bool needed = false);
  // Permutes the rows of each of `heads` heads from interleaved pairs to pairs of the two halves.
  // Whole rows move, so that an encoding is kept.
  Value* InHalves(Role role, Part part, int64_t layer, const Dims& dims, int64_t heads);
  // The divisors of rotary frequencies. Error "bad-tensor" where one is not positive.
  std::vector<double> Factors(Role role, int64_t size);

 private:
  Tensor Checked(Role role, Part part, int64_t layer, const Dims& dims, bool needed);
  Value* Constant(Role role, Part part, int64_t layer, const Tensor& tensor);
  Builder& builder_;
  const DecoderWeights& weights_;
  std::map<std::tuple<Role, Part, int64_t>, Value*> made_;
};

}  // namespace mlc
