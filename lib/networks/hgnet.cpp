#include "lib/networks/hgnet.h"

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {

class HgNet {
 public:
  HgNet(PictureNetwork& net, const HgNetConfig& config, const std::string& prefix)
      : net_(net), b_(net.b()), config_(config), prefix_(prefix) {}

  std::vector<Value*> Stages() {
    std::vector<Value*> maps;
    Value* x = Stem(net_.pixels());
    for (size_t i = 0; i < config_.stages.size(); ++i) {
      const HgNetStage& stage = config_.stages[i];
      const std::string name = fmt::format("{}stage.{}.", prefix_, i);
      if (stage.downsample)
        x = Conv(name + "downsample", x, stage.in, {.kernel = 3, .stride = 2, .groups = stage.in},
                 Activation::kNone);
      for (int64_t block = 0; block < stage.blocks; ++block) {
        Value* y = Block(fmt::format("{}block.{}.", name, block), x, stage);
        x = block == 0 ? y : Binary(b_, "add", y, x);
      }
      maps.push_back(x);
    }
    return maps;
  }

 private:
  Value* Conv(const std::string& name, Value* x, int64_t out, PictureWindow window,
              Activation activation) {
    x = net_.ConvNorm(name, x, out, window, activation);
    if (!config_.affine || activation == Activation::kNone) return x;
    x = Binary(b_, "mul", x, net_.layers().Needed(name + ".affine.scale", {1}));
    return Binary(b_, "add", x, net_.layers().Needed(name + ".affine.bias", {1}));
  }

  // Adds a row and a column at the bottom and at the right.
  Value* Padded(Value* x) {
    return b_.Make("pad", {{"x", x},
                           {"pad", Ints({0, 0, 0, 0, 0, 1, 0, 1})},
                           {"mode", "constant"},
                           {"constant_val", 0.0}});
  }

  Value* Stem(Value* x) {
    const Activation activation = config_.activation;
    const int64_t width = config_.stem;
    constexpr auto kNone = PictureWindow::Padding::kNone;
    x = Padded(Conv(prefix_ + "stem.1", x, width, {.kernel = 3, .stride = 2}, activation));
    Value* y = Conv(prefix_ + "stem.2a", x, width / 2, {.kernel = 2, .padding = kNone}, activation);
    y = Conv(prefix_ + "stem.2b", Padded(y), width, {.kernel = 2, .padding = kNone}, activation);
    x = b_.Make("max_pool", {{"x", x},
                             {"kernel_sizes", Ints({2, 2})},
                             {"strides", Ints({1, 1})},
                             {"pad_type", "valid"}});
    x = Conv(prefix_ + "stem.3", Concat(b_, {x, y}, 1), width, {.kernel = 3, .stride = 2},
             activation);
    return Conv(prefix_ + "stem.4", x, config_.stem_out, {}, activation);
  }

  Value* Block(const std::string& name, Value* x, const HgNetStage& stage) {
    std::vector<Value*> all = {x};
    for (int64_t i = 0; i < stage.layers; ++i) {
      const std::string layer = fmt::format("{}layer.{}", name, i);
      PictureWindow window = {.kernel = stage.kernel};
      if (stage.light) {
        x = Conv(layer + ".0", x, stage.inner, {}, Activation::kNone);
        window.groups = stage.inner;
      }
      x = Conv(stage.light ? layer + ".1" : layer, x, stage.inner, window, Activation::kRelu);
      all.push_back(x);
    }
    x = Conv(name + "join.0", Concat(b_, all, 1), stage.out / 2, {}, Activation::kRelu);
    return Conv(name + "join.1", x, stage.out, {}, Activation::kRelu);
  }

  PictureNetwork& net_;
  Builder& b_;
  const HgNetConfig& config_;
  const std::string prefix_;
};

}  // namespace

void CheckHgNet(const HgNetConfig& config) {
  CheckPositive(
      {{"width of the stem", config.stem / 2}, {"width behind the stem", config.stem_out}});
  if (config.stages.empty() || static_cast<int64_t>(config.stages.size()) > kMaxLayers)
    throw Error("bad-file", "the network has {} stages", config.stages.size())
        .Expected("1 to {}", kMaxLayers);
  for (const HgNetStage& stage : config.stages) {
    CheckPositive({{"width before a stage", stage.in},
                   {"width of a stage's layers", stage.inner},
                   {"width of a stage", stage.out / 2},
                   {"number of blocks", stage.blocks},
                   {"number of layers", stage.layers},
                   {"kernel of a stage", stage.kernel}});
    if (stage.kernel % 2 == 0)
      throw Error("bad-file", "a stage has kernels of {0} x {0}", stage.kernel)
          .Expected("odd numbers");
  }
}

std::vector<Value*> HgNetStages(PictureNetwork& net, const HgNetConfig& config,
                                const std::string& prefix) {
  return HgNet(net, config, prefix).Stages();
}

Program BuildHgNet(const HgNetConfig& config, const NetworkWeights& weights,
                   Diagnostics& diagnostics) {
  CheckHgNet(config);
  PictureNetwork net(weights, config.picture, diagnostics);
  Value* x = HgNetStages(net, config).back();
  net.b().SetName("head");
  if (config.labels > 0) {
    net.Output("logits", net.layers().Linear("classifier", net.Pooled(x, false), config.labels));
  } else {
    net.Output("last_hidden_state", x);
    net.Output("pooler_output", net.Pooled(x, true));
  }
  return net.Finish();
}

}  // namespace mlc::networks
