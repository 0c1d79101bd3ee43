// NFNets and MambaOut.

#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/networks/sized_layers.h"
#include "lib/networks/sized_networks.h"

namespace mlc::networks {

namespace {

class NormFreeNet {
 public:
  NormFreeNet(SizedLayers& layers, const NormFreeConfig& config)
      : config_(config), layers_(layers), b_(layers.b()) {}

  Value* Map(Value* x) {
    bool small = true;  // the stem has a stride of 4
    if (layers_.Has("stem.conv1")) {
      for (int64_t i = 1; i == 1 || layers_.Has(fmt::format("stem.conv{}", i)); ++i) {
        const bool last = !layers_.Has(fmt::format("stem.conv{}", i + 1));
        x = Conv(fmt::format("stem.conv{}", i), x, i == 1 || last ? 2 : 1);
        if (!last) x = Act(x);
      }
    } else {
      constexpr int64_t kLarge = 7;
      x = Conv("stem.conv", x, 2);
      small = layers_.layers().Sizes("stem.conv.weight", 4)[2] == kLarge;
      if (small) x = layers_.MaxPool(x, 3, 2, 1);
    }
    double variance = 1;  // that the input of a block is expected to have
    for (int64_t stage = 0; stage == 0 || HasBlock(stage, 0); ++stage)
      for (int64_t i = 0; i == 0 || HasBlock(stage, i); ++i) {
        const int64_t stride = i == 0 && (stage > 0 || !small) ? 2 : 1;
        x = Block(fmt::format("stages.{}.{}.", stage, i), x, stride, 1 / std::sqrt(variance));
        variance = (i == 0 ? 1 : variance) + config_.alpha * config_.alpha;
      }
    if (layers_.Has("final_conv")) x = Conv("final_conv", x, 1);
    return Act(x);
  }

 private:
  bool HasBlock(int64_t stage, int64_t i) const {
    return layers_.Has(fmt::format("stages.{}.{}.conv1", stage, i));
  }
  Value* Act(Value* x) {
    x = Activate(b_, config_.activation, x);
    return config_.gamma_in_activation ? Binary(b_, "mul", x, config_.gamma) : x;
  }

  Value* Conv(const std::string& name, Value* x, int64_t stride) {
    constexpr double kEpsilon = 1e-5;
    const Dims sizes = layers_.layers().Sizes(name + ".weight", 4);
    layers_.layers().Needed(name + ".gain", {sizes[0], 1, 1, 1});
    const double inputs = static_cast<double>(sizes[1] * sizes[2] * sizes[3]);
    return layers_.StandardConv(
        name, x, {.stride = stride, .padding = config_.padding}, kEpsilon,
        (config_.gamma_in_activation ? 1 : config_.gamma) / std::sqrt(inputs));
  }

  Value* Block(const std::string& name, Value* x, int64_t stride, double beta) {
    constexpr double kGain = 2;  // of squeeze and excitation
    Value* out = Act(x);
    if (beta != 1) out = Binary(b_, "mul", out, beta);
    Value* shortcut = x;
    if (layers_.Has(name + "downsample.conv"))
      shortcut =
          Conv(name + "downsample.conv", stride > 1 ? layers_.MeanPoolBeyond(out, 2, 2) : out, 1);
    out = Conv(name + "conv2", Act(Conv(name + "conv1", out, 1)), stride);
    if (layers_.Has(name + "conv2b")) out = Conv(name + "conv2b", Act(out), 1);
    auto excited = [&](const char* part, Value* y) {
      Value* z = layers_.Excited(name + part, y);
      return z == y ? y : Binary(b_, "mul", z, kGain);
    };
    out = Conv(name + "conv3", Act(excited("attn", out)), 1);
    out = excited("attn_last", out);
    if (layers_.layers().Has(name + "skipinit_gain"))
      out = layers_.Mul(out, layers_.layers().Flat(name + "skipinit_gain", 1));
    return layers_.Add(Binary(b_, "mul", out, config_.alpha), shortcut);
  }

  const NormFreeConfig& config_;
  SizedLayers& layers_;
  Builder& b_;
};

class MambaOut {
 public:
  MambaOut(SizedLayers& layers, const MambaOutConfig& config)
      : config_(config), layers_(layers), b_(layers.b()) {}

  Value* Map(Value* x) {
    x = layers_.Conv("stem.conv1", x, {.stride = 2});
    if (layers_.Has("stem.norm1")) x = Normed("stem.norm1", x);
    x = layers_.Conv("stem.conv2", Activate(b_, config_.activation, x), {.stride = 2});
    x = Normed("stem.norm2", x);
    for (int64_t stage = 0; stage == 0 || HasBlock(stage, 0); ++stage) {
      const std::string name = fmt::format("stages.{}.", stage), down = name + "downsample.";
      if (stage > 0) {
        const bool first = config_.norm_first;
        if (first) x = Normed(down + "norm", x);
        x = layers_.Conv(down + "conv", x, {.stride = 2});
        if (!first) x = Normed(down + "norm", x);
      }
      for (int64_t i = 0; i == 0 || HasBlock(stage, i); ++i)
        x = Block(fmt::format("{}blocks.{}.", name, i), x);
    }
    return x;
  }

  void Classify(Value* x) {
    b_.SetName("head");
    Value* pooled =
        layers_.layers().LayerNorm("head.norm", layers_.net().Pooled(x, false), kEpsilon);
    if (layers_.Has("head.pre_logits.fc")) {
      pooled = Activate(b_, Activation::kGelu, layers_.Linear("head.pre_logits.fc", pooled));
      if (layers_.Has("head.pre_logits.norm"))
        pooled = layers_.layers().LayerNorm("head.pre_logits.norm", pooled, kEpsilon);
    }
    layers_.Classify("head.fc", x, pooled, config_.labels);
  }

 private:
  static constexpr double kEpsilon = 1e-6;

  bool HasBlock(int64_t stage, int64_t i) const {
    return layers_.Has(fmt::format("stages.{}.blocks.{}.fc1", stage, i));
  }
  Value* Normed(const std::string& name, Value* x) {
    return layers_.layers().ChannelNorm(name, x, kEpsilon);
  }
  Value* Block(const std::string& name, Value* x) {
    Value* y = layers_.Conv(name + "fc1", Normed(name + "norm", x));
    const int64_t hidden = Channels(y) / 2,
                  convolved = layers_.layers().Sizes(name + "conv.weight", 4)[0];
    if (convolved > hidden)
      throw Error("bad-tensor", "\"{}conv.weight\" has {} channels", name, convolved)
          .Expected("at most {}", hidden);
    Value* gate = layers_.Channels(y, 0, hidden);
    Value* rest =
        layers_.Conv(name + "conv", layers_.Channels(y, 2 * hidden - convolved, 2 * hidden));
    if (convolved < hidden)
      rest = Concat(b_, {layers_.Channels(y, hidden, 2 * hidden - convolved), rest}, 1);
    y = layers_.Conv(name + "fc2", layers_.Mul(Activate(b_, config_.activation, gate), rest));
    return layers_.Add(layers_.Scaled(name + "ls.gamma", y), x);
  }

  const MambaOutConfig& config_;
  SizedLayers& layers_;
  Builder& b_;
};

}  // namespace

Program BuildNormFreeNet(const NormFreeConfig& config, const NetworkWeights& weights,
                         Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  layers.ClassifyMean("head.fc", NormFreeNet(layers, config).Map(net.pixels()), config.labels);
  return net.Finish();
}

Program BuildMambaOut(const MambaOutConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  MambaOut network(layers, config);
  network.Classify(network.Map(net.pixels()));
  return net.Finish();
}

}  // namespace mlc::networks
