#include "lib/networks/swiftformer.h"

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {

// Lower bound of the length of queries and keys: the smallest normal number of fp16.
constexpr double kShortest = 0x1p-14;

class SwiftFormer {
 public:
  SwiftFormer(const SwiftFormerConfig& config, const NetworkWeights& weights,
              Diagnostics& diagnostics)
      : config_(config),
        net_(weights, config.picture, diagnostics),
        b_(net_.b()),
        layers_(net_.layers()) {}

  // Follows transformers' modeling_swiftformer.py.
  Program Build() {
    Value* x = net_.pixels();
    for (int64_t i : {0, 1}) {
      x = layers_.Convolution(fmt::format("stem.{}.conv", i), x, config_.widths[0] >> (1 - i),
                              {.kernel = 3, .stride = 2});
      x = Activate(b_, Activation::kRelu, Normed(fmt::format("stem.{}.norm", i), x));
    }
    for (size_t stage = 0; stage < config_.depths.size(); ++stage) {
      for (int64_t i = 0; i < config_.depths[stage]; ++i) {
        const std::string name = fmt::format("stage.{}.block.{}", stage, i);
        b_.SetName(name);
        x = i + 1 < config_.depths[stage] ? Convolved(name + ".", x, Inner(x))
                                          : LastBlock(name + ".", x);
      }
      if (stage < config_.shrinks.size() && config_.shrinks[stage])
        x = Shrunk(fmt::format("shrink.{}", stage), x, config_.widths[stage + 1]);
    }
    b_.SetName("head");
    if (config_.labels == 0) {
      net_.Output("last_hidden_state", x);
      return net_.Finish();
    }
    Value* mean = net_.Pooled(Normed("norm", x), false);
    Value* both = Binary(b_, "add", layers_.Linear("classifier", mean, config_.labels),
                         layers_.Linear("teacher", mean, config_.labels));
    net_.Output("logits", Binary(b_, "mul", both, 0.5));
    return net_.Finish();
  }

 private:
  Value* Normed(const std::string& name, Value* x) {
    return layers_.BatchNorm(name, x, config_.epsilon);
  }
  int64_t Inner(const Value* x) const {
    return static_cast<int64_t>(static_cast<double>(Channels(x)) * config_.feed_forward);
  }
  Value* Scaled(const std::string& name, Value* x) {
    return Binary(b_, "mul", x, layers_.Needed(name, {1, Channels(x), 1, 1}));
  }

  Value* Shrunk(const std::string& name, Value* x, int64_t out) {
    b_.SetName(name);
    const int64_t kernel = config_.kernel, pad = config_.padding;
    Value* weight = layers_.Needed(name + ".conv.weight", {out, Channels(x), kernel, kernel});
    x = b_.Make("conv", {{"x", x},
                         {"weight", weight},
                         {"bias", layers_.Needed(name + ".conv.bias", {out})},
                         {"strides", Ints({config_.stride, config_.stride})},
                         {"pad_type", "custom"},
                         {"pad", Ints({pad, pad, pad, pad})}});
    return Normed(name + ".norm", x);
  }

  Value* Convolved(const std::string& name, Value* x, int64_t inner) {
    const int64_t width = Channels(x);
    Value* y = layers_.Convolution(name + "depthwise", x, width, {.kernel = 3, .groups = width});
    y = layers_.Convolution(name + "up", Normed(name + "norm", y), inner, {});
    y = layers_.Convolution(name + "down", Activate(b_, Activation::kGelu, y), width, {});
    return Binary(b_, "add", x, Scaled(name + "scale", y));
  }

  Value* OfUnitLength(Value* x) {
    Value* length = Reduced(b_, "reduce_l2_norm", x, {-1}, true);
    return Binary(b_, "real_div", x, Binary(b_, "maximum", length, kShortest));
  }
  // The weights of queries are a softmax over one number each, which is 1, so that the query of the whole
  // map is their sum.
  Value* Attention(const std::string& name, Value* x) {
    const int64_t width = x->type.shape[2].constant();
    Value* queries = OfUnitLength(layers_.Linear(name + "query", x, width));
    Value* keys = OfUnitLength(layers_.Linear(name + "key", x, width));
    Value* y = Binary(b_, "mul", Reduced(b_, "reduce_sum", queries, {1}, true), keys);
    y = Binary(b_, "add", layers_.Linear(name + "projection", y, width), queries);
    return layers_.Linear(name + "output", y, width);
  }

  Value* LastBlock(const std::string& name, Value* x) {
    const int64_t height = Height(x), columns = Width(x), width = Channels(x);
    x = Convolved(name + "local.", x, width);
    Value* y = net_.Map(Attention(name + "attention.", net_.Tokens(x)), height, columns);
    x = Binary(b_, "add", x, config_.scales ? Scaled(name + "first_scale", y) : y);
    y = layers_.Convolution(name + "up", Normed(name + "second_norm", x), Inner(x), {});
    y = layers_.Convolution(name + "down", Activate(b_, config_.activation, y), width, {});
    return Binary(b_, "add", x, config_.scales ? Scaled(name + "second_scale", y) : y);
  }

  const SwiftFormerConfig& config_;
  PictureNetwork net_;
  Builder& b_;
  Layers& layers_;
};

}  // namespace

Program BuildSwiftFormer(const SwiftFormerConfig& config, const NetworkWeights& weights,
                         Diagnostics& diagnostics) {
  CheckPositive("stages' depths", config.depths);
  CheckPositive("stages' widths", config.widths);
  if (config.depths.empty() || config.widths.size() != config.depths.size())
    throw Error("bad-file", "{} stages have depths, but {} have widths", config.depths.size(),
                config.widths.size());
  CheckPositive({{"size of a kernel", config.kernel}, {"stride", config.stride}});
  constexpr int64_t kMostPadding = 1 << 8;
  if (config.padding < 0 || config.padding > kMostPadding)
    throw Error("bad-file", "maps are padded by {}", config.padding)
        .Expected("0 to {}", kMostPadding);
  if (!(config.feed_forward > 0 && config.feed_forward <= 1024))
    throw Error("bad-file", "the ratio of feed-forward layers is {}", config.feed_forward)
        .Expected("more than 0, at most 1024");
  return SwiftFormer(config, weights, diagnostics).Build();
}

}  // namespace mlc::networks
