#include "lib/networks/mobilevit.h"

#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/networks/norms.h"
#include "lib/networks/transformer_layer.h"

namespace mlc::networks {

namespace {

using Head = MobileVitConfig::Head;

class MobileVit {
 public:
  MobileVit(const MobileVitConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics)
      : config_(config),
        net_(weights, config.picture, diagnostics),
        b_(net_.b()),
        layers_(net_.layers()) {}

  Program Build() {
    Value* x = Conv("stem", net_.pixels(), config_.widths[0], {.kernel = 3, .stride = 2});
    x = Inverted("stage.0.block.0", x, config_.widths[1], 1, 1);
    for (int64_t i = 0; i < (config_.separable ? 2 : 3); ++i)
      x = Inverted(fmt::format("stage.1.block.{}", i), x, config_.widths[2], i == 0 ? 2 : 1, 1);
    int64_t stride = 4, dilation = 1;
    for (size_t i = 0; i < config_.layers.size(); ++i) {
      const std::string name = fmt::format("stage.{}.", i + 2);
      if (stride < config_.output_stride) {
        stride *= 2;
        x = Inverted(name + "block.0", x, config_.widths[i + 3], 2, 1);
      } else {
        // The convolution in the place of the first one with a stride is not dilated yet.
        x = Inverted(name + "block.0", x, config_.widths[i + 3], 1, dilation);
        dilation *= 2;
      }
      const auto transformer = config_.separable ? &MobileVit::Separable : &MobileVit::Transformer;
      x = (this->*transformer)(name, x, config_.token_widths[i], config_.layers[i]);
    }
    AddHead(x);
    return net_.Finish();
  }

 private:
  Value* Conv(const std::string& name, Value* x, int64_t out, PictureWindow window) {
    return net_.ConvNorm(name, x, out, window, config_.activation);
  }

  Value* Inverted(const std::string& name, Value* x, int64_t out, int64_t stride,
                  int64_t dilation) {
    const double expanded = static_cast<double>(Channels(x)) * config_.expansion;
    return InvertedResidual(net_, name,
                            {.expanded = MakeDivisible(std::nearbyint(expanded)),
                             .depthwise_kernel = 3,
                             .out = out,
                             .stride = stride,
                             .dilation = dilation,
                             .residual = stride == 1 && Channels(x) == out,
                             .activation = config_.activation},
                            {}, x);
  }

  // Pixels at the same place of each patch attend to each other (section 3.1 of the paper).
  Value* Transformer(const std::string& name, Value* x, int64_t width, int64_t count) {
    Value* y = Conv(name + "local", x, Channels(x), {.kernel = config_.kernel});
    y = layers_.Convolution(name + "embed.conv", y, width, {});
    const int64_t p = config_.patch, height = Height(y), columns = Width(y);
    const int64_t rows = (height + p - 1) / p, across = (columns + p - 1) / p;
    y = net_.Resized(y, rows * p, across * p);
    y = Transposed(b_, WithShape(b_, y, {width, rows, p, across, p}), {2, 4, 1, 3, 0});
    y = WithShape(b_, y, {p * p, rows * across, width});
    for (int64_t i = 0; i < count; ++i) {
      const std::string own = fmt::format("{}layer.{}.", name, i);
      b_.SetName(own.substr(0, own.size() - 1));
      Value* normed = layers_.LayerNorm(own + "norm", y, config_.epsilon);
      const TransformerLayer layer{.width = width, .heads = config_.heads};
      normed = layers_.Has(own + "attention.qkv.weight")
                   ? SelfAttention(b_, layers_, layer, own + "attention.", normed)
                   : net_.Attention(own + "attention", normed, normed, normed, config_.heads);
      y = Binary(b_, "add", normed, y);
      normed = layers_.LayerNorm(own + "second_norm", y, config_.epsilon);
      const auto inner = static_cast<int64_t>(static_cast<double>(width) * config_.feed_forward);
      Value* up = Activate(b_, config_.activation, layers_.Linear(own + "up", normed, inner));
      y = Binary(b_, "add", layers_.Linear(own + "down", up, width), y);
    }
    y = layers_.LayerNorm(name + "norm", y, config_.epsilon);
    y = Transposed(b_, WithShape(b_, y, {p, p, rows, across, width}), {4, 2, 0, 3, 1});
    y = net_.Resized(WithShape(b_, y, {1, width, rows * p, across * p}), height, columns);
    y = Conv(name + "unembed", y, Channels(x), {});
    return Conv(name + "fusion", Concat(b_, {x, y}, 1), Channels(x), {.kernel = config_.kernel});
  }

  // Pixels at the same place of each patch are summed by the scores of one query.
  Value* Separable(const std::string& name, Value* x, int64_t width, int64_t count) {
    Value* y =
        Conv(name + "local", x, Channels(x), {.kernel = config_.kernel, .groups = Channels(x)});
    y = layers_.Convolution(name + "embed.conv", y, width, {});
    const int64_t p = config_.patch, rows = Height(y) / p, across = Width(y) / p;
    if (rows * p != Height(y) || across * p != Width(y))
      throw Error("bad-file", "a map of {} x {} does not consist of patches of {} x {}", Height(y),
                  Width(y), p, p)
          .Help("choose another size of pictures with option 'shape'");
    y = Transposed(b_, WithShape(b_, y, {width, rows, p, across, p}), {0, 2, 4, 1, 3});
    y = WithShape(b_, y, {1, width, p * p, rows * across});
    for (int64_t i = 0; i < count; ++i) {
      const std::string own = fmt::format("{}layer.{}.", name, i);
      b_.SetName(own.substr(0, own.size() - 1));
      Value* all = layers_.Convolution(own + "attention.joined.conv", Normed(own + "norm", y),
                                       1 + 2 * width, {});
      auto part = [&](int64_t begin, int64_t size) {
        return SliceAlong(b_, all, 1, begin, begin + size, false);
      };
      Value* scores = b_.Make("softmax", {{"x", part(0, 1)}, {"axis", -1}});
      Value* context =
          Reduced(b_, "reduce_sum", Binary(b_, "mul", part(1, width), scores), {-1}, true);
      Value* values = Activate(b_, Activation::kRelu, part(1 + width, width));
      y = Binary(b_, "add", y,
                 layers_.Convolution(own + "attention.output.conv",
                                     Binary(b_, "mul", values, context), width, {}));
      const auto inner =
          static_cast<int64_t>(static_cast<double>(width) * config_.feed_forward) / 16 * 16;
      Value* up = layers_.Convolution(own + "up.conv", Normed(own + "second_norm", y), inner, {});
      up = Activate(b_, config_.activation, up);
      y = Binary(b_, "add", y, layers_.Convolution(own + "down.conv", up, width, {}));
    }
    y = WithShape(b_, Normed(name + "norm", y), {width, p, p, rows, across});
    y = WithShape(b_, Transposed(b_, y, {0, 3, 1, 4, 2}), {1, width, rows * p, across * p});
    return net_.ConvNorm(name + "unembed", y, Channels(x), {}, Activation::kNone);
  }
  // Normalises all channels and pixels at once.
  Value* Normed(const std::string& name, Value* x) {
    const int64_t channels = Channels(x);
    x = GroupNorm(b_, x, 1, config_.epsilon);
    auto each = [&](const char* part) {
      return WithShape(b_, layers_.Needed(name + part, {channels}), {1, channels, 1, 1});
    };
    return Binary(b_, "add", Binary(b_, "mul", x, each(".weight")), each(".bias"));
  }

  // Atrous spatial pyramid pooling (Chen et al. 2017).
  Value* Pyramid(Value* x) {
    auto conv = [&](const std::string& name, Value* of, PictureWindow window) {
      return net_.ConvNorm("pyramid." + name, of, config_.pyramid, window, Activation::kRelu);
    };
    std::vector<Value*> levels = {conv("0", x, {})};
    for (size_t i = 0; i < config_.rates.size(); ++i)
      levels.push_back(conv(std::to_string(i + 1), x, {.kernel = 3, .dilation = config_.rates[i]}));
    Value* mean = conv("pool", net_.Pooled(x, true), {});
    levels.push_back(b_.Make("tile", {{"x", mean}, {"reps", Ints({1, 1, Height(x), Width(x)})}}));
    return conv("project", Concat(b_, levels, 1), {});
  }

  void AddHead(Value* x) {
    if (config_.head == Head::kSegments) {
      Value* y = Pyramid(x);
      return net_.Output("logits", layers_.Convolution("classifier.conv", y, config_.labels, {}));
    }
    if (!config_.separable) x = Conv("head", x, config_.widths.back(), {});
    Value* mean = net_.Pooled(x, false);
    if (config_.head == Head::kClasses)
      return net_.Output("logits", layers_.Linear("classifier", mean, config_.labels));
    net_.Output("last_hidden_state", x);
    net_.Output("pooler_output", mean);
  }

  const MobileVitConfig& config_;
  PictureNetwork net_;
  Builder& b_;
  Layers& layers_;
};

}  // namespace

Program BuildMobileVit(const MobileVitConfig& config, const NetworkWeights& weights,
                       Diagnostics& diagnostics) {
  CheckPositive("neck widths", config.widths);
  CheckPositive("hidden widths", config.token_widths);
  CheckPositive({{"number of heads", config.heads},
                 {"size of a patch", config.patch},
                 {"size of a kernel", config.kernel}});
  CheckPositive("transformers' layers", config.layers);
  const size_t widths = config.separable ? 6 : 7;
  constexpr size_t kTransformers = 3;
  if (config.layers.size() != kTransformers)
    throw Error("bad-file", "there are {} transformers", config.layers.size())
        .Expected("{}", kTransformers);
  if (config.widths.size() != widths || config.token_widths.size() != kTransformers)
    throw Error("bad-file", "there are {} neck widths and {} hidden widths", config.widths.size(),
                config.token_widths.size())
        .Expected("{} and {}", widths, kTransformers);
  if (config.output_stride != 8 && config.output_stride != 16 && config.output_stride != 32)
    throw Error("bad-file", "the output stride is {}", config.output_stride)
        .Expected("8, 16 or 32");
  if (!(config.feed_forward > 0 && config.feed_forward <= 1024))
    throw Error("bad-file", "the ratio of feed-forward layers is {}", config.feed_forward)
        .Expected("more than 0, at most 1024");
  if (config.head == Head::kSegments) {
    CheckPositive("rates", config.rates);
    CheckPositive({{"width of the pyramid", config.pyramid}});
  }
  return MobileVit(config, weights, diagnostics).Build();
}

}  // namespace mlc::networks
