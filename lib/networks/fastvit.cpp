#include "lib/networks/fastvit.h"

#include "lib/ir/arithmetic.h"
#include "lib/networks/branches.h"
#include "lib/networks/transformer_layer.h"

namespace mlc::networks {

namespace {

constexpr double kNormEpsilon = 1e-5;

class FastVit {
 public:
  FastVit(Builder& b, Layers& layers, const FastVitConfig& config)
      : config_(config), b_(b), layers_(layers) {}

  Value* Map(Value* pixels) {
    const int64_t width = config_.stages[0].width;
    Value* x = MobileOne("stem.0", pixels, width, {.kernel = 3, .stride = 2});
    x = MobileOne("stem.1", x, width, {.kernel = 3, .stride = 2, .groups = width});
    x = MobileOne("stem.2", x, width, {});
    for (size_t i = 0; i < config_.stages.size(); ++i)
      x = Stage(fmt::format("stage.{}.", i), x, config_.stages[i]);
    return MobileOne("final", x, config_.channels(), {.kernel = 3, .groups = Channels(x)});
  }

 private:
  Value* Sum(const std::string& name, Value* x, int64_t out, const PictureWindow& window) {
    return SumOfBranches(b_, layers_, name, x, out, window, kNormEpsilon);
  }

  Value* MobileOne(const std::string& name, Value* x, int64_t out, const PictureWindow& window) {
    x = Sum(name, x, out, window);
    if (layers_.Has(name + ".squeeze.reduce.weight"))
      x = SqueezedAndExcited(b_, layers_, name + ".squeeze", x, Activation::kRelu);
    return Activate(b_, config_.activation, x);
  }

  Value* Stage(const std::string& name, Value* x, const FastVitStage& stage) {
    if (stage.downsample || Channels(x) != stage.width) x = Down(name + "down", x, stage);
    if (stage.attention) x = WithPositions(name + "positions", x);
    for (int64_t i = 0; i < stage.depth; ++i) {
      const std::string block = fmt::format("{}block.{}.", name, i);
      b_.SetName(block.substr(0, block.size() - 1));
      x = stage.attention ? Attended(block, x) : Mixed(block + "mixer", x);
      Value* y = layers_.Convolution(block + "spread.conv", x, stage.width,
                                     {.kernel = 7, .groups = stage.width});
      y = layers_.BatchNorm(block + "spread.norm", y, kNormEpsilon);
      const auto inner =
          static_cast<int64_t>(static_cast<double>(stage.width) * stage.feed_forward);
      y = Activate(b_, config_.activation, layers_.Convolution(block + "up", y, inner, {}));
      y = layers_.Convolution(block + "down", y, stage.width, {});
      x = Binary(b_, "add", x, Scaled(block + "scale", y));
    }
    return x;
  }

  Value* Down(const std::string& name, Value* x, const FastVitStage& stage) {
    constexpr int64_t kSmall = 3;
    const PictureWindow window = {
        .kernel = config_.down_kernel, .stride = 2, .groups = Channels(x)};
    b_.SetName(name);
    if (layers_.Has(name + ".fused.weight")) {
      x = layers_.Convolution(name + ".fused", x, stage.width, window);
    } else {
      Branches sum(layers_, stage.width, 1, window.kernel);
      sum.AddConvolution(name + ".large", window.kernel, kNormEpsilon);
      sum.AddConvolution(name + ".small", kSmall, kNormEpsilon);
      x = sum.Apply(b_, x, window);
    }
    if (stage.squeezed)
      x = SqueezedAndExcited(b_, layers_, name + ".squeeze", x, Activation::kRelu);
    if (config_.down_activated) x = Activate(b_, config_.activation, x);
    return MobileOne(name + ".1", x, stage.width, {});
  }

  Value* WithPositions(const std::string& name, Value* x) {
    constexpr int64_t kReach = 7;
    const PictureWindow window = {.kernel = kReach, .groups = Channels(x)};
    b_.SetName(name);
    if (layers_.Has(name + ".fused.weight"))
      return layers_.Convolution(name + ".fused", x, Channels(x), window);
    return Binary(b_, "add", x, layers_.Convolution(name, x, Channels(x), window));
  }

  // x + scale (mixer(x) - norm(x)) as one convolution of each channel.
  Value* Mixed(const std::string& name, Value* x) {
    const int64_t width = Channels(x);
    const PictureWindow window = {.kernel = config_.kernel, .groups = width};
    if (layers_.Has(name + ".fused.weight"))
      return layers_.Convolution(name + ".fused", x, width, window);
    auto branches = [&](const char* part) {
      return BranchesOf(layers_, name + part, width, width, window, kNormEpsilon);
    };
    Branches sum = branches(".mixer");
    sum.Subtract(branches(".norm"));
    const Pin<float> scale =
        layers_.Needed(name + ".scale", {width, 1, 1})->constant().data<float>();
    sum.Scale({scale.begin(), scale.end()});
    sum.AddIdentity();
    return sum.Apply(b_, x, window);
  }

  Value* Attended(const std::string& block, Value* x) {
    const int64_t width = Channels(x), height = Height(x), across = networks::Width(x);
    Value* y = config_.channel_norms
                   ? layers_.ChannelNorm(block + "attention_norm", x, kNormEpsilon)
                   : layers_.BatchNorm(block + "attention_norm", x, kNormEpsilon);
    const TransformerLayer layer{.width = width,
                                 .heads = width / config_.head,
                                 .query_bias = false,
                                 .key_bias = false,
                                 .value_bias = false};
    y = Transposed(b_, WithShape(b_, y, {1, width, height * across}), {0, 2, 1});
    y = SelfAttention(b_, layers_, layer, block, y);
    y = WithShape(b_, Transposed(b_, y, {0, 2, 1}), {1, width, height, across});
    return Binary(b_, "add", x, Scaled(block + "attention_scale", y));
  }

  Value* Scaled(const std::string& name, Value* x) {
    return Binary(b_, "mul", x, layers_.Needed(name, {Channels(x), 1, 1}));
  }

  const FastVitConfig& config_;
  Builder& b_;
  Layers& layers_;
};

}  // namespace

int64_t FastVitConfig::channels() const {
  return static_cast<int64_t>(static_cast<double>(stages.back().width) * final_ratio);
}

int64_t FastVitConfig::reduction() const {
  int64_t pixels = 4, before = stages.front().width;
  for (const FastVitStage& stage : stages) {
    if (stage.downsample || stage.width != before) pixels *= 2;
    before = stage.width;
  }
  return pixels;
}

void CheckFastVit(const FastVitConfig& config) {
  CheckPositive({{"kernel of mixers", config.kernel},
                 {"kernel of downsampling", config.down_kernel},
                 {"dimensions of a head", config.head}});
  constexpr int64_t kMaxKernel = 63, kMaxWidth = 1 << 14;
  if (config.stages.empty() || static_cast<int64_t>(config.stages.size()) > kMaxLayers)
    throw Error("bad-file", "the network has {} stages", config.stages.size());
  if (config.kernel % 2 == 0 || config.down_kernel % 2 == 0 || config.kernel > kMaxKernel ||
      config.down_kernel > kMaxKernel || config.down_kernel < 3)
    throw Error("bad-file", "kernels have {0} x {0} and {1} x {1} elements", config.kernel,
                config.down_kernel)
        .Expected("odd numbers up to {}", kMaxKernel);
  int64_t before = config.stages[0].width;
  for (const FastVitStage& stage : config.stages) {
    CheckPositive({{"depth of a stage", stage.depth}, {"width of a stage", stage.width}});
    if (stage.depth > kMaxLayers || stage.width > kMaxWidth)
      throw Error("resource-limit", "a stage has {} blocks of {} channels", stage.depth,
                  stage.width)
          .Expected("at most {} of {}", kMaxLayers, kMaxWidth);
    if (stage.width % before != 0 || (stage.attention && stage.width % config.head != 0))
      throw Error("bad-file", "a stage has {} channels after {}", stage.width, before)
          .Expected("multiples of those before{}",
                    stage.attention ? fmt::format(", and of {}", config.head) : "");
    if (!(stage.feed_forward > 0 && stage.feed_forward <= 1024))
      throw Error("bad-file", "the ratio of feed-forward layers is {}", stage.feed_forward)
          .Expected("more than 0, at most 1024");
    before = stage.width;
  }
  if (!(config.final_ratio >= 1 && config.final_ratio <= 64) ||
      config.final_ratio != static_cast<double>(static_cast<int64_t>(config.final_ratio)))
    throw Error("bad-file", "the last convolution has {} channels for each", config.final_ratio)
        .Expected("a small whole number");
}

Value* FastVitMap(Builder& b, Layers& layers, const FastVitConfig& config, Value* pixels) {
  return FastVit(b, layers, config).Map(pixels);
}

Program BuildFastVit(const FastVitConfig& config, const NetworkWeights& weights,
                     Diagnostics& diagnostics) {
  CheckFastVit(config);
  PictureNetwork net(weights, config.picture, diagnostics);
  Value* x = FastVitMap(net.b(), net.layers(), config, net.pixels());
  net.b().SetName("head");
  Value* mean = net.Pooled(x, false);
  if (config.labels > 0) {
    net.Output("logits", net.layers().Linear("classifier", mean, config.labels));
  } else {
    net.Output("last_hidden_state", x);
    net.Output("pooler_output", mean);
  }
  return net.Finish();
}

}  // namespace mlc::networks
