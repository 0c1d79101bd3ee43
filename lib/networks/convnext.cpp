#include "lib/networks/convnext.h"

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {

class ConvNext {
 public:
  ConvNext(const ConvNextConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics)
      : config_(config),
        net_(weights, config.picture, diagnostics),
        b_(net_.b()),
        layers_(net_.layers()) {}

  Program Build() {
    Value* x = Stem();
    for (size_t stage = 0; stage < config_.depths.size(); ++stage) {
      const std::string name = fmt::format("stage.{}.", stage);
      b_.SetName(name + "downsample");
      if (stage > 0) {
        x = layers_.ChannelNorm(name + "downsample.norm", x, config_.epsilon);
        x = layers_.Convolution(name + "downsample.conv", x, config_.widths[stage], Patches(2));
      }
      for (int64_t i = 0; i < config_.depths[stage]; ++i)
        x = Block(fmt::format("{}block.{}.", name, i), x);
    }
    AddHead(x);
    return net_.Finish();
  }

 private:
  static PictureWindow Patches(int64_t size) {
    return {.kernel = size, .stride = size, .padding = PictureWindow::Padding::kNone};
  }

  Value* Stem() {
    b_.SetName("stem");
    Value* x = net_.pixels();
    if (config_.overlap_width > 0) {
      const PictureWindow window = {.kernel = 3, .stride = 2};
      x = layers_.Convolution("stem.0", x, config_.overlap_width, window);
      x = layers_.Convolution("stem.1", x, config_.widths[0], window);
    } else {
      x = layers_.Convolution("stem", x, config_.widths[0], Patches(config_.patch));
    }
    return layers_.ChannelNorm("stem.norm", x, config_.epsilon);
  }

  Value* Block(const std::string& name, Value* x) {
    b_.SetName(name.substr(0, name.size() - 1));
    const int64_t width = Channels(x);
    const int64_t kernel = layers_.Sizes(name + "depthwise.weight", 4)[2];
    Value* y =
        layers_.Convolution(name + "depthwise", x, width, {.kernel = kernel, .groups = width});
    y = layers_.LayerNorm(name + "norm", Transposed(b_, y, {0, 2, 3, 1}), config_.epsilon);
    y = Activate(b_, config_.activation, layers_.Linear(name + "up", y, 4 * width));
    if (config_.response_norm) y = ResponseNorm(name + "response", y);
    y = layers_.Linear(name + "down", y, width);
    if (Value* scale = layers_.Optional(name + "scale", {width})) y = Binary(b_, "mul", y, scale);
    return Binary(b_, "add", x, Transposed(b_, y, {0, 3, 1, 2}));
  }

  // Global response normalisation (ConvNeXt V2, section 3.2) of x [1, H, W, C].
  Value* ResponseNorm(const std::string& name, Value* x) {
    const Dims channels = {x->type.shape.back().constant()};
    Value* length = Reduced(b_, "reduce_l2_norm", x, {1, 2}, true);
    Value* mean = Reduced(b_, "reduce_mean", length, {3}, true);
    Value* share = Binary(b_, "real_div", length, Binary(b_, "add", mean, 1e-6));
    Value* y =
        Binary(b_, "mul", Binary(b_, "mul", x, share), layers_.Needed(name + ".weight", channels));
    return Binary(b_, "add", Binary(b_, "add", y, layers_.Needed(name + ".bias", channels)), x);
  }

  void AddHead(Value* x) {
    b_.SetName("head");
    if (config_.tokens) {
      Value* mean = Expanded(b_, net_.Pooled(x, false), {1});
      Value* all = Concat(b_, {mean, net_.Tokens(x)}, 1);
      all = layers_.LayerNorm("norm", all, config_.final_epsilon);
      net_.Output("last_hidden_state", all);
      return net_.Output("pooler_output", Element(b_, all, 0, 1));
    }
    if (config_.norm_first) x = layers_.ChannelNorm("norm", x, config_.final_epsilon);
    Value* mean = net_.Pooled(x, false);
    if (!config_.norm_first) mean = layers_.LayerNorm("norm", mean, config_.final_epsilon);
    if (config_.dense > 0)
      mean = Activate(b_, Activation::kGelu, layers_.Linear("dense", mean, config_.dense));
    if (config_.labels == 0) {
      net_.Output("last_hidden_state", x);
      return net_.Output("pooler_output", mean);
    }
    net_.Output("logits", layers_.Linear("classifier", mean, config_.labels));
  }

  const ConvNextConfig& config_;
  PictureNetwork net_;
  Builder& b_;
  Layers& layers_;
};

}  // namespace

Program BuildConvNext(const ConvNextConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics) {
  CheckPositive("stages' depths", config.depths);
  CheckPositive("stages' widths", config.widths);
  CheckPositive({{"size of a patch", config.patch}});
  if (config.depths.size() != config.widths.size())
    throw Error("bad-file", "{} stages have depths, but {} have widths", config.depths.size(),
                config.widths.size());
  return ConvNext(config, weights, diagnostics).Build();
}

}  // namespace mlc::networks
