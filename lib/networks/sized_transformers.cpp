// EfficientViT, TinyViT and HGNetV2.

#include <algorithm>

#include "lib/ir/arithmetic.h"
#include "lib/networks/sized_layers.h"
#include "lib/networks/sized_networks.h"
#include "lib/networks/windows.h"

namespace mlc::networks {

namespace {

class EfficientVit {
 public:
  EfficientVit(SizedLayers& layers, const EfficientVitConfig& config)
      : config_(config), layers_(layers), b_(layers.b()) {}

  Value* Map(Value* x) {
    x = Unit("stem.in_conv", x, 2, config_.activation);
    for (int64_t i = 0; HasBlock(fmt::format("stem.res{}", i)); ++i)
      x = layers_.Add(x, Local(fmt::format("stem.res{}.main.", i), x, 1));
    for (int64_t stage = 0; stage == 0 || HasBlock(fmt::format("stages.{}.blocks.0", stage));
         ++stage)
      for (int64_t i = 0; i == 0 || HasBlock(fmt::format("stages.{}.blocks.{}", stage, i)); ++i) {
        const std::string name = fmt::format("stages.{}.blocks.{}.", stage, i);
        if (layers_.Has(name + "context_module.main.qkv.conv")) {
          x = layers_.Add(Attention(name + "context_module.main.", x), x);
          x = layers_.Add(Local(name + "local_module.main.", x, 1), x);
        } else {
          Value* y = Local(name + "main.", x, i == 0 ? 2 : 1);
          x = i == 0 ? y : layers_.Add(y, x);
        }
      }
    return x;
  }

  void Classify(Value* x) {
    b_.SetName("head");
    Value* wide = Unit("head.in_conv", x, 1, config_.activation);
    Value* pooled = layers_.Linear("head.classifier.0", layers_.net().Pooled(wide, false));
    pooled = layers_.layers().LayerNorm("head.classifier.1", pooled, config_.epsilon);
    layers_.Classify("head.classifier.4", x, Activate(b_, config_.activation, pooled),
                     config_.labels);
  }

 private:
  bool HasBlock(const std::string& name) const {
    if (layers_.Has(name + ".context_module.main.qkv.conv")) return true;
    for (const char* first : {"depth_conv", "spatial_conv", "conv1"})
      if (layers_.Has(fmt::format("{}.main.{}.conv", name, first))) return true;
    return false;
  }
  Value* Unit(const std::string& name, Value* x, int64_t stride, Activation activation) {
    x = layers_.Conv(name + ".conv", x, {.stride = stride});
    if (layers_.Has(name + ".norm"))
      x = layers_.Norm(name + ".norm", x, Activation::kNone, config_.epsilon);
    return Activate(b_, activation, x);
  }
  // A chain of convolutions; the one with a larger kernel has the stride.
  Value* Local(const std::string& name, Value* x, int64_t stride) {
    std::vector<std::string> units;
    for (const char* unit :
         {"inverted_conv", "spatial_conv", "depth_conv", "conv1", "conv2", "point_conv"})
      if (layers_.Has(name + unit + ".conv")) units.emplace_back(unit);
    for (const std::string& unit : units) {
      const bool strided = unit == "spatial_conv" || unit == "depth_conv" || unit == "conv1";
      x = Unit(name + unit, x, strided ? stride : 1,
               unit == units.back() ? Activation::kNone : config_.activation);
    }
    return x;
  }

  // Attention whose scores are products of relu(q) and relu(k): sums over keys are computed first.
  Value* Attention(const std::string& name, Value* x) {
    constexpr double kEpsilon = 1e-5;
    Value* qkv = layers_.Conv(name + "qkv.conv", x);
    std::vector<Value*> scales = {qkv};
    for (int64_t i = 0; layers_.Has(fmt::format("{}aggreg.{}.0", name, i)); ++i)
      scales.push_back(layers_.Conv(fmt::format("{}aggreg.{}.1", name, i),
                                    layers_.Conv(fmt::format("{}aggreg.{}.0", name, i), qkv)));
    Value* all = Concat(b_, scales, 1);
    const int64_t d = config_.head, groups = Channels(all) / (3 * d), height = Height(x),
                  width = networks::Width(x);
    const std::vector<Value*> parts =
        Parts(b_, WithShape(b_, all, {1, groups, 3 * d, height * width}), {d, d, d}, 2);
    Value *q = Activate(b_, Activation::kRelu, parts[0]),
          *k = Activate(b_, Activation::kRelu, parts[1]);
    Value* products = b_.Make("matmul", {{"x", parts[2]}, {"y", k}, {"transpose_y", true}});
    Value* sum = b_.Make("matmul", {{"x", products}, {"y", q}});
    Value* weight =
        b_.Make("matmul",
                {{"x", Reduced(b_, "reduce_sum", k, {-1}, true)}, {"y", q}, {"transpose_x", true}});
    Value* y = Binary(b_, "real_div", sum, Binary(b_, "add", weight, kEpsilon));
    return Unit(name + "proj", WithShape(b_, y, {1, groups * d, height, width}), 1,
                Activation::kNone);
  }

  const EfficientVitConfig& config_;
  SizedLayers& layers_;
  Builder& b_;
};

class TinyVit {
 public:
  TinyVit(SizedLayers& layers, const TinyVitConfig& config)
      : config_(config), layers_(layers), b_(layers.b()) {}

  Value* Map(Value* x) {
    x = layers_.Unit("patch_embed.conv1", x, {.stride = 2}, Activation::kGelu);
    x = layers_.Unit("patch_embed.conv2", x, {.stride = 2}, Activation::kNone);
    for (size_t stage = 0; stage < config_.heads.size(); ++stage) {
      const std::string name = fmt::format("stages.{}.", stage);
      if (stage > 0) x = Chain(name + "downsample.", x, 2);
      for (int64_t i = 0; i == 0 || layers_.Has(fmt::format("{}blocks.{}.{}", name, i,
                                                            stage == 0 ? "conv1.conv" : "mlp.fc1"));
           ++i) {
        const std::string block = fmt::format("{}blocks.{}.", name, i);
        x = stage == 0 ? Activate(b_, Activation::kGelu, layers_.Add(Chain(block, x, 1), x))
                       : Block(block, x, config_.heads[stage], config_.windows[stage]);
      }
    }
    return x;
  }

  void Classify(Value* x) {
    b_.SetName("head");
    Value* pooled =
        layers_.layers().LayerNorm("head.norm", layers_.net().Pooled(x, false), kEpsilon);
    layers_.Classify("head.fc", x, pooled, config_.labels);
  }

 private:
  static constexpr double kEpsilon = 1e-5;

  Value* Chain(const std::string& name, Value* x, int64_t stride) {
    x = layers_.Unit(name + "conv1", x, {}, Activation::kGelu);
    x = layers_.Unit(name + "conv2", x, {.stride = stride}, Activation::kGelu);
    return layers_.Unit(name + "conv3", x, {}, Activation::kNone);
  }

  Value* Block(const std::string& name, Value* x, int64_t heads, int64_t side) {
    const int64_t height = Height(x), width = networks::Width(x), channels = Channels(x);
    const GridSize padded = {(height + side - 1) / side * side, (width + side - 1) / side * side};
    Value* y = Windows(b_, Transposed(b_, x, {0, 2, 3, 1}), side);
    const int64_t count = padded.count() / (side * side);
    y = Attention(name + "attn.", WithShape(b_, y, {count, side * side, channels}), heads, side);
    y = FromWindows(b_, WithShape(b_, y, {count, side, side, channels}), padded);
    if (padded != GridSize{height, width})
      y = SliceOfSize(b_, y, {0, 0, 0, 0}, {1, height, width, channels});
    x = layers_.Add(x, Transposed(b_, y, {0, 3, 1, 2}));
    x = layers_.Unit(name + "local_conv", x, {}, Activation::kNone);
    y = layers_.layers().LayerNorm(name + "mlp.norm", layers_.net().Tokens(x), kEpsilon);
    y = Activate(b_, Activation::kGelu, layers_.Linear(name + "mlp.fc1", y));
    y = layers_.Linear(name + "mlp.fc2", y);
    return layers_.Add(x, layers_.net().Map(y, height, width));
  }
  Value* Attention(const std::string& name, Value* x, int64_t heads, int64_t side) {
    const int64_t windows = x->type.shape[0].constant(), tokens = side * side,
                  channels = x->type.shape[2].constant(), key = channels / heads;
    Value* all =
        layers_.Linear(name + "qkv", layers_.layers().LayerNorm(name + "norm", x, kEpsilon));
    const int64_t each = all->type.shape[2].constant() / heads;
    all = Transposed(b_, WithShape(b_, all, {windows, tokens, heads, each}), {0, 2, 1, 3});
    const std::vector<Value*> parts = Parts(b_, all, {key, key, each - 2 * key}, 3);
    Value* bias = layers_.DistanceBias(name + "attention_biases", heads, {side, side});
    return layers_.Linear(name + "proj", layers_.Attended(parts[0], parts[1], parts[2], bias));
  }

  const TinyVitConfig& config_;
  SizedLayers& layers_;
  Builder& b_;
};

class SizedHgNet {
 public:
  explicit SizedHgNet(SizedLayers& layers) : layers_(layers), b_(layers.b()) {}

  Value* Map(Value* x) {
    x = Unit("stem.stem1", x, {.stride = 2});
    Value* padded = Extended(x);
    Value* y = Unit("stem.stem2a", padded, kValid);
    y = Unit("stem.stem2b", Extended(y), kValid);
    x = Concat(b_, {layers_.MaxPool(padded, 2, 1, 0), y}, 1);
    x = Unit("stem.stem4", Unit("stem.stem3", x, {.stride = 2}));
    for (int64_t stage = 0; stage == 0 || HasBlock(stage, 0); ++stage) {
      const std::string down = fmt::format("stages.{}.downsample", stage);
      if (layers_.Has(down + ".conv")) x = layers_.Unit(down, x, {.stride = 2}, Activation::kNone);
      for (int64_t i = 0; i == 0 || HasBlock(stage, i); ++i) {
        Value* next = Block(fmt::format("stages.{}.blocks.{}.", stage, i), x);
        x = i == 0 ? next : layers_.Add(next, x);
      }
    }
    return x;
  }

  void Classify(Value* x, int64_t labels) {
    b_.SetName("head");
    Value* pooled = layers_.Conv("head.last_conv.0", layers_.net().Pooled(x, true));
    pooled = Affine("head.last_conv.2", Activate(b_, Activation::kRelu, pooled));
    layers_.Classify("head.fc", x, WithShape(b_, pooled, {1, Channels(pooled)}), labels);
  }

 private:
  static constexpr Stride kValid = {.padding = PictureWindow::Padding::kNone};

  bool HasBlock(int64_t stage, int64_t i) const {
    return layers_.Has(fmt::format("stages.{}.blocks.{}.aggregation.0.conv", stage, i));
  }
  // Adds a row and a column of zeros at the bottom and at the right.
  Value* Extended(Value* x) {
    return b_.Make("pad", {{"x", x},
                           {"pad", Ints({0, 0, 0, 0, 0, 1, 0, 1})},
                           {"mode", "constant"},
                           {"constant_val", 0.0}});
  }
  Value* Affine(const std::string& name, Value* x) {
    if (!layers_.layers().Has(name + ".scale")) return x;
    return layers_.Add(layers_.Mul(x, layers_.layers().Flat(name + ".scale", 1)),
                       layers_.layers().Flat(name + ".bias", 1));
  }
  Value* Unit(const std::string& name, Value* x, const Stride& window = {}) {
    return Affine(name + ".lab", layers_.Unit(name, x, window, Activation::kRelu));
  }
  Value* Block(const std::string& name, Value* x) {
    std::vector<Value*> all = {x};
    for (int64_t i = 0; i == 0 || layers_.Has(fmt::format("{}layers.{}.conv", name, i)) ||
                        layers_.Has(fmt::format("{}layers.{}.conv1.conv", name, i));
         ++i) {
      const std::string layer = fmt::format("{}layers.{}", name, i);
      x = layers_.Has(layer + ".conv1.conv")
              ? Unit(layer + ".conv2", layers_.Unit(layer + ".conv1", x, {}, Activation::kNone))
              : Unit(layer, x);
      all.push_back(x);
    }
    return Unit(name + "aggregation.1", Unit(name + "aggregation.0", Concat(b_, all, 1)));
  }

  SizedLayers& layers_;
  Builder& b_;
};

}  // namespace

Program BuildEfficientVit(const EfficientVitConfig& config, const NetworkWeights& weights,
                          Diagnostics& diagnostics) {
  CheckPositive({{"dimensions of a head", config.head}});
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  EfficientVit network(layers, config);
  network.Classify(network.Map(net.pixels()));
  return net.Finish();
}

Program BuildTinyVit(const TinyVitConfig& config, const NetworkWeights& weights,
                     Diagnostics& diagnostics) {
  CheckPositive("heads", config.heads);
  CheckPositive("windows", config.windows);
  if (config.heads.size() != config.windows.size())
    throw Error("bad-file", "{} stages have heads, but {} have windows", config.heads.size(),
                config.windows.size());
  constexpr int64_t kMaxWindow = 64;
  if (std::ranges::max(config.windows) > kMaxWindow)
    throw Error("resource-limit", "windows have up to {0} x {0} places",
                std::ranges::max(config.windows))
        .Expected("at most {0} x {0}", kMaxWindow);
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  TinyVit network(layers, config);
  network.Classify(network.Map(net.pixels()));
  return net.Finish();
}

Program BuildSizedHgNet(const SizedConfig& config, const NetworkWeights& weights,
                        Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  SizedHgNet network(layers);
  network.Classify(network.Map(net.pixels()), config.labels);
  return net.Finish();
}

}  // namespace mlc::networks
