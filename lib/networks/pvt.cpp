#include "lib/networks/pvt.h"

#include "lib/ir/arithmetic.h"
#include "lib/networks/heads.h"
#include "lib/networks/sized_layers.h"

namespace mlc::networks {

namespace {

// The epsilons of norms around blocks, and inside of them.
constexpr double kOuterEpsilon = 1e-5, kInnerEpsilon = 1e-6;

class Pvt {
 public:
  Pvt(SizedLayers& layers, const PvtConfig& config)
      : config_(config), layers_(layers), b_(layers.b()) {}

  Value* Map(Value* x) {
    for (size_t stage = 0; stage < config_.heads.size(); ++stage) {
      const std::string name = fmt::format("stages.{}.", stage),
                        embed = stage == 0 ? "patch_embed" : name + "downsample";
      x = layers_.Conv(embed + ".proj", x, {.stride = stage == 0 ? 4 : 2});
      height_ = Height(x), width_ = Width(x);
      x = layers_.layers().LayerNorm(embed + ".norm", layers_.net().Tokens(x), kOuterEpsilon);
      for (int64_t i = 0; i == 0 || layers_.Has(fmt::format("{}blocks.{}.norm1", name, i)); ++i)
        x = Block(fmt::format("{}blocks.{}.", name, i), x, config_.heads[stage]);
      x = Map2(Normed(name + "norm", x));
    }
    return x;
  }

 private:
  Value* Normed(const std::string& name, Value* x) {
    return layers_.layers().LayerNorm(name, x, kInnerEpsilon);
  }
  Value* Map2(Value* tokens) { return layers_.net().Map(tokens, height_, width_); }

  Value* Block(const std::string& name, Value* x, int64_t heads) {
    x = layers_.Add(x, Attention(name + "attn.", Normed(name + "norm1", x), heads));
    Value* y = Map2(layers_.Linear(name + "mlp.fc1", Normed(name + "norm2", x)));
    if (config_.pooled) y = Activate(b_, Activation::kRelu, y);
    y = layers_.net().Tokens(layers_.Conv(name + "mlp.dwconv", y));
    return layers_.Add(x, layers_.Linear(name + "mlp.fc2", Activate(b_, Activation::kGelu, y)));
  }

  Value* Attention(const std::string& name, Value* x, int64_t heads) {
    Value *q = layers_.Linear(name + "q", x), *small = x;
    if (config_.pooled || layers_.Has(name + "sr")) {
      small = Map2(x);
      if (config_.pooled) small = Pooled(small);
      const int64_t side = layers_.layers().Sizes(name + "sr.weight", 4)[2];
      small = layers_.Conv(name + "sr", small,
                           {.stride = side, .padding = PictureWindow::Padding::kNone});
      small = layers_.layers().LayerNorm(name + "norm", layers_.net().Tokens(small), kOuterEpsilon);
      if (config_.pooled) small = Activate(b_, Activation::kGelu, small);
    }
    Value* both = layers_.Linear(name + "kv", small);
    const int64_t width = both->type.shape.back().constant() / 2;
    const std::vector<Value*> parts = Parts(b_, both, {width, width}, 2);
    Value* y = layers_.Attended(Heads(b_, q, heads), Heads(b_, parts[0], heads),
                                Heads(b_, parts[1], heads));
    return layers_.Linear(name + "proj", y);
  }
  Value* Pooled(Value* x) {
    constexpr int64_t kSide = 7;
    if (height_ % kSide != 0 || width_ != height_)
      throw Error("bad-file", "a map of {} x {} cannot be divided into 7 x 7 parts", height_,
                  width_)
          .Help("choose another size of pictures with option 'shape'");
    return layers_.MeanPool(x, height_ / kSide, height_ / kSide, 0);
  }

  const PvtConfig& config_;
  SizedLayers& layers_;
  Builder& b_;
  int64_t height_ = 0, width_ = 0;
};

}  // namespace

Program BuildPvt(const PvtConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics) {
  CheckPositive("heads", config.heads);
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  layers.ClassifyMean("head", Pvt(layers, config).Map(net.pixels()), config.labels);
  return net.Finish();
}

}  // namespace mlc::networks
