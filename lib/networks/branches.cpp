#include "lib/networks/branches.h"

#include <cmath>

#include "lib/networks/picture_network.h"

namespace mlc::networks {

Branches::Branches(Layers& layers, int64_t out, int64_t in, int64_t kernel)
    : layers_(layers),
      out_(out),
      in_(in),
      kernel_(kernel),
      weight_(static_cast<size_t>(out * in * kernel * kernel)),
      bias_(static_cast<size_t>(out)) {}

Branches::Norm Branches::NormOf(const std::string& name, double epsilon) {
  auto read = [&](const char* part) {
    return layers_.Needed(name + part, {out_})->constant().data<float>();
  };
  const Pin<float> gamma = read(".weight"), beta = read(".bias"), mean = read(".running_mean"),
                   variance = read(".running_var");
  Norm norm;
  for (size_t i = 0; i < static_cast<size_t>(out_); ++i) {
    norm.scale.push_back(gamma[i] / std::sqrt(variance[i] + epsilon));
    norm.bias.push_back(beta[i] - mean[i] * norm.scale.back());
  }
  return norm;
}

double& Branches::Centre(int64_t channel) {
  const int64_t place = channel % in_, half = kernel_ / 2;
  return weight_[static_cast<size_t>(((channel * in_ + place) * kernel_ + half) * kernel_ + half)];
}

void Branches::AddScaled(const std::string& name, int64_t kernel, const Norm& norm) {
  const Value* stored = layers_.Needed(name + ".weight", {out_, in_, kernel, kernel});
  const Pin<float> weight = stored->constant().data<float>();
  const int64_t margin = (kernel_ - kernel) / 2;
  size_t at = 0;
  for (int64_t row = 0; row < out_ * in_; ++row)
    for (int64_t y = 0; y < kernel; ++y)
      for (int64_t x = 0; x < kernel; ++x)
        weight_[static_cast<size_t>((row * kernel_ + y + margin) * kernel_ + x + margin)] +=
            weight[at++] * norm.scale[static_cast<size_t>(row / in_)];
  for (size_t i = 0; i < bias_.size(); ++i) bias_[i] += norm.bias[i];
}

void Branches::AddConvolution(const std::string& name, int64_t kernel, double epsilon) {
  AddScaled(name + ".conv", kernel, NormOf(name + ".norm", epsilon));
}

void Branches::AddBiasedConvolution(const std::string& name, int64_t kernel) {
  const Pin<float> bias = layers_.Needed(name + ".bias", {out_})->constant().data<float>();
  AddScaled(name, kernel,
            {std::vector<double>(bias_.size(), 1), std::vector<double>(bias.begin(), bias.end())});
}

void Branches::AddNorm(const std::string& name, double epsilon) {
  const Norm norm = NormOf(name, epsilon);
  for (int64_t i = 0; i < out_; ++i) {
    Centre(i) += norm.scale[static_cast<size_t>(i)];
    bias_[static_cast<size_t>(i)] += norm.bias[static_cast<size_t>(i)];
  }
}

void Branches::AddIdentity() {
  for (int64_t i = 0; i < out_; ++i) Centre(i) += 1;
}

void Branches::Subtract(const Branches& other) {
  for (size_t i = 0; i < weight_.size(); ++i) weight_[i] -= other.weight_[i];
  for (size_t i = 0; i < bias_.size(); ++i) bias_[i] -= other.bias_[i];
}

void Branches::Scale(const std::vector<double>& channels) {
  const size_t row = weight_.size() / channels.size();
  for (size_t i = 0; i < weight_.size(); ++i) weight_[i] *= channels[i / row];
  for (size_t i = 0; i < bias_.size(); ++i) bias_[i] *= channels[i];
}

void Branches::Normalise(const std::string& name, double epsilon) {
  const Norm norm = NormOf(name, epsilon);
  Scale(norm.scale);
  for (size_t i = 0; i < bias_.size(); ++i) bias_[i] += norm.bias[i];
}

Value* Branches::Apply(Builder& b, Value* x, const PictureWindow& window) const {
  const std::vector<float> weight(weight_.begin(), weight_.end()), bias(bias_.begin(), bias_.end());
  return b.Make(
      "conv",
      {{"x", x},
       {"weight", b.Const(Tensor::Of<float>({out_, in_, kernel_, kernel_}, weight), "weight")},
       {"bias", b.Const(Tensor::Of<float>({out_}, bias), "bias")},
       {"strides", Ints({window.stride, window.stride})},
       {"pad_type", "custom"},
       {"pad", Ints(PaddingOf(x, window))},
       {"groups", window.groups}});
}

Branches BranchesOf(Layers& layers, const std::string& name, int64_t in, int64_t out,
                    const PictureWindow& window, double epsilon) {
  Branches sum(layers, out, in / window.groups, window.kernel);
  bool any = false;
  for (int64_t i = 0; i < kMaxLayers; ++i, any = true) {
    const std::string branch = fmt::format("{}.branch.{}", name, i);
    if (!layers.Has(branch + ".conv.weight")) break;
    sum.AddConvolution(branch, window.kernel, epsilon);
  }
  if (layers.Has(name + ".scale.conv.weight"))
    sum.AddConvolution(name + ".scale", 1, epsilon), any = true;
  if (layers.Has(name + ".identity.weight") && in == out)
    sum.AddNorm(name + ".identity", epsilon), any = true;
  // Reports what is missing.
  if (!any) sum.AddConvolution(name + ".branch.0", window.kernel, epsilon);
  return sum;
}

Value* SumOfBranches(Builder& b, Layers& layers, const std::string& name, Value* x, int64_t out,
                     const PictureWindow& window, double epsilon) {
  b.SetName(name);
  if (layers.Has(name + ".fused.weight"))
    return layers.Convolution(name + ".fused", x, out, window);
  return BranchesOf(layers, name, Channels(x), out, window, epsilon).Apply(b, x, window);
}

}  // namespace mlc::networks
