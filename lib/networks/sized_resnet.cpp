// ResNets with mixed blocks, antialiasing and excitation, and networks of other residual blocks.

#include "lib/ir/arithmetic.h"
#include "lib/networks/sized_layers.h"
#include "lib/networks/sized_networks.h"

namespace mlc::networks {

namespace {

using Antialias = SizedResNetConfig::Antialias;

// The mean of what a last window still covers of the map.
Value* Halved(SizedLayers& layers, Value* x) { return layers.MeanPoolBeyond(x, 2, 2); }

class SizedResNet {
 public:
  SizedResNet(SizedLayers& layers, const SizedResNetConfig& config)
      : config_(config), layers_(layers), b_(layers.b()) {}

  Value* Map(Value* x) {
    if (layers_.Has("conv1.0")) {
      x = layers_.ConvNorm("conv1.0", "conv1.1", x, {.stride = 2}, Activation::kRelu);
      x = layers_.ConvNorm("conv1.3", "conv1.4", x, {}, Activation::kRelu);
      x = layers_.ConvNorm("conv1.6", "bn1", x, {}, Activation::kRelu);
    } else {
      x = layers_.ConvNorm("conv1", "bn1", x, {.stride = 2}, Activation::kRelu);
    }
    switch (config_.antialias) {
      case Antialias::kNone:
        x = layers_.MaxPool(x, 3, 2, 1);
        break;
      case Antialias::kAverage:
        x = layers_.MeanPool(x, 2, 2, 0);
        break;
      case Antialias::kBlur:
        x = Blurred(layers_.MaxPool(x, 3, 1, 1));
        break;
    }
    for (int64_t stage = 1; stage == 1 || HasBlock(stage, 0); ++stage)
      for (int64_t i = 0; i == 0 || HasBlock(stage, i); ++i)
        x = Block(fmt::format("layer{}.{}.", stage, i), x, stage > 1 && i == 0 ? 2 : 1);
    return x;
  }

 private:
  bool HasBlock(int64_t stage, int64_t i) const {
    return layers_.Has(fmt::format("layer{}.{}.conv1", stage, i));
  }
  Value* Block(const std::string& name, Value* x, int64_t stride) {
    const int last = layers_.Has(name + "conv3") ? 3 : 2, strided = last - 1;
    const bool smooth = stride > 1 && config_.antialias != Antialias::kNone;
    Value* y = x;
    for (int i = 1; i <= last; ++i) {
      y = layers_.ConvNorm(fmt::format("{}conv{}", name, i), fmt::format("{}bn{}", name, i), y,
                           {.stride = i == strided && !smooth ? stride : 1},
                           i == last ? Activation::kNone : Activation::kRelu);
      if (i == strided && smooth)
        y = config_.antialias == Antialias::kBlur ? Blurred(y) : layers_.MeanPool(y, 2, 2, 0);
    }
    y = layers_.Excited(name + "se", y);
    return Activate(b_, Activation::kRelu,
                    layers_.Add(y, Shortcut(name + "downsample.", x, stride)));
  }
  Value* Shortcut(const std::string& name, Value* x, int64_t stride) {
    if (layers_.Has(name + "0"))
      return layers_.ConvNorm(name + "0", name + "1", x, {.stride = stride}, Activation::kNone);
    // Averaging is counted as a layer.
    if (layers_.Has(name + "1"))
      return layers_.ConvNorm(name + "1", name + "2", stride > 1 ? Halved(layers_, x) : x, {},
                              Activation::kNone);
    return x;
  }
  // A filter of 3 x 3 with stride 2; the map is mirrored at its edges.
  Value* Blurred(Value* x) {
    const int64_t channels = Channels(x);
    std::vector<float> filter;
    for (int64_t i = 0; i < channels; ++i)
      for (float y : {1.F, 2.F, 1.F})
        for (float z : {1.F, 2.F, 1.F}) filter.push_back(y * z / 16);
    x = b_.Make("pad", {{"x", x}, {"pad", Ints({0, 0, 0, 0, 1, 1, 1, 1})}, {"mode", "reflect"}});
    return b_.Make("conv",
                   {{"x", x},
                    {"weight", b_.Const(Tensor::Of<float>({channels, 1, 3, 3}, filter), "blur")},
                    {"strides", Ints({2, 2})},
                    {"pad_type", "valid"},
                    {"groups", channels}});
  }

  const SizedResNetConfig& config_;
  SizedLayers& layers_;
  Builder& b_;
};

class ResNetV2 {
 public:
  ResNetV2(SizedLayers& layers, const ResNetV2Config& config)
      : config_(config), layers_(layers), b_(layers.b()) {}

  Value* Map(Value* x) {
    if (layers_.Has("stem.conv1")) {
      x = Normed("stem.norm1", Conv("stem.conv1", x, 2));
      x = Normed("stem.norm2", Conv("stem.conv2", x, 1));
      x = Conv("stem.conv3", x, 1);
    } else {
      x = Conv("stem.conv", x, 2);
    }
    if (config_.standardised) {
      // Zeros around the map take part in the maxima.
      x = b_.Make("pad", {{"x", x},
                          {"pad", Ints({0, 0, 0, 0, 1, 1, 1, 1})},
                          {"mode", "constant"},
                          {"constant_val", 0.0}});
      x = layers_.MaxPool(x, 3, 2, 0);
    } else {
      x = layers_.MaxPool(x, 3, 2, 1);
    }
    for (int64_t stage = 0; stage == 0 || HasBlock(stage, 0); ++stage)
      for (int64_t i = 0; i == 0 || HasBlock(stage, i); ++i)
        x = Block(fmt::format("stages.{}.blocks.{}.", stage, i), x, stage > 0 && i == 0 ? 2 : 1);
    return Normed("norm", x);
  }

 private:
  bool HasBlock(int64_t stage, int64_t i) const {
    return layers_.Has(fmt::format("stages.{}.blocks.{}.conv1", stage, i));
  }
  Value* Conv(const std::string& name, Value* x, int64_t stride) {
    constexpr double kEpsilon = 1e-8;
    return config_.standardised ? layers_.StandardConv(name, x, {.stride = stride}, kEpsilon, 1)
                                : layers_.Conv(name, x, {.stride = stride});
  }
  Value* Normed(const std::string& name, Value* x) {
    if (layers_.layers().Has(name + ".running_mean"))
      return layers_.Norm(name, x, Activation::kRelu);
    constexpr int64_t kGroups = 32;
    return Activate(b_, Activation::kRelu, layers_.MapNorm(name, x, 1e-5, kGroups));
  }
  Value* Block(const std::string& name, Value* x, int64_t stride) {
    const int last = layers_.Has(name + "conv3") ? 3 : 2, strided = last - 1;
    Value *y = Normed(name + "norm1", x), *shortcut = x;
    if (const std::string down = name + "downsample.conv"; layers_.Has(down)) {
      // Deep stems go with averages.
      const bool averages = layers_.Has("stem.conv1");
      shortcut =
          averages ? Conv(down, stride > 1 ? Halved(layers_, y) : y, 1) : Conv(down, y, stride);
    }
    for (int i = 1; i <= last; ++i) {
      if (i > 1) y = Normed(fmt::format("{}norm{}", name, i), y);
      y = Conv(fmt::format("{}conv{}", name, i), y, i == strided ? stride : 1);
    }
    return layers_.Add(y, shortcut);
  }

  const ResNetV2Config& config_;
  SizedLayers& layers_;
  Builder& b_;
};

class BlockNet {
 public:
  BlockNet(SizedLayers& layers, const BlockNetConfig& config)
      : config_(config), layers_(layers), b_(layers.b()) {}

  Value* Map(Value* x) {
    x = Stem(x);
    for (size_t stage = 0; stage < config_.strides.size(); ++stage) {
      const std::string name = fmt::format("stages.{}.", stage);
      for (int64_t i = 0; i == 0 || HasBlock(fmt::format("{}{}.", name, i)); ++i)
        x = Block(fmt::format("{}{}.", name, i), x, i == 0 ? config_.strides[stage] : 1);
    }
    return layers_.Has("final_conv.conv") ? layers_.Unit("final_conv", x, {}, config_.activation)
                                          : x;
  }

 private:
  bool HasBlock(const std::string& name) const {
    return layers_.Has(name + "conv1_1x1.conv") || layers_.Has(name + "conv1_kxk.conv");
  }
  Value* Stem(Value* x) {
    if (layers_.Has("stem.conv")) return layers_.Unit("stem", x, {.stride = 2}, config_.activation);
    auto has = [&](int64_t i) {
      const std::string name = fmt::format("stem.conv{}", i);
      return layers_.Has(name) || layers_.Has(name + ".conv");
    };
    for (int64_t i = 1; i == 1 || has(i); ++i) {
      const std::string name = fmt::format("stem.conv{}", i);
      const bool strided = i == 1 || (!config_.stem_pools && !has(i + 1));
      const Stride window = {.stride = strided ? 2 : 1};
      x = layers_.Has(name) ? layers_.Conv(name, x, window)
                            : layers_.Unit(name, x, window, config_.activation);
    }
    return config_.stem_pools ? layers_.MaxPool(x, 3, 2, 1) : x;
  }
  Value* Block(const std::string& name, Value* x, int64_t stride) {
    std::vector<std::string> units;
    for (const char* unit :
         {"conv1_1x1", "conv1_kxk", "conv2_kxk", "conv2b_kxk", "conv2_1x1", "conv3_1x1"})
      if (layers_.Has(name + unit + ".conv")) units.emplace_back(unit);
    Value* y = x;
    int64_t left = stride;
    for (const std::string& unit : units) {
      const bool last = unit == units.back(), strided = unit.ends_with("kxk");
      if (last) y = layers_.Excited(name + "attn", y);
      y = layers_.Unit(name + unit, y, {.stride = strided ? left : 1},
                       last ? Activation::kNone : config_.activation);
      if (strided) left = 1;
    }
    y = layers_.Excited(name + "attn_last", y);
    if (layers_.Has(name + "shortcut.conv.conv")) {
      Value* pooled = stride > 1 ? Halved(layers_, x) : x;
      y = layers_.Add(y, layers_.Unit(name + "shortcut.conv", pooled, {}, Activation::kNone));
    } else if (layers_.Has(name + "shortcut.conv")) {
      y = layers_.Add(y, layers_.Unit(name + "shortcut", x, {.stride = stride}, Activation::kNone));
    } else if (stride == 1 && Channels(x) == Channels(y)) {
      y = layers_.Add(y, x);
    }
    return config_.linear_blocks ? y : Activate(b_, config_.activation, y);
  }

  const BlockNetConfig& config_;
  SizedLayers& layers_;
  Builder& b_;
};

}  // namespace

Program BuildSizedResNet(const SizedResNetConfig& config, const NetworkWeights& weights,
                         Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  layers.ClassifyMean("fc", SizedResNet(layers, config).Map(net.pixels()), config.labels);
  return net.Finish();
}

Program BuildResNetV2(const ResNetV2Config& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  layers.ClassifyMean("head.fc", ResNetV2(layers, config).Map(net.pixels()), config.labels);
  return net.Finish();
}

Program BuildBlockNet(const BlockNetConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  layers.ClassifyMean("head.fc", BlockNet(layers, config).Map(net.pixels()), config.labels);
  return net.Finish();
}

}  // namespace mlc::networks
