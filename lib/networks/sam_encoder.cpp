#include "lib/networks/sam_encoder.h"

#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/networks/picture_network.h"
#include "lib/networks/windows.h"

namespace mlc::networks {

namespace {

constexpr double kNeckEpsilon = 1e-6;

class SamEncoder {
 public:
  SamEncoder(Builder& b, Layers& layers, const SamEncoderConfig& config)
      : b_(b), layers_(layers), config_(config) {}

  Value* Embeddings(Value* pixels) {
    b_.SetName("patches");
    Value* x = layers_.Convolution("patches", pixels, config_.layer.width,
                                   {.kernel = config_.patch,
                                    .stride = config_.patch,
                                    .padding = PictureWindow::Padding::kNone});
    const GridSize grid{Height(x), Width(x)};
    x = Transposed(b_, x, {0, 2, 3, 1});
    if (config_.position_table)
      x = Binary(b_, "add", x,
                 layers_.Needed("positions", {1, grid.height, grid.width, config_.layer.width}));
    for (int64_t i = 0; i < config_.layers; ++i) {
      b_.SetName(fmt::format("layer_{}", i));
      const std::string own = fmt::format("layer.{}.", i);
      const bool global = std::ranges::count(config_.global, i) > 0 || config_.window == 0;
      Value* y = layers_.LayerNorm(own + "attention_norm", x, config_.layer.epsilon);
      y = global ? Attended(own, y)
                 : FromWindows(b_, Attended(own, Windows(b_, y, config_.window)), grid);
      x = Binary(b_, "add", x, y);
      y = layers_.LayerNorm(own + "norm", x, config_.layer.epsilon);
      x = Binary(b_, "add", x, FeedForwardOf(b_, layers_, config_.layer, own, y));
    }
    b_.SetName("neck");
    x = layers_.Convolution("neck.0", Transposed(b_, x, {0, 3, 1, 2}), config_.channels, {});
    x = layers_.ChannelNorm("neck.norm.0", x, kNeckEpsilon);
    x = layers_.Convolution("neck.1", x, config_.channels, {.kernel = 3});
    return layers_.ChannelNorm("neck.norm.1", x, kNeckEpsilon);
  }

 private:
  // Attention between all patches of maps x [N, rows, columns, W].
  Value* Attended(const std::string& own, Value* x) {
    const TransformerLayer& layer = config_.layer;
    const int64_t count = x->type.shape[0].constant(), rows = x->type.shape[1].constant(),
                  columns = x->type.shape[2].constant(), head = layer.width / layer.heads;
    const Projections made =
        Projected(b_, layers_, layer, own, WithShape(b_, x, {count, rows * columns, layer.width}));
    Value* q = Heads(b_, made.query, layer.heads);
    AttentionParts parts{.q = Binary(b_, "mul", q, 1 / std::sqrt(static_cast<double>(head))),
                         .k = Heads(b_, made.key, layer.heads),
                         .v = Heads(b_, made.value, layer.heads)};
    if (config_.relative) {
      // Queries that are not scaled score the distances in both directions.
      Value* map = WithShape(b_, q, {count * layer.heads, rows, columns, head});
      Value* down =
          b_.Make("matmul",
                  {{"x", map}, {"y", Distances(own + "rows", rows, head)}, {"transpose_y", true}});
      Value* across = b_.Make("matmul", {{"x", Transposed(b_, map, {0, 2, 1, 3})},
                                         {"y", Distances(own + "columns", columns, head)},
                                         {"transpose_y", true}});
      across = Transposed(b_, across, {0, 2, 1, 3});
      Value* bias = Binary(b_, "add", Expanded(b_, down, {4}), Expanded(b_, across, {3}));
      parts.biases = {WithShape(b_, bias, {count, layer.heads, rows * columns, rows * columns})};
    }
    Value* y = layers_.Linear(own + "attention", Joined(b_, Attend(b_, parts).y), layer.width);
    return WithShape(b_, y, {count, rows, columns, layer.width});
  }

  // Returns the rows of a table for each query and key [1, queries, keys, head].
  Value* Distances(const std::string& name, int64_t size, int64_t head) {
    Value* table = layers_.Needed(name, {2 * size - 1, head});
    std::vector<int32_t> rows;
    for (int64_t q = 0; q < size; ++q)
      for (int64_t k = 0; k < size; ++k) rows.push_back(static_cast<int32_t>(q - k + size - 1));
    return Expanded(b_, Rows(b_, table, b_.Const(Tensor::Of<int32_t>({size, size}, rows))), {0});
  }

  Builder& b_;
  Layers& layers_;
  const SamEncoderConfig& config_;
};

}  // namespace

Value* SamEmbeddings(Builder& b, Layers& layers, const SamEncoderConfig& config, Value* pixels) {
  return SamEncoder(b, layers, config).Embeddings(pixels);
}

void CheckSamEncoder(const SamEncoderConfig& config) {
  CheckLayer(config.layer);
  CheckPositive({{"number of layers", config.layers},
                 {"size of a patch", config.patch},
                 {"number of channels", config.channels}});
  constexpr int64_t kMaxWindow = 128;
  if (config.layers > kMaxLayers)
    throw Error("resource-limit", "the model has {} layers", config.layers)
        .Expected("at most {}", kMaxLayers);
  if (config.window < 0 || config.window > kMaxWindow)
    throw Error("bad-file", "windows have {} x {} patches", config.window, config.window)
        .Expected("0 (the whole picture) to {}", kMaxWindow);
}

}  // namespace mlc::networks
