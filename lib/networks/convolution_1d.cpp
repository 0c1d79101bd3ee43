#include "lib/networks/convolution_1d.h"

#include <fmt/ranges.h>

#include <cmath>

namespace mlc::networks {

Value* Convolved(Builder& b, Value* weight, Value* bias, Value* x, const Convolution1d& how) {
  Builder::Args args = {{"x", x},
                        {"weight", weight},
                        {"strides", Ints({how.stride})},
                        {"pad_type", "custom"},
                        {"pad", Ints({how.padding, how.padding})},
                        {"dilations", Ints({how.dilation})},
                        {"groups", how.groups}};
  if (bias) args.emplace_back("bias", bias);
  return b.Make("conv", std::move(args));
}

Value* Convolved(Builder& b, Layers& layers, const std::string& name, Value* x,
                 const Convolution1d& how) {
  const int64_t in = x->type.shape[1].constant();
  Value* weight = layers.Needed(name + ".weight", {how.channels, in / how.groups, how.taps});
  return Convolved(b, weight, layers.Optional(name + ".bias", {how.channels}), x, how);
}

Tensor NormalisedTaps(const Tensor& v, const Tensor& g, const std::string& name) {
  if (v.rank() != 3 || g.size() != v.dims()[2])
    throw Error("bad-tensor", "the sizes of tensor \"{}\" and of its directions [{}] disagree",
                name, fmt::join(v.dims(), ","));
  const int64_t taps = v.dims()[2], rows = v.dims()[0] * v.dims()[1];
  const Tensor values = v.Cast(DType::kFp32);
  const Pin<float> in = values.data<float>();
  const std::vector<double> lengths = g.Doubles();
  std::vector<double> scale(static_cast<size_t>(taps), 0);
  std::vector<float> out(static_cast<size_t>(rows * taps));
  for (size_t i = 0; i < out.size(); ++i)
    scale[i % scale.size()] += static_cast<double>(in[i]) * static_cast<double>(in[i]);
  for (size_t k = 0; k < scale.size(); ++k) scale[k] = lengths[k] / std::sqrt(scale[k]);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(static_cast<double>(in[i]) * scale[i % scale.size()]);
  return Tensor::Of<float>(v.dims(), out);
}

}  // namespace mlc::networks
