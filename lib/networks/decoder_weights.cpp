#include "lib/networks/decoder_weights.h"

#include <cmath>

#include "lib/networks/check_weights.h"

namespace mlc::networks {

Tensor DecoderTensors::Checked(Role role, Part part, int64_t layer, const Dims& dims, bool needed) {
  Tensor tensor = weights_.find(role, part, layer);
  if (!tensor && !needed) return {};
  return CheckedWeight(tensor, weights_.name(role, part, layer), dims);
}

Value* DecoderTensors::Constant(Role role, Part part, int64_t layer, const Tensor& tensor) {
  const std::string name = weights_.name(role, part, layer);
  return made_[{role, part, layer}] = builder_.Const(tensor, name);
}

Value* DecoderTensors::Weight(Role role, int64_t layer, const Dims& dims) {
  if (auto it = made_.find({role, Part::kWeight, layer}); it != made_.end()) return it->second;
  return Constant(role, Part::kWeight, layer, Checked(role, Part::kWeight, layer, dims, true));
}

Value* DecoderTensors::Bias(Role role, int64_t layer, const Dims& dims, bool needed) {
  Tensor tensor = Checked(role, Part::kBias, layer, dims, needed);
  return tensor ? Constant(role, Part::kBias, layer, tensor) : nullptr;
}

Value* DecoderTensors::InHalves(Role role, Part part, int64_t layer, const Dims& dims,
                                int64_t heads) {
  Tensor tensor = Checked(role, part, layer, dims, part == Part::kWeight);
  if (!tensor) return nullptr;
  Dims pairs = {heads, dims[0] / heads / 2, 2};
  std::vector<int> perm = {0, 2, 1};
  if (dims.size() > 1) {
    pairs.push_back(dims[1]);
    perm.push_back(3);
  }
  return Constant(role, part, layer, tensor.Reshaped(pairs).Transposed(perm).Reshaped(dims));
}

std::vector<double> DecoderTensors::Factors(Role role, int64_t size) {
  std::vector<double> factors = Checked(role, Part::kWeight, 0, {size}, true).Doubles();
  for (size_t i = 0; i < factors.size(); ++i)
    if (!(factors[i] > 0) || !std::isfinite(factors[i]))
      throw Error("bad-tensor", "tensor \"{}\": rotary frequency factor {} is {}",
                  weights_.name(role, Part::kWeight, 0), i, factors[i])
          .Expected("positive finite numbers");
  return factors;
}

}  // namespace mlc::networks
