#include "lib/networks/poolformer.h"

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {

class PoolFormer {
 public:
  PoolFormer(const PoolFormerConfig& config, const NetworkWeights& weights,
             Diagnostics& diagnostics)
      : config_(config),
        net_(weights, config.picture, diagnostics),
        b_(net_.b()),
        layers_(net_.layers()) {}

  Program Build() {
    Value* x = net_.pixels();
    for (size_t stage = 0; stage < config_.depths.size(); ++stage) {
      const std::string name = fmt::format("stage.{}.", stage);
      b_.SetName(name + "patches");
      x = Patches(name + "patches", x, stage);
      for (int64_t i = 0; i < config_.depths[stage]; ++i)
        x = Block(fmt::format("{}block.{}.", name, i), x);
    }
    b_.SetName("head");
    if (config_.labels > 0)
      net_.Output("logits", layers_.Linear("classifier", net_.Pooled(Normed("norm", x), false),
                                           config_.labels));
    else
      net_.Output("last_hidden_state", x);
    return net_.Finish();
  }

 private:
  Value* Patches(const std::string& name, Value* x, size_t stage) {
    const int64_t pad = config_.padding[stage], kernel = config_.patches[stage],
                  width = config_.widths[stage];
    return b_.Make(
        "conv", {{"x", x},
                 {"weight", layers_.Needed(name + ".weight", {width, Channels(x), kernel, kernel})},
                 {"bias", layers_.Needed(name + ".bias", {width})},
                 {"strides", Ints({config_.strides[stage], config_.strides[stage]})},
                 {"pad_type", "custom"},
                 {"pad", Ints({pad, pad, pad, pad})}});
  }

  // Normalises all channels of all positions together.
  Value* Normed(const std::string& name, Value* x) {
    auto channels = [&](const char* part) {
      return layers_.Needed(name + part, {1, Channels(x), 1, 1});
    };
    Value* y =
        b_.Make("layer_norm", {{"x", x}, {"axes", Ints({1, 2, 3})}, {"epsilon", config_.epsilon}});
    return Binary(b_, "add", Binary(b_, "mul", y, channels(".weight")), channels(".bias"));
  }

  Value* Block(const std::string& name, Value* x) {
    b_.SetName(name.substr(0, name.size() - 1));
    const int64_t width = Channels(x), pad = config_.pool / 2;
    Value* normed = Normed(name + "norm", x);
    Value* means = b_.Make("avg_pool", {{"x", normed},
                                        {"kernel_sizes", Ints({config_.pool, config_.pool})},
                                        {"pad_type", "custom"},
                                        {"pad", Ints({pad, pad, pad, pad})},
                                        {"exclude_padding_from_average", true}});
    x = Binary(b_, "add", x, Scaled(name + "scale", Binary(b_, "sub", means, normed)));
    const auto inner = static_cast<int64_t>(static_cast<double>(width) * config_.feed_forward);
    Value* y = layers_.Convolution(name + "up", Normed(name + "second_norm", x), inner, {});
    y = layers_.Convolution(name + "down", Activate(b_, config_.activation, y), width, {});
    return Binary(b_, "add", x, Scaled(name + "second_scale", y));
  }
  Value* Scaled(const std::string& name, Value* x) {
    if (!config_.scales) return x;
    return Binary(b_, "mul", x, layers_.Needed(name, {1, Channels(x), 1, 1}));
  }

  const PoolFormerConfig& config_;
  PictureNetwork net_;
  Builder& b_;
  Layers& layers_;
};

}  // namespace

Program BuildPoolFormer(const PoolFormerConfig& config, const NetworkWeights& weights,
                        Diagnostics& diagnostics) {
  CheckPositive("stages' depths", config.depths);
  CheckPositive("stages' widths", config.widths);
  CheckPositive("sizes of patches", config.patches);
  CheckPositive("strides", config.strides);
  for (const auto* list : {&config.widths, &config.patches, &config.strides, &config.padding})
    if (list->size() != config.depths.size())
      throw Error("bad-file", "{} stages have depths, but {} have sizes", config.depths.size(),
                  list->size());
  constexpr int64_t kMostPadding = 1 << 10;
  for (int64_t pad : config.padding)
    if (pad < 0 || pad > kMostPadding)
      throw Error("bad-file", "patches are padded by {}", pad).Expected("0 to {}", kMostPadding);
  if (config.pool < 1 || config.pool > kMostPadding || config.pool % 2 == 0)
    throw Error("bad-file", "neighbourhoods have {} x {} positions", config.pool, config.pool)
        .Expected("an odd number up to {}", kMostPadding);
  if (!(config.feed_forward > 0 && config.feed_forward <= 1024))
    throw Error("bad-file", "the ratio of feed-forward layers is {}", config.feed_forward)
        .Expected("more than 0, at most 1024");
  return PoolFormer(config, weights, diagnostics).Build();
}

}  // namespace mlc::networks
