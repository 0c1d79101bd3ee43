// Networks that aggregate maps of several layers or sizes: DLA, HRNet and VoVNet.

#include "lib/ir/arithmetic.h"
#include "lib/networks/sized_layers.h"
#include "lib/networks/sized_networks.h"

namespace mlc::networks {

namespace {

Value* Pair(SizedLayers& layers, const std::string& name, Value* x, const Stride& window,
            Activation activation) {
  return layers.ConvNorm(name + ".0", name + ".1", x, window, activation);
}

class Dla {
 public:
  Dla(SizedLayers& layers, bool residual_roots)
      : layers_(layers), residual_roots_(residual_roots) {}

  Value* Map(Value* x) {
    x = Pair(layers_, "base_layer", x, {}, Activation::kRelu);
    x = Level("level0", x, 1);
    x = Level("level1", x, 2);
    for (int i = 2; i <= 5; ++i) {
      std::vector<Value*> children;
      x = Tree(fmt::format("level{}", i), x, 2, children, i > 2);
    }
    return x;
  }

 private:
  Value* Level(const std::string& name, Value* x, int64_t stride) {
    for (int64_t i = 0; i == 0 || layers_.Has(fmt::format("{}.{}", name, i)); i += 3)
      x = layers_.ConvNorm(fmt::format("{}.{}", name, i), fmt::format("{}.{}", name, i + 1), x,
                           {.stride = i == 0 ? stride : 1}, Activation::kRelu);
    return x;
  }

  // Returns whether the halves of a tree are trees, too; the innermost ones have roots.
  bool HasTrees(std::string name) const {
    constexpr int kMaxLevels = 8;
    for (int i = 0; i < kMaxLevels; ++i)
      if (name += ".tree1"; layers_.Has(name + ".root.conv")) return true;
    return false;
  }

  // The root of a tree joins the outputs of both halves and the children.
  Value* Tree(const std::string& name, Value* x, int64_t stride, std::vector<Value*>& children,
              bool keeps_input) {
    Value* bottom = stride > 1 ? layers_.MaxPool(x, stride, stride, 0) : x;
    if (keeps_input) children.push_back(bottom);
    if (HasTrees(name)) {
      std::vector<Value*> own;
      x = Tree(name + ".tree1", x, stride, own, false);
      children.push_back(x);
      return Tree(name + ".tree2", x, 1, children, false);
    }
    Value* shortcut = layers_.Has(name + ".project.0")
                          ? Pair(layers_, name + ".project", bottom, {}, Activation::kNone)
                          : bottom;
    Value* first = Block(name + ".tree1", x, stride, shortcut);
    Value* second = Block(name + ".tree2", first, 1, first);
    std::vector<Value*> all = {second, first};
    all.insert(all.end(), children.begin(), children.end());
    Value* y = layers_.Unit(name + ".root", Concat(layers_.b(), all, 1), {}, Activation::kNone);
    return Activate(layers_.b(), Activation::kRelu, residual_roots_ ? layers_.Add(y, second) : y);
  }

  Value* Block(const std::string& name, Value* x, int64_t stride, Value* shortcut) {
    if (!layers_.Has(name + ".convs.0")) return layers_.Residual(name, x, stride, shortcut);
    // Groups of channels; each but the first gets the output of the one before (Res2Net).
    Value* y = layers_.ConvNorm(name + ".conv1", name + ".bn1", x, {}, Activation::kRelu);
    const int64_t count = layers_.Count(name + ".convs"), width = Channels(y) / (count + 1);
    std::vector<Value*> parts;
    for (int64_t i = 0; i < count; ++i) {
      Value* part = layers_.Channels(y, i * width, (i + 1) * width);
      if (i > 0 && stride == 1) part = layers_.Add(parts.back(), part);
      parts.push_back(layers_.ConvNorm(fmt::format("{}.convs.{}", name, i),
                                       fmt::format("{}.bns.{}", name, i), part, {.stride = stride},
                                       Activation::kRelu));
    }
    Value* rest = layers_.Channels(y, count * width, (count + 1) * width);
    parts.push_back(stride > 1 ? layers_.MeanPool(rest, 3, stride, 1) : rest);
    y = layers_.ConvNorm(name + ".conv3", name + ".bn3", Concat(layers_.b(), parts, 1), {},
                         Activation::kNone);
    return Activate(layers_.b(), Activation::kRelu, layers_.Add(y, shortcut));
  }

  SizedLayers& layers_;
  bool residual_roots_;
};

class HrNet {
 public:
  explicit HrNet(SizedLayers& layers) : layers_(layers) {}

  Value* Map(Value* x) {
    for (const char* i : {"1", "2"})
      x = layers_.ConvNorm(std::string("conv") + i, std::string("bn") + i, x, {.stride = 2},
                           Activation::kRelu);
    std::vector<Value*> maps = {Blocks("layer1", x)};
    for (int stage = 2; stage <= 4; ++stage) {
      maps = Transition(fmt::format("transition{}", stage - 1), maps, static_cast<size_t>(stage));
      const std::string name = fmt::format("stage{}", stage);
      for (int64_t i = 0; i == 0 || HasBlock(fmt::format("{}.{}.branches.0.0", name, i)); ++i)
        maps = Module(fmt::format("{}.{}.", name, i), std::move(maps));
    }
    Value* y = nullptr;
    for (size_t i = 0; i < maps.size(); ++i) {
      Value* map = Blocks(fmt::format("incre_modules.{}", i), maps[i]);
      if (y)
        map = layers_.Add(map, Pair(layers_, fmt::format("downsamp_modules.{}", i - 1), y,
                                    {.stride = 2}, Activation::kRelu));
      y = map;
    }
    return Pair(layers_, "final_layer", y, {}, Activation::kRelu);
  }

 private:
  bool HasBlock(const std::string& name) const { return layers_.Has(name + ".conv1"); }
  Value* Blocks(const std::string& name, Value* x) {
    for (int64_t i = 0; i == 0 || HasBlock(fmt::format("{}.{}", name, i)); ++i)
      x = layers_.Residual(fmt::format("{}.{}", name, i), x, 1);
    return x;
  }
  // New maps are made of the smallest one; the first transition widens its only map, too.
  std::vector<Value*> Transition(const std::string& name, const std::vector<Value*>& maps,
                                 size_t count) {
    std::vector<Value*> all;
    for (size_t i = 0; i < count; ++i) {
      const std::string own = fmt::format("{}.{}", name, i);
      Value* x = i < maps.size() ? maps[i] : maps.back();
      if (layers_.Has(own + ".0")) {
        x = Pair(layers_, own, maps.back(), {}, Activation::kRelu);
      } else if (i >= maps.size()) {
        for (int64_t j = 0; j == 0 || layers_.Has(fmt::format("{}.{}.0", own, j)); ++j)
          x = Pair(layers_, fmt::format("{}.{}", own, j), x, {.stride = 2}, Activation::kRelu);
      }
      all.push_back(x);
    }
    return all;
  }
  // Each map is the sum of all, in its own size.
  std::vector<Value*> Module(const std::string& name, std::vector<Value*> maps) {
    for (size_t i = 0; i < maps.size(); ++i)
      maps[i] = Blocks(fmt::format("{}branches.{}", name, i), maps[i]);
    std::vector<Value*> fused;
    for (size_t i = 0; i < maps.size(); ++i) {
      Value* sum = nullptr;
      for (size_t j = 0; j < maps.size(); ++j) {
        const std::string own = fmt::format("{}fuse_layers.{}.{}", name, i, j);
        Value* x = maps[j];
        if (j > i) {
          x = Pair(layers_, own, x, {}, Activation::kNone);
          x = layers_.Nearest(x, Height(maps[i]), Width(maps[i]));
        }
        for (size_t k = 0; j < i && k < i - j; ++k)
          x = Pair(layers_, fmt::format("{}.{}", own, k), x, {.stride = 2},
                   k + 1 == i - j ? Activation::kNone : Activation::kRelu);
        sum = sum ? layers_.Add(sum, x) : x;
      }
      fused.push_back(Activate(layers_.b(), Activation::kRelu, sum));
    }
    return fused;
  }

  SizedLayers& layers_;
};

class VovNet {
 public:
  VovNet(SizedLayers& layers, bool residual) : layers_(layers), residual_(residual) {}

  Value* Map(Value* x) {
    x = Layer("stem.0", x, 2);
    x = Layer("stem.1", x, 1);
    x = Layer("stem.2", x, 2);
    for (int64_t stage = 0; stage == 0 || HasBlock(stage, 0); ++stage) {
      if (stage > 0) x = layers_.MaxPoolBeyond(x, 3, 2);
      for (int64_t i = 0; i == 0 || HasBlock(stage, i); ++i)
        x = Block(fmt::format("stages.{}.blocks.{}.", stage, i), x, residual_ && i > 0);
    }
    return x;
  }

 private:
  bool HasBlock(int64_t stage, int64_t i) const {
    return layers_.Has(fmt::format("stages.{}.blocks.{}.conv_concat.conv", stage, i));
  }
  // A convolution, or one of each channel and one of 1 x 1.
  Value* Layer(const std::string& name, Value* x, int64_t stride) {
    if (!layers_.Has(name + ".conv_dw"))
      return layers_.Unit(name, x, {.stride = stride}, Activation::kRelu);
    return layers_.ConvNorm(name + ".conv_pw", name + ".bn",
                            layers_.Conv(name + ".conv_dw", x, {.stride = stride}), {},
                            Activation::kRelu);
  }
  Value* Block(const std::string& name, Value* x, bool residual) {
    std::vector<Value*> all = {x};
    Value* y = x;
    if (layers_.Has(name + "conv_reduction.conv"))
      y = layers_.Unit(name + "conv_reduction", y, {}, Activation::kRelu);
    const std::string mid = name + "conv_mid";
    const char* const part = layers_.Has(mid + ".0.conv") ? ".conv.weight" : ".conv_dw.weight";
    for (int64_t i = 0; i == 0 || i < layers_.Count(mid, part); ++i) {
      y = Layer(fmt::format("{}.{}", mid, i), y, 1);
      all.push_back(y);
    }
    y = layers_.Unit(name + "conv_concat", Concat(layers_.b(), all, 1), {}, Activation::kRelu);
    if (layers_.Has(name + "attn.fc")) {
      Value* mean = layers_.Conv(name + "attn.fc", layers_.net().Pooled(y, true));
      y = layers_.Mul(y, Activate(layers_.b(), Activation::kHardSigmoid, mean));
    }
    return residual ? layers_.Add(y, x) : y;
  }

  SizedLayers& layers_;
  bool residual_;
};

}  // namespace

Program BuildDla(const DlaConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  layers.ClassifyMean("fc", Dla(layers, config.residual_roots).Map(net.pixels()), config.labels);
  return net.Finish();
}

Program BuildHrNet(const SizedConfig& config, const NetworkWeights& weights,
                   Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  layers.ClassifyMean("classifier", HrNet(layers).Map(net.pixels()), config.labels);
  return net.Finish();
}

Program BuildVovNet(const VovNetConfig& config, const NetworkWeights& weights,
                    Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  layers.ClassifyMean("head.fc", VovNet(layers, config.residual).Map(net.pixels()), config.labels);
  return net.Finish();
}

}  // namespace mlc::networks
