// Inception and Xception: blocks of branches, and convolutions of each channel.

#include "lib/ir/arithmetic.h"
#include "lib/networks/sized_layers.h"
#include "lib/networks/sized_networks.h"

namespace mlc::networks {

namespace {

constexpr Stride kHalving = {.stride = 2, .padding = PictureWindow::Padding::kNone};
constexpr Stride kValid = {.padding = PictureWindow::Padding::kNone};

class Inception {
 public:
  explicit Inception(SizedLayers& layers) : layers_(layers) {}

  Value* Unit(const std::string& name, Value* x, const Stride& window = {}) {
    constexpr double kEpsilon = 1e-3;
    return layers_.Unit(name, x, window, Activation::kRelu, kEpsilon);
  }
  // A chain of units; the last one has this window.
  Value* Chain(const std::string& name, std::initializer_list<const char*> parts, Value* x,
               const Stride& last = {}) {
    size_t left = parts.size();
    for (const char* part : parts) x = Unit(name + part, x, --left == 0 ? last : Stride());
    return x;
  }
  Value* Joined(std::vector<Value*> branches) {
    return Concat(layers_.b(), std::move(branches), 1);
  }

 protected:
  SizedLayers& layers_;
};

class InceptionV3 : public Inception {
 public:
  using Inception::Inception;

  Value* Map(Value* x) {
    x = Unit("Conv2d_1a_3x3", x, kHalving);
    x = Unit("Conv2d_2b_3x3", Unit("Conv2d_2a_3x3", x, kValid));
    x = layers_.MaxPool(x, 3, 2, 0);
    x = Unit("Conv2d_4a_3x3", Unit("Conv2d_3b_1x1", x), kValid);
    x = layers_.MaxPool(x, 3, 2, 0);
    for (const char* name : {"Mixed_5b", "Mixed_5c", "Mixed_5d"}) x = Fives(name, x);
    x = Joined({Unit("Mixed_6a.branch3x3", x, kHalving), Double("Mixed_6a", x, kHalving),
                layers_.MaxPool(x, 3, 2, 0)});
    for (const char* name : {"Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e"}) x = Sevens(name, x);
    x = Joined({Chain("Mixed_7a.branch", {"3x3_1", "3x3_2"}, x, kHalving),
                Chain("Mixed_7a.branch7x7x3_", {"1", "2", "3", "4"}, x, kHalving),
                layers_.MaxPool(x, 3, 2, 0)});
    for (const char* name : {"Mixed_7b", "Mixed_7c"}) x = Forks(name, x);
    return x;
  }

 private:
  Value* Double(const std::string& name, Value* x, const Stride& last = {}) {
    return Chain(name + ".branch3x3dbl_", {"1", "2", "3"}, x, last);
  }
  Value* Pooled(const std::string& name, Value* x) {
    return Unit(name + ".branch_pool", layers_.MeanPool(x, 3, 1, 1));
  }
  Value* Fives(const std::string& name, Value* x) {
    return Joined({Unit(name + ".branch1x1", x), Chain(name + ".branch5x5_", {"1", "2"}, x),
                   Double(name, x), Pooled(name, x)});
  }
  Value* Sevens(const std::string& name, Value* x) {
    return Joined({Unit(name + ".branch1x1", x), Chain(name + ".branch7x7_", {"1", "2", "3"}, x),
                   Chain(name + ".branch7x7dbl_", {"1", "2", "3", "4", "5"}, x), Pooled(name, x)});
  }
  Value* Forks(const std::string& name, Value* x) {
    Value* plain = Unit(name + ".branch3x3_1", x);
    Value* twice = Chain(name + ".branch3x3dbl_", {"1", "2"}, x);
    return Joined({Unit(name + ".branch1x1", x), Unit(name + ".branch3x3_2a", plain),
                   Unit(name + ".branch3x3_2b", plain), Unit(name + ".branch3x3dbl_3a", twice),
                   Unit(name + ".branch3x3dbl_3b", twice), Pooled(name, x)});
  }
};

class InceptionV4 : public Inception {
 public:
  using Inception::Inception;

  Value* Map(Value* x) {
    x = Unit("features.0", x, kHalving);
    x = Unit("features.2", Unit("features.1", x, kValid));
    x = Joined({layers_.MaxPool(x, 3, 2, 0), Unit("features.3.conv", x, kHalving)});
    x = Joined({Chain("features.4.branch0.", {"0", "1"}, x, kValid),
                Chain("features.4.branch1.", {"0", "1", "2", "3"}, x, kValid)});
    x = Joined({Unit("features.5.conv", x, kHalving), layers_.MaxPool(x, 3, 2, 0)});
    for (const char* name : {"6", "7", "8", "9"})
      x = Mixed(std::string("features.") + name, {"0", "1"}, {"0", "1", "2"}, x);
    x = Joined({Unit("features.10.branch0", x, kHalving),
                Chain("features.10.branch1.", {"0", "1", "2"}, x, kHalving),
                layers_.MaxPool(x, 3, 2, 0)});
    for (const char* name : {"11", "12", "13", "14", "15", "16", "17"})
      x = Mixed(std::string("features.") + name, {"0", "1", "2"}, {"0", "1", "2", "3", "4"}, x);
    x = Joined({Chain("features.18.branch0.", {"0", "1"}, x, kHalving),
                Chain("features.18.branch1.", {"0", "1", "2", "3"}, x, kHalving),
                layers_.MaxPool(x, 3, 2, 0)});
    for (const char* name : {"19", "20", "21"}) x = Forks(std::string("features.") + name, x);
    return x;
  }

 private:
  Value* Pooled(const std::string& name, Value* x) {
    return Unit(name + ".branch3.1", layers_.MeanPool(x, 3, 1, 1, false));
  }
  Value* Mixed(const std::string& name, std::initializer_list<const char*> first,
               std::initializer_list<const char*> second, Value* x) {
    return Joined({Unit(name + ".branch0", x), Chain(name + ".branch1.", first, x),
                   Chain(name + ".branch2.", second, x), Pooled(name, x)});
  }
  Value* Forks(const std::string& name, Value* x) {
    Value* once = Unit(name + ".branch1_0", x);
    Value* twice = Chain(name + ".branch2_", {"0", "1", "2"}, x);
    return Joined({Unit(name + ".branch0", x), Unit(name + ".branch1_1a", once),
                   Unit(name + ".branch1_1b", once), Unit(name + ".branch2_3a", twice),
                   Unit(name + ".branch2_3b", twice), Pooled(name, x)});
  }
};

class Xception {
 public:
  explicit Xception(SizedLayers& layers) : layers_(layers) {}

  Value* Map(Value* x) {
    x = layers_.ConvNorm("conv1", "bn1", x, kHalving, Activation::kRelu);
    x = layers_.ConvNorm("conv2", "bn2", x, kValid, Activation::kRelu);
    for (int64_t i = 1; i == 1 || layers_.Count(fmt::format("block{}.rep", i), kDepthwise) > 0 ||
                        layers_.Has(fmt::format("block{}.rep.1.conv1", i));
         ++i)
      x = Block(fmt::format("block{}.", i), x);
    x = Separable("conv3", "bn3", x, Activation::kRelu);
    return Separable("conv4", "bn4", x, Activation::kRelu);
  }

 private:
  static constexpr const char* kDepthwise = ".conv1.weight";

  Value* Separable(const std::string& name, const std::string& norm, Value* x,
                   Activation activation) {
    x = layers_.Conv(name + ".conv1", x);
    return layers_.ConvNorm(name + ".pointwise", norm, x, {}, activation);
  }
  Value* Block(const std::string& name, Value* x) {
    Value *y = x, *shortcut = x;
    // The first block does not begin with an activation, which is counted as a layer.
    int64_t layer = layers_.Has(name + "rep.0.conv1") ? 0 : 1;
    for (const int64_t first = layer;
         layer == first || layers_.Has(fmt::format("{}rep.{}.conv1", name, layer)); layer += 3) {
      if (layer > 0) y = Activate(layers_.b(), Activation::kRelu, y);
      y = Separable(fmt::format("{}rep.{}", name, layer), fmt::format("{}rep.{}", name, layer + 1),
                    y, Activation::kNone);
    }
    if (layers_.Has(name + "skip")) {
      y = layers_.MaxPool(y, 3, 2, 1);
      shortcut =
          layers_.ConvNorm(name + "skip", name + "skipbn", x, {.stride = 2}, Activation::kNone);
    }
    return layers_.Add(y, shortcut);
  }

  SizedLayers& layers_;
};

template <class Network>
Program Built(const char* classifier, const SizedConfig& config, const NetworkWeights& weights,
              Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  layers.ClassifyMean(classifier, Network(layers).Map(net.pixels()), config.labels);
  return net.Finish();
}

}  // namespace

Program BuildInceptionV3(const SizedConfig& config, const NetworkWeights& weights,
                         Diagnostics& diagnostics) {
  return Built<InceptionV3>("fc", config, weights, diagnostics);
}
Program BuildInceptionV4(const SizedConfig& config, const NetworkWeights& weights,
                         Diagnostics& diagnostics) {
  return Built<InceptionV4>("last_linear", config, weights, diagnostics);
}
Program BuildXception(const SizedConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics) {
  return Built<Xception>("fc", config, weights, diagnostics);
}

}  // namespace mlc::networks
