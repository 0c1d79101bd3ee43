#include "lib/networks/metaformer.h"

#include "lib/ir/arithmetic.h"
#include "lib/networks/heads.h"
#include "lib/networks/sized_layers.h"

namespace mlc::networks {

namespace {

class MetaFormer {
 public:
  MetaFormer(SizedLayers& layers, const MetaFormerConfig& config)
      : config_(config), layers_(layers), b_(layers.b()) {}

  Value* Map(Value* x) {
    constexpr int64_t kStemStride = 4, kStemPad = 2;
    x = layers_.PaddedConv("stem.conv", x, kStemStride, kStemPad);
    if (layers_.Has("stem.norm")) x = ChannelNorm("stem.norm", x);
    for (int64_t stage = 0; stage == 0 || HasBlock(stage, 0); ++stage) {
      const std::string name = fmt::format("stages.{}.", stage), down = name + "downsample";
      if (layers_.Has(down + ".conv")) {
        if (layers_.Has(down + ".norm")) x = ChannelNorm(down + ".norm", x);
        x = layers_.Conv(down + ".conv", x, {.stride = 2});
      }
      for (int64_t i = 0; i == 0 || HasBlock(stage, i); ++i)
        x = Block(fmt::format("{}blocks.{}.", name, i), x);
    }
    return x;
  }

  Value* ChannelNorm(const std::string& name, Value* x) {
    constexpr double kEpsilon = 1e-6;
    return layers_.layers().ChannelNorm(name, x, kEpsilon);
  }

 private:
  bool HasBlock(int64_t stage, int64_t i) const {
    return layers_.Has(fmt::format("stages.{}.blocks.{}.mlp.fc1", stage, i));
  }

  Value* Block(const std::string& name, Value* x) {
    auto add = [&](const char* i, Value* y) {
      return layers_.Add(layers_.Scaled(fmt::format("{}res_scale{}.scale", name, i), x),
                         layers_.Scaled(fmt::format("{}layer_scale{}.scale", name, i), y));
    };
    x = add("1", Mixed(name + "token_mixer", Normed(name + "norm1", x)));
    Value* y = layers_.Conv(name + "mlp.fc1", Normed(name + "norm2", x));
    return add("2", layers_.Conv(name + "mlp.fc2", Activated(name + "mlp.act", y)));
  }
  Value* Normed(const std::string& name, Value* x) {
    return config_.group_norms
               ? layers_.MapNorm(name, x, layers_.layers().Has(name + ".bias") ? 1e-5 : 1e-6)
               : ChannelNorm(name, x);
  }
  // scale relu(x)^2 + bias (StarReLU), if the layer has these.
  Value* Activated(const std::string& name, Value* x) {
    if (!layers_.layers().Has(name + ".scale")) return Activate(b_, config_.activation, x);
    x = b_.Make("square", {{"x", Activate(b_, Activation::kRelu, x)}});
    return layers_.Add(layers_.Mul(x, layers_.layers().Needed(name + ".scale", {1})),
                       layers_.layers().Needed(name + ".bias", {1}));
  }

  Value* Mixed(const std::string& name, Value* x) {
    if (layers_.Has(name + ".pwconv1")) {
      x = Activated(name + ".act1", layers_.Conv(name + ".pwconv1", x));
      return layers_.Conv(name + ".pwconv2", layers_.Conv(name + ".dwconv", x));
    }
    if (!layers_.Has(name + ".qkv"))
      return Binary(b_, "sub", layers_.MeanPool(x, 3, 1, 1, false), x);
    Value* all = layers_.Linear(name + ".qkv", layers_.net().Tokens(x));
    const int64_t width = all->type.shape.back().constant() / 3;
    std::vector<Value*> parts = Parts(b_, all, {width, width, width}, 2);
    for (Value*& part : parts) part = Heads(b_, part, std::max<int64_t>(width / config_.head, 1));
    Value* y = layers_.Linear(name + ".proj", layers_.Attended(parts[0], parts[1], parts[2]));
    return layers_.net().Map(y, Height(x), Width(x));
  }

  const MetaFormerConfig& config_;
  SizedLayers& layers_;
  Builder& b_;
};

}  // namespace

Program BuildMetaFormer(const MetaFormerConfig& config, const NetworkWeights& weights,
                        Diagnostics& diagnostics) {
  CheckPositive({{"dimensions of a head", config.head}});
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  MetaFormer former(layers, config);
  Value* x = former.Map(net.pixels());
  net.b().SetName("head");
  Value* pooled = former.ChannelNorm("head.norm", net.Pooled(x, true));
  pooled = WithShape(net.b(), pooled, {1, Channels(x)});
  std::string last = "head.fc";
  if (config.labels > 0 && layers.Has("head.fc.fc1")) {
    constexpr double kEpsilon = 1e-6;
    pooled = Activate(net.b(), Activation::kRelu, layers.Linear("head.fc.fc1", pooled));
    pooled = net.b().Make("square", {{"x", pooled}});
    pooled = net.layers().LayerNorm("head.fc.norm", pooled, kEpsilon);
    last = "head.fc.fc2";
  }
  layers.Classify(last, x, pooled, config.labels);
  return net.Finish();
}

}  // namespace mlc::networks
