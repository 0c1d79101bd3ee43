#include "lib/networks/davit.h"

#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/networks/picture_network.h"
#include "lib/networks/transformer_layer.h"
#include "lib/networks/windows.h"

namespace mlc::networks {

namespace {

constexpr double kEpsilon = 1e-5;

class DaVit {
 public:
  DaVit(Builder& b, Layers& layers, const DaVitConfig& config)
      : b_(b), layers_(layers), config_(config) {}

  Value* Map(Value* x) {
    for (size_t i = 0; i < config_.stages.size(); ++i) {
      const DaVitConfig::Stage& stage = config_.stages[i];
      const std::string name = fmt::format("stage.{}.", i);
      x = Patches(name, x, stage);
      for (int64_t block = 0; block < stage.depth; ++block) {
        const std::string own = fmt::format("{}block.{}.", name, block);
        x = Block(own + "places.", x, [&](const std::string& part, Value* y) {
          return BetweenPlaces(part, y, stage.heads);
        });
        x = Block(own + "channels.", x, [&](const std::string& part, Value* y) {
          return BetweenChannels(part, y, stage.groups);
        });
      }
    }
    return x;
  }

 private:
  Value* Patches(const std::string& name, Value* x, const DaVitConfig::Stage& stage) {
    b_.SetName(name + "patches");
    if (stage.norm_first) x = layers_.ChannelNorm(name + "norm", x, kEpsilon);
    x = layers_.Convolution(name + "patches", x, stage.width,
                            {.kernel = stage.kernel, .stride = stage.stride});
    return stage.norm_first ? x : layers_.ChannelNorm(name + "norm", x, kEpsilon);
  }

  // A convolution of each channel, which is added, precedes both branches.
  template <typename Attended>
  Value* Block(const std::string& own, Value* x, Attended attended) {
    b_.SetName(own.substr(0, own.size() - 1));
    const int64_t width = Channels(x);
    auto convolved = [&](const char* part, Value* map) {
      return Binary(b_, "add", map,
                    layers_.Convolution(own + part, map, width, {.kernel = 3, .groups = width}));
    };
    Value* map = Transposed(b_, convolved("first", x), {0, 2, 3, 1});
    Value* y = layers_.LayerNorm(own + "attention_norm", map, kEpsilon);
    map = Binary(b_, "add", map, attended(own, y));
    map = convolved("second", Transposed(b_, map, {0, 3, 1, 2}));
    map = Transposed(b_, map, {0, 2, 3, 1});
    y = layers_.LayerNorm(own + "norm", map, kEpsilon);
    const auto inner = static_cast<int64_t>(static_cast<double>(width) * config_.feed_forward);
    y = Activate(b_, config_.activation, Biased(layers_, own + "up", y, inner));
    map = Binary(b_, "add", map, Biased(layers_, own + "down", y, width));
    return Transposed(b_, map, {0, 3, 1, 2});
  }

  // Returns the projections of tokens [N, T, C].
  Projections OfTokens(const std::string& own, Value* tokens) {
    const TransformerLayer layer{.width = SizeAlong(tokens, 2),
                                 .query_bias = config_.query_bias,
                                 .key_bias = config_.query_bias,
                                 .value_bias = config_.query_bias};
    return Projected(b_, layers_, layer, own, tokens);
  }

  Value* BetweenPlaces(const std::string& own, Value* map, int64_t heads) {
    const int64_t width = SizeAlong(map, 3), side = config_.window;
    Value* x = Windows(b_, map, side);
    const int64_t count = SizeAlong(x, 0);
    const Projections made = OfTokens(own, WithShape(b_, x, {count, side * side, width}));
    const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
    AttentionParts parts{.q = Binary(b_, "mul", Heads(b_, made.query, heads), scale),
                         .k = Heads(b_, made.key, heads),
                         .v = Heads(b_, made.value, heads)};
    x = Biased(layers_, own + "attention", Joined(b_, Attend(b_, parts).y), width);
    return FromWindows(b_, WithShape(b_, x, {count, side, side, width}),
                       {SizeAlong(map, 1), SizeAlong(map, 2)});
  }

  Value* BetweenChannels(const std::string& own, Value* map, int64_t groups) {
    const int64_t width = SizeAlong(map, 3), places = SizeAlong(map, 1) * SizeAlong(map, 2);
    const Projections made = OfTokens(own, WithShape(b_, map, {1, places, width}));
    // Channels [1, groups, C / groups, places] take the role of tokens.
    auto channels = [&](Value* x) { return Transposed(b_, Heads(b_, x, groups), {0, 1, 3, 2}); };
    const double scale = 1 / std::sqrt(static_cast<double>(places));
    AttentionParts parts{.q = Binary(b_, "mul", channels(made.query), scale),
                         .k = channels(made.key),
                         .v = channels(made.value)};
    Value* x = Joined(b_, Transposed(b_, Attend(b_, parts).y, {0, 1, 3, 2}));
    return WithShape(b_, Biased(layers_, own + "attention", x, width),
                     {1, SizeAlong(map, 1), SizeAlong(map, 2), width});
  }

  Builder& b_;
  Layers& layers_;
  const DaVitConfig& config_;
};

}  // namespace

Value* DaVitMap(Builder& b, Layers& layers, const DaVitConfig& config, Value* pixels) {
  return DaVit(b, layers, config).Map(pixels);
}

Value* FlorenceTokens(Builder& b, Layers& layers, Value* map, int64_t positions, int64_t width) {
  b.SetName("projector");
  const int64_t channels = Channels(map), height = Height(map), across = Width(map),
                half = channels / 2;
  if (height > positions || across > positions)
    throw Error("bad-file", "the map of a picture has {} x {} places", height, across)
        .Expected("at most {0} x {0}, the number of positions", positions);
  Value* rows = SliceAlong(b, layers.Needed("rows.weight", {positions, half}), 0, 0, height, false);
  Value* columns = SliceAlong(b, layers.Needed("columns.weight", {positions, channels - half}), 0,
                              0, across, false);
  Value* x = Transposed(b, map, {0, 2, 3, 1});
  // The positions of columns are those of the first channels.
  auto spread = [&](Value* table, int64_t down, int64_t right) {
    Value* all = WithShape(b, table, {1, down, right, -1});
    return b.Make("tile", {{"x", all}, {"reps", Ints({1, height / down, across / right, 1})}});
  };
  x = Binary(b, "add", x, Concat(b, {spread(columns, 1, across), spread(rows, height, 1)}, 3));
  // The sine and the cosine of the first moment of a video.
  std::vector<float> moment(static_cast<size_t>(channels));
  for (size_t i = 1; i < moment.size(); i += 2) moment[i] = 1;
  x = Binary(b, "add", x, b.Const(Tensor::Of<float>({channels}, moment), "moment"));
  x = WithShape(b, x, {1, height * across, channels});
  x = Concat(b, {Reduced(b, "reduce_mean", x, {1}, true), x}, 1);
  return layers.LayerNorm("projector_norm", layers.Linear("projector", x, width), kEpsilon);
}

void CheckDaVit(const DaVitConfig& config) {
  constexpr int64_t kMaxWindow = 128, kMaxKernel = 63;
  if (config.stages.empty() || static_cast<int64_t>(config.stages.size()) > kMaxLayers)
    throw Error("bad-file", "the network has {} stages", config.stages.size())
        .Expected("1 to {}", kMaxLayers);
  CheckPositive({{"size of a window", config.window}});
  if (config.window > kMaxWindow)
    throw Error("resource-limit", "windows have {0} x {0} places", config.window)
        .Expected("at most {0} x {0}", kMaxWindow);
  for (const DaVitConfig::Stage& stage : config.stages) {
    CheckPositive({{"depth of a stage", stage.depth},
                   {"width of a stage", stage.width},
                   {"number of heads", stage.heads},
                   {"number of groups", stage.groups},
                   {"kernel of patches", stage.kernel},
                   {"stride of patches", stage.stride}});
    if (stage.depth > kMaxLayers)
      throw Error("resource-limit", "a stage has {} blocks", stage.depth)
          .Expected("at most {}", kMaxLayers);
    if (stage.kernel % 2 == 0 || stage.kernel > kMaxKernel)
      throw Error("bad-file", "patches have kernels of {0} x {0}", stage.kernel)
          .Expected("an odd number up to {}", kMaxKernel);
    if (stage.width % stage.heads != 0 || stage.width % stage.groups != 0)
      throw Error("bad-file", "a stage has {} channels, {} heads and {} groups", stage.width,
                  stage.heads, stage.groups)
          .Expected("numbers that divide the channels");
  }
  if (!(config.feed_forward > 0 && config.feed_forward <= 1024))
    throw Error("bad-file", "the ratio of feed-forward layers is {}", config.feed_forward)
        .Expected("more than 0, at most 1024");
}

}  // namespace mlc::networks
