#include "lib/networks/segformer.h"

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {

using Head = SegformerConfig::Head;

class Segformer {
 public:
  Segformer(const SegformerConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics)
      : config_(config),
        net_(weights, config.picture, diagnostics),
        b_(net_.b()),
        layers_(net_.layers()) {}

  Program Build() {
    std::vector<Value*> maps;
    Value* x = net_.pixels();
    if (config_.first) return BuildFirst(x);
    for (size_t stage = 0; stage < config_.depths.size(); ++stage)
      maps.push_back(x = Stage(fmt::format("stage.{}.", stage), x, stage));
    b_.SetName("head");
    if (config_.head == Head::kNone) {
      net_.Output("last_hidden_state", x);
    } else if (config_.head == Head::kClasses) {
      net_.Output("logits", layers_.Linear("classifier", net_.Pooled(x, false), config_.labels));
    } else {
      AddDecoder(maps);
    }
    return net_.Finish();
  }

 private:
  Program BuildFirst(Value* x) {
    const size_t last = config_.depths.size() - 1;
    for (size_t stage = 0; stage <= last; ++stage) x = FirstStage(x, stage, stage == last);
    b_.SetName("head");
    x = layers_.LayerNorm("norm", x, config_.epsilon);
    if (config_.head == Head::kNone)
      net_.Output("last_hidden_state", x);
    else
      net_.Output("logits", layers_.Linear("classifier", Element(b_, x, 0, 1), config_.labels));
    return net_.Finish();
  }
  Value* FirstStage(Value* x, size_t stage, bool last) {
    const std::string name = fmt::format("stage.{}.", stage);
    b_.SetName(name + "patches");
    const int64_t width = config_.widths[stage];
    x = layers_.Convolution(name + "patches", x, width,
                            {.kernel = config_.strides[stage],
                             .stride = config_.patches[stage],
                             .padding = PictureWindow::Padding::kNone});
    const int64_t rows = Height(x), columns = Width(x);
    x = layers_.LayerNorm(name + "patches.norm", net_.Tokens(x), config_.epsilon);
    if (last) x = Concat(b_, {layers_.Needed(name + "class_token", {1, 1, width}), x}, 1);
    x = Binary(b_, "add", x,
               layers_.Needed(name + "positions", {1, rows * columns + (last ? 1 : 0), width}));
    for (int64_t i = 0; i < config_.depths[stage]; ++i)
      x = Block(fmt::format("{}block.{}.", name, i), x, stage, rows, columns);
    return last ? x : net_.Map(x, rows, columns);
  }

  Value* Stage(const std::string& name, Value* x, size_t stage) {
    b_.SetName(name + "patches");
    const int64_t kernel = config_.patches[stage];
    x = layers_.Convolution(name + "patches", x, config_.widths[stage],
                            {.kernel = kernel, .stride = config_.strides[stage]});
    const int64_t height = Height(x), width = Width(x);
    x = layers_.LayerNorm(name + "patches.norm", net_.Tokens(x), config_.epsilon);
    for (int64_t i = 0; i < config_.depths[stage]; ++i)
      x = Block(fmt::format("{}block.{}.", name, i), x, stage, height, width);
    return net_.Map(layers_.LayerNorm(name + "norm", x, config_.epsilon), height, width);
  }

  Value* Block(const std::string& name, Value* x, size_t stage, int64_t height, int64_t width) {
    b_.SetName(name.substr(0, name.size() - 1));
    const int64_t channels = config_.widths[stage], reduction = config_.reductions[stage];
    Value* queries = layers_.LayerNorm(name + "norm", x, config_.epsilon);
    Value* keys = queries;
    if (reduction > 1) {
      keys = layers_.Convolution(
          name + "attention.reduction", net_.Map(queries, height, width), channels,
          {.kernel = reduction, .stride = reduction, .padding = PictureWindow::Padding::kNone});
      keys = layers_.LayerNorm(name + "attention.norm", net_.Tokens(keys), config_.epsilon);
    }
    x = Binary(b_, "add", x,
               net_.Attention(name + "attention", queries, keys, keys, config_.heads[stage]));
    Value* y = layers_.LayerNorm(name + "second_norm", x, config_.epsilon);
    const auto inner =
        static_cast<int64_t>(static_cast<double>(channels) * config_.feed_forward[stage]);
    y = layers_.Linear(name + "up", y, inner);
    if (config_.first) {
      y = Activate(b_, config_.activation, y);
    } else {
      y = layers_.Convolution(name + "depthwise", net_.Map(y, height, width), inner,
                              {.kernel = 3, .groups = inner});
      y = net_.Tokens(Activate(b_, config_.activation, y));
    }
    return Binary(b_, "add", x, layers_.Linear(name + "down", y, channels));
  }

  void AddDecoder(const std::vector<Value*>& maps) {
    std::vector<Value*> levels;
    for (size_t i = maps.size(); i-- > 0;) {
      Value* y =
          layers_.Linear(fmt::format("decoder.{}", i), net_.Tokens(maps[i]), config_.decoder);
      y = net_.Map(y, Height(maps[i]), Width(maps[i]));
      levels.push_back(net_.Resized(y, Height(maps[0]), Width(maps[0])));
    }
    Value* y = net_.ConvNorm("decoder.fuse", Concat(b_, levels, 1), config_.decoder, {},
                             Activation::kRelu);
    net_.Output("logits", layers_.Convolution("classifier", y, config_.labels, {}));
  }

  const SegformerConfig& config_;
  PictureNetwork net_;
  Builder& b_;
  Layers& layers_;
};

}  // namespace

Program BuildSegformer(const SegformerConfig& config, const NetworkWeights& weights,
                       Diagnostics& diagnostics) {
  for (auto [name, list] : {std::pair("depths", &config.depths),
                            {"hidden sizes", &config.widths},
                            {"numbers of heads", &config.heads},
                            {"sizes of patches", &config.patches},
                            {"strides", &config.strides},
                            {"reductions", &config.reductions}}) {
    CheckPositive(name, *list);
    if (list->size() != config.depths.size())
      throw Error("bad-file", "{} stages have {}, but {} have depths", list->size(), name,
                  config.depths.size());
  }
  if (config.feed_forward.size() != config.depths.size())
    throw Error("bad-file", "{} stages have ratios of feed-forward layers, but {} have depths",
                config.feed_forward.size(), config.depths.size());
  for (double ratio : config.feed_forward)
    if (!(ratio > 0 && ratio <= 1024))
      throw Error("bad-file", "the ratio of feed-forward layers is {}", ratio)
          .Expected("more than 0, at most 1024");
  CheckPositive({{"width of the decoder", config.decoder}});
  if (config.first && config.reductions.back() != 1)
    throw Error("bad-file", "the last stage, which has a class token, reduces keys {} times",
                config.reductions.back())
        .Expected("1");
  return Segformer(config, weights, diagnostics).Build();
}

}  // namespace mlc::networks
