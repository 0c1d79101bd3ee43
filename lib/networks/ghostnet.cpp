#include "lib/networks/ghostnet.h"

#include "lib/ir/arithmetic.h"
#include "lib/networks/sized_layers.h"

namespace mlc::networks {

namespace {

class GhostNet {
 public:
  explicit GhostNet(SizedLayers& layers) : layers_(layers) {}

  Value* Block(const std::string& name, Value* x) {
    if (layers_.Has(name + ".conv"))
      return layers_.ConvNorm(name + ".conv", name + ".bn1", x, {}, Activation::kRelu);
    const int64_t stride = layers_.Has(name + ".conv_dw") ? 2 : 1;
    Value* y = Ghost(name + ".ghost1", x, Activation::kRelu);
    if (stride > 1)
      y = layers_.ConvNorm(name + ".conv_dw", name + ".bn_dw", y, {.stride = stride},
                           Activation::kNone);
    if (layers_.Has(name + ".se.conv_reduce")) {
      Value* mean = layers_.Conv(name + ".se.conv_reduce", layers_.net().Pooled(y, true));
      mean = layers_.Conv(name + ".se.conv_expand", Activate(layers_.b(), Activation::kRelu, mean));
      y = layers_.Mul(y, Activate(layers_.b(), Activation::kHardSigmoid, mean));
    }
    y = Ghost(name + ".ghost2", y, Activation::kNone);
    if (layers_.Has(name + ".shortcut.0")) {
      x = Pair(name + ".shortcut", 0, x, {.stride = stride});
      x = Pair(name + ".shortcut", 2, x);
    }
    return layers_.Add(y, x);
  }

 private:
  // Two layers of a list: a convolution and its norm.
  Value* Pair(const std::string& name, int64_t first, Value* x, const Stride& window = {},
              Activation activation = Activation::kNone) {
    return layers_.ConvNorm(fmt::format("{}.{}", name, first),
                            fmt::format("{}.{}", name, first + 1), x, window, activation);
  }

  Value* Ghost(const std::string& name, Value* x, Activation activation) {
    Value* primary = Pair(name + ".primary_conv", 0, x, {}, activation);
    Value* cheap = Pair(name + ".cheap_operation", 0, primary, {}, activation);
    Value* y = Concat(layers_.b(), {primary, cheap}, 1);
    if (!layers_.Has(name + ".short_conv.0")) return y;
    // Scores of far places are computed on a map of half the size.
    Value* far = layers_.MeanPool(x, 2, 2, 0);
    for (int64_t i : {0, 2, 4}) far = Pair(name + ".short_conv", i, far);
    far = layers_.Nearest(Activate(layers_.b(), Activation::kSigmoid, far), Height(y), Width(y));
    return layers_.Mul(layers_.Channels(y, 0, Channels(far)), far);
  }

  SizedLayers& layers_;
};

}  // namespace

Program BuildGhostNet(const GhostNetConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  Value* x = layers.ConvNorm("conv_stem", "bn1", net.pixels(), {.stride = 2}, Activation::kRelu);
  GhostNet ghost(layers);
  auto has = [&](const std::string& name) {
    return layers.Has(name + ".conv") || layers.Has(name + ".ghost1.primary_conv.0");
  };
  for (int64_t stage = 0; stage == 0 || has(fmt::format("blocks.{}.0", stage)); ++stage)
    for (int64_t i = 0; i == 0 || has(fmt::format("blocks.{}.{}", stage, i)); ++i)
      x = ghost.Block(fmt::format("blocks.{}.{}", stage, i), x);
  net.b().SetName("head");
  Value* pooled = layers.Conv("conv_head", net.Pooled(x, true));
  pooled = WithShape(net.b(), Activate(net.b(), Activation::kRelu, pooled), {1, -1});
  layers.Classify("classifier", x, pooled, config.labels);
  return net.Finish();
}

}  // namespace mlc::networks
