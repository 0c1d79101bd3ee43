#include "lib/networks/efficientformer.h"

#include "lib/ir/arithmetic.h"
#include "lib/networks/sized_layers.h"

namespace mlc::networks {

namespace {

class EfficientFormer {
 public:
  EfficientFormer(SizedLayers& layers, const EfficientFormerConfig& config)
      : config_(config), layers_(layers), b_(layers.b()) {}

  // Returns tokens, or the map of V2.
  Value* Features(Value* x) {
    const Activation activation = config_.second ? config_.activation : Activation::kRelu;
    for (const char* i : {"1", "2"})
      x = Unit(std::string("stem.conv") + i, std::string("stem.norm") + i, x, {.stride = 2},
               activation);
    for (int64_t stage = 0; stage == 0 || HasStage(stage); ++stage) {
      const std::string name = fmt::format("stages.{}.", stage);
      if (stage > 0)
        x = config_.second ? Down(name + "downsample", x) : Conv(name + "downsample", x);
      for (int64_t i = 0; i == 0 || HasBlock(stage, i); ++i)
        x = Block(fmt::format("{}blocks.{}", name, i), x);
    }
    return x;
  }

 private:
  bool HasStage(int64_t stage) const { return HasBlock(stage, 0); }
  bool HasBlock(int64_t stage, int64_t i) const {
    const std::string name = fmt::format("stages.{}.blocks.{}.mlp.fc1", stage, i);
    // A step that turns the map into tokens is counted as a block of V1's last stage.
    return layers_.Has(name) || layers_.Has(name + ".conv") ||
           (!config_.second &&
            layers_.Has(fmt::format("stages.{}.blocks.{}.mlp.fc1", stage, i + 1)));
  }
  Value* Unit(const std::string& conv, const std::string& norm, Value* x, const Stride& window,
              Activation activation) {
    return config_.second ? layers_.Unit(conv, x, window, activation)
                          : layers_.ConvNorm(conv, norm, x, window, activation);
  }
  Value* Unit(const std::string& name, Value* x, const Stride& window = {},
              Activation activation = Activation::kNone) {
    return layers_.Unit(name, x, window, activation);
  }
  Value* Conv(const std::string& name, Value* x) {
    return layers_.ConvNorm(name + ".conv", name + ".norm", x, {.stride = 2}, Activation::kNone);
  }

  Value* Block(const std::string& name, Value* x) {
    if (!config_.second && !layers_.Has(name + ".mlp.fc1")) return layers_.net().Tokens(x);
    if (x->type.shape.size() == 3) return TokenBlock(name, x);
    if (!config_.second) {
      Value* y = Binary(b_, "sub", layers_.MeanPool(x, 3, 1, 1, false), x);
      x = layers_.Add(x, layers_.Scaled(name + ".ls1.gamma", y));
    } else if (layers_.Has(name + ".token_mixer.q.conv")) {
      x = layers_.Add(x, layers_.Scaled(name + ".ls1.gamma", Attention(name + ".token_mixer", x)));
    }
    const std::string mlp = name + ".mlp.";
    Value* y = Unit(mlp + "fc1", mlp + "norm1", x, {}, config_.activation);
    if (config_.second) y = Unit(mlp + "mid", y, {}, config_.activation);
    y = Unit(mlp + "fc2", mlp + "norm2", y, {}, Activation::kNone);
    return layers_.Add(x, layers_.Scaled(name + ".ls2.gamma", y));
  }

  Value* TokenBlock(const std::string& name, Value* x) {
    constexpr double kEpsilon = 1e-5;
    Layers& plain = layers_.layers();
    const int64_t heads = config_.heads, key = config_.key, tokens = x->type.shape[1].constant();
    const std::string mixer = name + ".token_mixer.";
    Value* all = layers_.Linear(mixer + "qkv", plain.LayerNorm(name + ".norm1", x, kEpsilon));
    const int64_t each = all->type.shape.back().constant() / heads;
    all = Transposed(b_, WithShape(b_, all, {1, tokens, heads, each}), {0, 2, 1, 3});
    const std::vector<Value*> parts = Parts(b_, all, {key, key, each - 2 * key}, 3);
    // The table is that of a square map.
    const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens)));
    Value* bias = layers_.DistanceBias(mixer + "attention_biases", heads, {side, tokens / side});
    Value* y = layers_.Attended(parts[0], parts[1], parts[2], bias);
    y = layers_.ScaledTokens(name + ".ls1.gamma", layers_.Linear(mixer + "proj", y));
    x = layers_.Add(x, y);
    y = layers_.Linear(name + ".mlp.fc1", plain.LayerNorm(name + ".norm2", x, kEpsilon));
    y = layers_.Linear(name + ".mlp.fc2", Activate(b_, config_.activation, y));
    return layers_.Add(x, layers_.ScaledTokens(name + ".ls2.gamma", y));
  }

  // Returns the heads [1, N, S, H] of a map [1, N H, h, w].
  Value* Heads(Value* x) {
    x = WithShape(b_, x, {1, config_.heads, Channels(x) / config_.heads, Height(x) * Width(x)});
    return Transposed(b_, x, {0, 1, 3, 2});
  }
  // Attends, and adds the values of the places around.
  Value* Mixed(const std::string& name, Value* x, Value* q, int64_t stride, bool talks) {
    const GridSize grid = {Height(x), Width(x)};
    const int64_t height = Height(q), width = networks::Width(q), key = Channels(q) / config_.heads;
    Value *k = Unit(name + ".k", x), *v = Unit(name + ".v", x);
    Value* local = Unit(name + ".v_local", v, {.stride = stride});
    q = Binary(b_, "mul", Heads(q), 1 / std::sqrt(static_cast<double>(key)));
    Value* y = b_.Make("matmul", {{"x", q}, {"y", Heads(k)}, {"transpose_y", true}});
    y = layers_.Add(y,
                    layers_.DistanceBias(name + ".attention_biases", config_.heads, grid, stride));
    if (talks) y = layers_.Conv(name + ".talking_head1", y);
    y = b_.Make("softmax", {{"x", y}, {"axis", -1}});
    if (talks) y = layers_.Conv(name + ".talking_head2", y);
    y = b_.Make("matmul", {{"x", y}, {"y", Heads(v)}});
    y = WithShape(b_, Transposed(b_, y, {0, 1, 3, 2}), {1, Channels(v), height, width});
    return layers_.Add(y, local);
  }
  Value* Attention(const std::string& name, Value* x) {
    const int64_t height = Height(x), width = networks::Width(x);
    const bool strided = layers_.Has(name + ".stride_conv.conv");
    if (strided) x = Unit(name + ".stride_conv", x, {.stride = 2});
    Value* y = Mixed(name, x, Unit(name + ".q", x), 1, true);
    if (strided) y = layers_.net().Resized(y, 2 * Height(y), 2 * networks::Width(y));
    if (Height(y) != height || networks::Width(y) != width)
      throw Error("bad-file", "attention with a stride of 2 needs maps of even sizes, not {} x {}",
                  height, width)
          .Help("choose another size of pictures with option 'shape'");
    return Unit(name + ".proj", Activate(b_, config_.activation, y));
  }
  Value* Down(const std::string& name, Value* x) {
    Value* y = Unit(name + ".conv", x, {.stride = 2});
    const std::string own = name + ".attn";
    if (!layers_.Has(own + ".k.conv")) return y;
    Value* q =
        layers_.Add(layers_.Conv(own + ".q.local", x, {.stride = 2}), layers_.MeanPool(x, 1, 2, 0));
    Value* attended = Mixed(own, x, Unit(own + ".q.proj", q), 2, false);
    return layers_.Add(Unit(own + ".proj", Activate(b_, config_.activation, attended)), y);
  }

  const EfficientFormerConfig& config_;
  SizedLayers& layers_;
  Builder& b_;
};

}  // namespace

Program BuildEfficientFormer(const EfficientFormerConfig& config, const NetworkWeights& weights,
                             Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  Value* x = EfficientFormer(layers, config).Features(net.pixels());
  net.b().SetName("head");
  if (config.second) {
    x = layers.Norm("norm", x);
    layers.ClassifyTwice(x, net.Pooled(x, false), config.labels);
  } else {
    constexpr double kEpsilon = 1e-5;
    if (x->type.shape.size() == 4) x = net.Tokens(x);
    x = net.layers().LayerNorm("norm", x, kEpsilon);
    layers.ClassifyTwice(x, Reduced(net.b(), "reduce_mean", x, {1}, false), config.labels);
  }
  return net.Finish();
}

}  // namespace mlc::networks
