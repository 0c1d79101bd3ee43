#include "lib/networks/hiera.h"

#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/networks/picture_network.h"
#include "lib/networks/transformer_layer.h"
#include "lib/networks/windows.h"

namespace mlc::networks {

namespace {

constexpr int64_t kPool = 2;

// Maps have the shape [N, h, w, C].
class Hiera {
 public:
  Hiera(Builder& b, Layers& layers, const HieraConfig& config)
      : b_(b), layers_(layers), config_(config) {}

  std::vector<Value*> Maps(Value* pixels) {
    b_.SetName("patches");
    Value* x = layers_.Convolution("patches", pixels, config_.widths[0],
                                   {.kernel = config_.kernel, .stride = config_.stride});
    x = Transposed(b_, x, {0, 2, 3, 1});
    x = Binary(b_, "add", x, Positions({SizeAlong(x, 1), SizeAlong(x, 2)}));
    std::vector<Value*> maps;
    int64_t number = 0;
    for (size_t stage = 0; stage < config_.depths.size(); ++stage) {
      for (int64_t i = 0; i < config_.depths[stage]; ++i, ++number) {
        const bool first = stage > 0 && i == 0,
                   pools = first && static_cast<int64_t>(stage) <= config_.pooled_stages,
                   global = std::ranges::count(config_.global, number) > 0;
        const int64_t window = global ? 0 : config_.windows[first ? stage - 1 : stage];
        x = Block(fmt::format("layer.{}.", number), x, stage, window, pools);
      }
      maps.push_back(Transposed(b_, x, {0, 3, 1, 2}));
    }
    return maps;
  }

 private:
  // The resized table, to which each window adds its own one.
  Value* Positions(GridSize size) {
    const int64_t width = config_.widths[0], side = config_.windows[0];
    const GridSize from = config_.background;
    if (size.height % side != 0 || size.width % side != 0)
      throw Error("bad-file", "a map of {} x {} patches does not consist of windows of {} x {}",
                  size.height, size.width, side, side);
    // Rows are places.
    auto table = [&](const char* name, GridSize of) {
      Value* stored = layers_.Needed(name, {1, width, of.height, of.width});
      stored = Transposed(b_, WithShape(b_, stored, {width, of.count()}), {1, 0});
      return stored->constant();
    };
    const Tensor resized = ResizedGrid(table("positions", from), from, size, Resizing::kBicubic);
    const Tensor window = table("window_positions", {side, side});
    const Pin<float> whole = resized.data<float>(), repeated = window.data<float>();
    std::vector<float> sum(whole.begin(), whole.end());
    for (size_t i = 0; i < sum.size(); ++i) {
      const auto channels = static_cast<size_t>(width);
      const auto place = static_cast<int64_t>(i / channels);
      const int64_t row = place / size.width % side, column = place % size.width % side;
      sum[i] += repeated[static_cast<size_t>(row * side + column) * channels + i % channels];
    }
    return b_.Const(Tensor::Of<float>({1, size.height, size.width, width}, sum), "positions");
  }

  Value* Pooled(Value* x) {
    x = b_.Make("max_pool", {{"x", Transposed(b_, x, {0, 3, 1, 2})},
                             {"kernel_sizes", Ints({kPool, kPool})},
                             {"strides", Ints({kPool, kPool})},
                             {"pad_type", "valid"}});
    return Transposed(b_, x, {0, 2, 3, 1});
  }

  Value* Block(const std::string& own, Value* x, size_t stage, int64_t window, bool pools) {
    b_.SetName(own.substr(0, own.size() - 1));
    const int64_t width = config_.widths[stage];
    if (pools && (SizeAlong(x, 1) % kPool != 0 || SizeAlong(x, 2) % kPool != 0))
      throw Error("bad-file", "stage {} cannot halve a map of {} x {} places", stage,
                  SizeAlong(x, 1), SizeAlong(x, 2));
    Value* y = layers_.LayerNorm(own + "attention_norm", x, config_.epsilon);
    if (SizeAlong(x, 3) != width) {
      x = Biased(layers_, own + "shortcut", y, width);
      if (pools) x = Pooled(x);
    }
    y = window > 0 ? Windows(b_, y, window) : y;
    y = Attended(own, y, width, config_.heads[stage], pools);
    if (window > 0) y = FromWindows(b_, y, {SizeAlong(x, 1), SizeAlong(x, 2)});
    x = Binary(b_, "add", x, y);
    y = layers_.LayerNorm(own + "norm", x, config_.epsilon);
    const auto inner = static_cast<int64_t>(static_cast<double>(width) * config_.feed_forward);
    y = Activate(b_, config_.activation, Biased(layers_, own + "up", y, inner));
    return Binary(b_, "add", x, Biased(layers_, own + "down", y, width));
  }

  // Attention between all places of maps; with `pools`, for maxima of the queries of 2 x 2 places.
  Value* Attended(const std::string& own, Value* x, int64_t width, int64_t heads, bool pools) {
    const int64_t count = SizeAlong(x, 0);
    const std::vector<Value*> made =
        Parts(b_, Biased(layers_, own + "qkv", x, 3 * width), {width, width, width}, 3);
    Value* queries = pools ? Pooled(made[0]) : made[0];
    auto split = [&](Value* map) {
      return Heads(b_, WithShape(b_, map, {count, SizeAlong(map, 1) * SizeAlong(map, 2), width}),
                   heads);
    };
    const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
    AttentionParts parts{
        .q = Binary(b_, "mul", split(queries), scale), .k = split(made[1]), .v = split(made[2])};
    Value* y = Biased(layers_, own + "attention", Joined(b_, Attend(b_, parts).y), width);
    return WithShape(b_, y, {count, SizeAlong(queries, 1), SizeAlong(queries, 2), width});
  }

  Builder& b_;
  Layers& layers_;
  const HieraConfig& config_;
};

}  // namespace

std::vector<Value*> HieraMaps(Builder& b, Layers& layers, const HieraConfig& config,
                              Value* pixels) {
  return Hiera(b, layers, config).Maps(pixels);
}

void CheckHiera(const HieraConfig& config) {
  for (auto [name, list] : {std::pair{"stages' depths", &config.depths},
                            {"stages' widths", &config.widths},
                            {"stages' heads", &config.heads},
                            {"stages' windows", &config.windows}}) {
    CheckPositive(name, *list);
    constexpr size_t kMaxStages = 16;
    if (list->empty() || list->size() != config.depths.size() || list->size() > kMaxStages)
      throw Error("bad-file", "there are {} {}, and {} depths", list->size(), name,
                  config.depths.size())
          .Expected("one for each stage, at most {} stages", kMaxStages);
  }
  CheckPositive({{"kernel of patches", config.kernel},
                 {"stride of patches", config.stride},
                 {"height of the table of positions", config.background.height},
                 {"width of the table of positions", config.background.width}});
  constexpr int64_t kMaxWindow = 128, kMaxSide = 1024;
  for (size_t i = 0; i < config.depths.size(); ++i) {
    if (config.depths[i] > kMaxLayers)
      throw Error("resource-limit", "a stage has {} blocks", config.depths[i])
          .Expected("at most {}", kMaxLayers);
    if (config.windows[i] > kMaxWindow)
      throw Error("resource-limit", "windows have {0} x {0} places", config.windows[i])
          .Expected("at most {0} x {0}", kMaxWindow);
    if (config.widths[i] % config.heads[i] != 0)
      throw Error("bad-file", "the width {} of stage {} is not a multiple of its {} heads",
                  config.widths[i], i, config.heads[i]);
    if (i > 0 && static_cast<int64_t>(i) <= config.pooled_stages &&
        config.windows[i - 1] % kPool != 0)
      throw Error("bad-file", "windows of {0} x {0} places cannot be halved",
                  config.windows[i - 1]);
    if (i > 0 && static_cast<int64_t>(i) <= config.pooled_stages &&
        config.widths[i] == config.widths[i - 1])
      throw Error("bad-file", "stage {} halves the map but has as many channels as the one before",
                  i);
  }
  if (config.background.height > kMaxSide || config.background.width > kMaxSide)
    throw Error("resource-limit", "the table of positions has {} x {} rows",
                config.background.height, config.background.width)
        .Expected("at most {0} x {0}", kMaxSide);
  if (config.kernel % 2 == 0)
    throw Error("bad-file", "patches have kernels of {0} x {0}", config.kernel)
        .Expected("an odd number");
  if (!(config.feed_forward > 0 && config.feed_forward <= 1024))
    throw Error("bad-file", "the ratio of feed-forward layers is {}", config.feed_forward)
        .Expected("more than 0, at most 1024");
}

}  // namespace mlc::networks
