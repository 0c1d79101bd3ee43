#include "lib/networks/detr.h"

#include <cmath>
#include <numbers>

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {

class Detr {
 public:
  Detr(const DetrConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics)
      : config_(config),
        net_(weights, config.backbone.picture, diagnostics),
        b_(net_.b()),
        layers_(net_.layers()) {}

  Program Build() {
    Value* map = ResidualStages(net_, config_.backbone, "backbone.").back();
    b_.SetName("projection");
    map = layers_.Convolution("projection", map, config_.width, {});
    positions_ = b_.Const(SinePositions(Height(map), Width(map)), "positions");
    Value* x = net_.Tokens(map);
    for (int64_t i = 0; i < config_.encoder_layers; ++i)
      x = EncoderLayer(fmt::format("encoder.{}.", i), x);
    Value* objects = Decoded(x);
    b_.SetName("head");
    if (config_.labels > 0) {
      net_.Output("logits", layers_.Linear("classes", objects, config_.labels + 1));
      net_.Output("pred_boxes", Boxes(objects));
    } else {
      net_.Output("last_hidden_state", objects);
    }
    net_.Output("encoder_last_hidden_state", x);
    return net_.Finish();
  }

 private:
  // Returns [1, h w, width]: half of the channels for the row, then half for the column, sines and
  // cosines in turn (facebookresearch/detr, models/position_encoding.py).
  Tensor SinePositions(int64_t height, int64_t width) const {
    const int64_t half = config_.width / 2;
    constexpr double kTemperature = 10000, kEpsilon = 1e-6;
    std::vector<float> positions;
    positions.reserve(static_cast<size_t>(height * width * config_.width));
    for (int64_t row = 0; row < height; ++row)
      for (int64_t column = 0; column < width; ++column)
        for (auto [at, count] : {std::pair(row, height), {column, width}})
          for (int64_t i = 0; i < half; ++i) {
            const double share = static_cast<double>(at + 1) /
                                 (static_cast<double>(count) + kEpsilon) * 2 * std::numbers::pi;
            const double angle = share / std::pow(kTemperature, static_cast<double>(i / 2 * 2) /
                                                                    static_cast<double>(half));
            positions.push_back(static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle)));
          }
    return Tensor::Of<float>({1, height * width, config_.width}, positions);
  }

  Value* Added(Value* x, const std::string& norm, Value* y) {
    return layers_.LayerNorm(norm, Binary(b_, "add", x, y), config_.epsilon);
  }
  Value* FeedForward(const std::string& name, Value* x, int64_t size) {
    Value* y = Activate(b_, config_.activation, layers_.Linear(name + "up", x, size));
    return Added(x, name + "last_norm", layers_.Linear(name + "down", y, config_.width));
  }

  Value* EncoderLayer(const std::string& name, Value* x) {
    b_.SetName(name.substr(0, name.size() - 1));
    Value* placed = Binary(b_, "add", x, positions_);
    x = Added(x, name + "norm",
              net_.Attention(name + "attention", placed, placed, x, config_.encoder_heads));
    return FeedForward(name, x, config_.encoder_feed_forward);
  }

  Value* Decoded(Value* encoded) {
    const Dims shape = {1, config_.queries, config_.width};
    Value* queries = layers_.Needed("queries.weight", shape);
    Value* places = Binary(b_, "add", encoded, positions_);
    Value* x = b_.Const(Tensor::Full(DType::kFp32, shape, 0));
    for (int64_t i = 0; i < config_.decoder_layers; ++i) {
      const std::string name = fmt::format("decoder.{}.", i);
      b_.SetName(name.substr(0, name.size() - 1));
      Value* placed = Binary(b_, "add", x, queries);
      x = Added(x, name + "norm",
                net_.Attention(name + "attention", placed, placed, x, config_.decoder_heads));
      x = Added(x, name + "cross_norm",
                net_.Attention(name + "cross", Binary(b_, "add", x, queries), places, encoded,
                               config_.decoder_heads));
      x = FeedForward(name, x, config_.decoder_feed_forward);
      if (config_.norms_each) x = layers_.LayerNorm("decoder.norm", x, config_.epsilon);
    }
    return layers_.LayerNorm("decoder.norm", x, config_.epsilon);
  }

  Value* Boxes(Value* x) {
    for (const char* layer : {"boxes.0", "boxes.1"})
      x = Activate(b_, Activation::kRelu, layers_.Linear(layer, x, config_.width));
    return Activate(b_, Activation::kSigmoid, layers_.Linear("boxes.2", x, 4));
  }

  const DetrConfig& config_;
  PictureNetwork net_;
  Builder& b_;
  Layers& layers_;
  Value* positions_ = nullptr;
};

}  // namespace

Program BuildDetr(const DetrConfig& config, const NetworkWeights& weights,
                  Diagnostics& diagnostics) {
  CheckPositive({{"width", config.width},
                 {"number of queries", config.queries},
                 {"number of encoder layers", config.encoder_layers},
                 {"number of decoder layers", config.decoder_layers},
                 {"number of encoder heads", config.encoder_heads},
                 {"number of decoder heads", config.decoder_heads},
                 {"size of encoder feed-forward layers", config.encoder_feed_forward},
                 {"size of decoder feed-forward layers", config.decoder_feed_forward}});
  constexpr int64_t kMaxWidth = 1 << 14, kMaxQueries = 1 << 16;
  if (config.width > kMaxWidth || config.width % 4 != 0 || config.queries > kMaxQueries)
    throw Error("bad-file", "the model has {} channels and {} queries", config.width,
                config.queries)
        .Expected("a multiple of 4 up to {}, and up to {}", kMaxWidth, kMaxQueries);
  return Detr(config, weights, diagnostics).Build();
}

}  // namespace mlc::networks
