#include "lib/networks/repvit.h"

#include "lib/ir/arithmetic.h"
#include "lib/networks/branches.h"
#include "lib/networks/transformer_layer.h"

namespace mlc::networks {

namespace {

constexpr double kNormEpsilon = 1e-5;

class RepVit {
 public:
  RepVit(Builder& b, Layers& layers, const RepVitConfig& config)
      : b_(b), layers_(layers), config_(config) {}

  std::vector<Value*> Maps(Value* pixels) {
    const int64_t first = config_.widths[0];
    Value* x = ConvNorm("stem.0", pixels, first / 2, {.kernel = 3, .stride = 2});
    x = ConvNorm("stem.1", Activate(b_, config_.activation, x), first, {.kernel = 3, .stride = 2});
    std::vector<Value*> maps;
    for (size_t i = 0; i < config_.widths.size(); ++i) {
      const std::string stage = fmt::format("stage.{}.", i);
      if (i > 0) x = Down(stage + "down.", x, config_.widths[i]);
      for (int64_t block = 0; block < config_.depths[i]; ++block)
        x = Block(fmt::format("{}block.{}.", stage, block), x, block % 2 == 0);
      maps.push_back(x);
    }
    return maps;
  }

 private:
  Value* ConvNorm(const std::string& name, Value* x, int64_t out, const PictureWindow& window) {
    b_.SetName(name);
    x = layers_.Convolution(name + ".conv", x, out, window);
    return layers_.BatchNorm(name + ".norm", x, kNormEpsilon);
  }

  Value* FeedForward(const std::string& own, Value* x) {
    const int64_t width = Channels(x);
    Value* y = ConvNorm(own + "up", x, config_.feed_forward * width, {});
    return Binary(b_, "add", x,
                  ConvNorm(own + "down", Activate(b_, config_.activation, y), width, {}));
  }

  Value* Block(const std::string& own, Value* x, bool squeezed) {
    const int64_t width = Channels(x);
    const std::string mixer = own + "mixer";
    Branches sum(layers_, width, 1, config_.kernel);
    sum.AddConvolution(mixer + ".large", config_.kernel, kNormEpsilon);
    if (config_.outer_norm) {
      sum.AddBiasedConvolution(mixer + ".small.conv", 1);
    } else {
      sum.AddConvolution(mixer + ".small", 1, kNormEpsilon);
    }
    sum.AddIdentity();
    if (config_.outer_norm) sum.Normalise(mixer + ".norm", kNormEpsilon);
    b_.SetName(mixer);
    x = sum.Apply(b_, x, {.kernel = config_.kernel, .groups = width});
    if (squeezed) x = SqueezedAndExcited(b_, layers_, own + "squeeze", x, Activation::kRelu);
    return FeedForward(own, x);
  }

  Value* Down(const std::string& own, Value* x, int64_t width) {
    const int64_t before = Channels(x);
    x = Block(own + "block.", x, false);
    x = ConvNorm(own + "spatial", x, before,
                 {.kernel = config_.kernel, .stride = 2, .groups = before});
    return FeedForward(own + "wide.", ConvNorm(own + "channels", x, width, {}));
  }

  Builder& b_;
  Layers& layers_;
  const RepVitConfig& config_;
};

// Returns the scores of pooled channels x [1, C] by a norm and a linear layer.
Value* Scores(PictureNetwork& net, const std::string& head, Value* x, int64_t labels) {
  Value* map = Expanded(net.b(), x, {2, 3});
  map = net.layers().BatchNorm(head + ".norm", map, kNormEpsilon);
  return Biased(net.layers(), head + ".linear", Squeezed(net.b(), map, {2, 3}), labels);
}

}  // namespace

std::vector<Value*> RepVitMaps(Builder& b, Layers& layers, const RepVitConfig& config,
                               Value* pixels) {
  return RepVit(b, layers, config).Maps(pixels);
}

Program BuildRepVit(const RepVitConfig& config, const NetworkWeights& weights,
                    Diagnostics& diagnostics) {
  CheckRepVit(config);
  PictureNetwork net(weights, config.picture, diagnostics);
  Value* x = RepVitMaps(net.b(), net.layers(), config, net.pixels()).back();
  net.b().SetName("head");
  Value* mean = net.Pooled(x, false);
  if (config.labels > 0) {
    Value* y = Scores(net, "head.0", mean, config.labels);
    // That of distillation counts as much.
    if (net.layers().Has("head.1.linear.weight")) {
      y = Binary(net.b(), "add", y, Scores(net, "head.1", mean, config.labels));
      y = Binary(net.b(), "mul", y, 0.5);
    }
    net.Output("logits", y);
  } else {
    net.Output("last_hidden_state", x);
    net.Output("pooler_output", mean);
  }
  return net.Finish();
}

void CheckRepVit(const RepVitConfig& config) {
  CheckPositive("widths", config.widths);
  CheckPositive("depths", config.depths);
  CheckPositive(
      {{"kernel of mixers", config.kernel}, {"ratio of feed-forward layers", config.feed_forward}});
  constexpr int64_t kMaxKernel = 63, kMaxRatio = 64;
  if (config.widths.empty() || config.widths.size() != config.depths.size() ||
      static_cast<int64_t>(config.widths.size()) > kMaxLayers)
    throw Error("bad-file", "{} stages have widths, and {} have depths", config.widths.size(),
                config.depths.size());
  for (int64_t depth : config.depths)
    if (depth > kMaxLayers)
      throw Error("resource-limit", "a stage has {} blocks", depth)
          .Expected("at most {}", kMaxLayers);
  if (config.widths[0] % 2 != 0)
    throw Error("bad-file", "the first stage has {} channels", config.widths[0])
        .Expected("an even number");
  if (config.kernel % 2 == 0 || config.kernel > kMaxKernel || config.feed_forward > kMaxRatio)
    throw Error("bad-file",
                "kernels have {0} x {0} elements, and the ratio of feed-forward layers is {1}",
                config.kernel, config.feed_forward)
        .Expected("an odd number up to {}, and a ratio up to {}", kMaxKernel, kMaxRatio);
}

}  // namespace mlc::networks
