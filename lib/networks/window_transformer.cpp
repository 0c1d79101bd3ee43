#include "lib/networks/window_transformer.h"

#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/networks/transformer_layer.h"
#include "lib/networks/windows.h"

namespace mlc::networks {

namespace {

// Score between pixels of a shifted window that are not neighbours (microsoft/Swin-Transformer,
// models/swin_transformer.py).
constexpr double kApart = -100;
// Lower bound of the length of queries and keys, of which padding has 0: the smallest normal number
// of fp16.
constexpr double kLeastLength = 0x1p-14;

class WindowTransformer {
 public:
  WindowTransformer(Builder& b, Layers& layers, const WindowTransformerConfig& config)
      : config_(config), b_(b), layers_(layers) {}

  Value* Tokens(Value* pixels) {
    Value* x = Patches(pixels);  // [1, H, W, C]
    for (size_t stage = 0; stage < config_.depths.size(); ++stage) {
      const std::string name = fmt::format("stage.{}.", stage);
      for (int64_t i = 0; i < config_.depths[stage]; ++i)
        x = Block(fmt::format("{}block.{}.", name, i), x, stage, i % 2 == 1);
      if (stage + 1 < config_.depths.size()) x = Merged(name + "merge", x);
    }
    b_.SetName("head");
    x = WithShape(b_, x, {1, Rows(x) * Columns(x), Width(x)});
    return config_.final_norm ? layers_.LayerNorm("norm", x, config_.epsilon) : x;
  }

 private:
  static int64_t Rows(const Value* x) { return SizeAlong(x, 1); }
  static int64_t Columns(const Value* x) { return SizeAlong(x, 2); }
  static int64_t Width(const Value* x) { return SizeAlong(x, 3); }

  // Adds zeros at the bottom and at the right up to multiples of the sizes.
  Value* Padded(Value* x, int64_t axis, int64_t multiple) {
    const auto first = static_cast<size_t>(axis);
    const int64_t below = (multiple - SizeAlong(x, first) % multiple) % multiple,
                  right = (multiple - SizeAlong(x, first + 1) % multiple) % multiple;
    if (below == 0 && right == 0) return x;
    std::vector<int64_t> pad(8, 0);
    pad[2 * first + 1] = below, pad[2 * first + 3] = right;
    return b_.Make("pad",
                   {{"x", x}, {"pad", Ints(pad)}, {"mode", "constant"}, {"constant_val", 0.0}});
  }

  Value* Patches(Value* pixels) {
    b_.SetName("patches");
    Value* x = Padded(pixels, 2, config_.patch);
    x = layers_.Convolution("patches", x, config_.width,
                            {.kernel = config_.patch,
                             .stride = config_.patch,
                             .padding = PictureWindow::Padding::kNone});
    return layers_.LayerNorm("patches.norm", Transposed(b_, x, {0, 2, 3, 1}), config_.map_epsilon);
  }

  // Joins 2 x 2 neighbours.
  Value* Merged(const std::string& name, Value* x) {
    b_.SetName(name);
    x = Padded(x, 1, 2);
    const int64_t rows = Rows(x) / 2, columns = Columns(x) / 2, width = Width(x);
    x = WithShape(b_, x, {rows, 2, columns, 2, width});
    x = WithShape(b_, Transposed(b_, x, {0, 2, 3, 1, 4}), {1, rows, columns, 4 * width});
    if (!config_.second) x = layers_.LayerNorm(name + ".norm", x, config_.map_epsilon);
    x = layers_.Linear(name, x, 2 * width);
    return config_.second ? layers_.LayerNorm(name + ".norm", x, config_.map_epsilon) : x;
  }

  struct WindowShape {
    int64_t size, shift;
  };
  WindowShape WindowsOf(const Value* x, size_t stage, bool shifted) const {
    int64_t least = std::min(Rows(x), Columns(x));
    if (config_.trained.height > 0)
      least = (std::min(config_.trained.height, config_.trained.width) / config_.patch) >> stage;
    if (least <= config_.window) return {std::max<int64_t>(least, 1), 0};
    return {config_.window, shifted ? config_.window / 2 : 0};
  }

  Value* Block(const std::string& name, Value* x, size_t stage, bool shifted) {
    b_.SetName(name.substr(0, name.size() - 1));
    const int64_t width = Width(x);
    Value* y = config_.second ? x : layers_.LayerNorm(name + "norm", x, config_.epsilon);
    y = Attention(name + "attention", y, stage, WindowsOf(x, stage, shifted));
    if (config_.second) y = layers_.LayerNorm(name + "norm", y, config_.epsilon);
    x = Binary(b_, "add", x, y);
    y = config_.second ? x : layers_.LayerNorm(name + "second_norm", x, config_.epsilon);
    const auto inner = static_cast<int64_t>(static_cast<double>(width) * config_.feed_forward);
    y = Activate(b_, config_.activation, layers_.Linear(name + "up", y, inner));
    y = layers_.Linear(name + "down", y, width);
    if (config_.second) y = layers_.LayerNorm(name + "second_norm", y, config_.epsilon);
    return Binary(b_, "add", x, y);
  }

  // Rotates dimension `axis`: element `by` becomes the first one.
  Value* Rolled(Value* x, int64_t axis, int64_t by) {
    const int64_t size = SizeAlong(x, static_cast<size_t>(axis));
    return Concat(b_,
                  {SliceAlong(b_, x, axis, by, size, false), SliceAlong(b_, x, axis, 0, by, false)},
                  axis);
  }

  Value* Shifted(Value* x, int64_t by) { return by > 0 ? Rolled(Rolled(x, 1, by), 2, by) : x; }
  Value* Unshifted(Value* x, int64_t by) {
    return by > 0 ? Rolled(Rolled(x, 1, Rows(x) - by), 2, Columns(x) - by) : x;
  }

  Value* Attention(const std::string& name, Value* x, size_t stage, WindowShape windows) {
    const int64_t height = Rows(x), columns = Columns(x), width = Width(x), size = windows.size;
    if (config_.shift_first) x = Shifted(x, windows.shift);
    x = Padded(x, 1, size);
    const int64_t padded_height = Rows(x), padded_columns = Columns(x);
    const int64_t down = padded_height / size, across = padded_columns / size;
    if (!config_.shift_first) x = Shifted(x, windows.shift);
    x = WithShape(b_, Windows(b_, x, size), {down * across, size * size, width});
    x = InWindows(name, x, stage, windows, down, across);
    x = FromWindows(b_, WithShape(b_, x, {down * across, size, size, width}),
                    {padded_height, padded_columns});
    if (!config_.shift_first) x = Unshifted(x, windows.shift);
    if (padded_height != height || padded_columns != columns)
      x = SliceOfSize(b_, x, {0, 0, 0, 0}, {1, height, columns, width});
    return config_.shift_first ? Unshifted(x, windows.shift) : x;
  }

  // Attention in each of the windows x [windows, size^2, C].
  Value* InWindows(const std::string& name, Value* x, size_t stage, WindowShape windows,
                   int64_t down, int64_t across) {
    const int64_t width = x->type.shape[2].constant(), heads = config_.heads[stage];
    const TransformerLayer layer{
        .width = width, .query_bias = false, .key_bias = false, .value_bias = false};
    const Projections made = Projected(b_, layers_, layer, name + ".", x);
    Value *q = Heads(b_, made.query, heads), *k = Heads(b_, made.key, heads),
          *v = Heads(b_, made.value, heads);
    if (config_.second) {
      Value* scale = layers_.Needed(name + ".scale", {heads, 1, 1});
      scale = b_.Make("exp", {{"x", Binary(b_, "minimum", scale, std::log(100.0))}});
      q = Binary(b_, "mul", OfUnitLength(q), scale);
      k = OfUnitLength(k);
    } else {
      q = Binary(b_, "mul", q, 1 / std::sqrt(static_cast<double>(width / heads)));
    }
    AttentionParts parts{.q = q, .k = k, .v = v};
    parts.biases = {Biases(name, stage, windows.size)};
    if (windows.shift > 0) parts.biases.push_back(Mask(windows, down, across));
    return layers_.Linear(name + ".output", Joined(b_, Attend(b_, parts).y), width);
  }

  Value* OfUnitLength(Value* x) {
    Value* length = Reduced(b_, "reduce_l2_norm", x, {-1}, true);
    return Binary(b_, "real_div", x, Binary(b_, "maximum", length, kLeastLength));
  }

  // Returns the biases of scores [1, heads, size^2, size^2] by relative positions.
  Value* Biases(const std::string& name, size_t stage, int64_t size) {
    const int64_t span = 2 * size - 1, heads = config_.heads[stage];
    Value* table = config_.second ? DistanceBiases(name, stage, size)
                                  : layers_.Needed(name + ".biases", {span * span, heads});
    const int64_t pixels = size * size;
    std::vector<int32_t> rows;
    rows.reserve(static_cast<size_t>(pixels * pixels));
    for (int64_t q = 0; q < pixels; ++q)
      for (int64_t k = 0; k < pixels; ++k)
        rows.push_back(static_cast<int32_t>((q / size - k / size + size - 1) * span + q % size -
                                            k % size + size - 1));
    Value* biases = mlc::Rows(b_, table, b_.Const(Tensor::Of<int32_t>({pixels, pixels}, rows)));
    return Expanded(b_, Transposed(b_, biases, {2, 0, 1}), {0});
  }

  // Returns the biases that a network computes from distances on a logarithmic scale (Swin V2,
  // section 3.3) [(2 size - 1)^2, heads].
  Value* DistanceBiases(const std::string& name, size_t stage, int64_t size) {
    const int64_t pretrained =
        stage < config_.pretrained_windows.size() ? config_.pretrained_windows[stage] : 0;
    const auto reach =
        static_cast<double>(std::max<int64_t>(pretrained > 0 ? pretrained - 1 : size - 1, 1));
    auto scaled = [&](int64_t distance) {
      const double x = static_cast<double>(distance) / reach * 8;
      return static_cast<float>(std::copysign(std::log2(std::abs(x) + 1) / 3, x));
    };
    const int64_t span = 2 * size - 1;
    std::vector<float> distances;
    for (int64_t y = 0; y < span; ++y)
      for (int64_t x = 0; x < span; ++x) {
        distances.push_back(scaled(y - size + 1));
        distances.push_back(scaled(x - size + 1));
      }
    constexpr int64_t kInner = 512;
    Value* x = b_.Const(Tensor::Of<float>({span * span, 2}, distances));
    x = Activate(b_, Activation::kRelu, layers_.Linear(name + ".distance.0", x, kInner));
    x = layers_.Linear(name + ".distance.1", x, config_.heads[stage]);
    return Binary(b_, "mul", b_.Make("sigmoid", {{"x", x}}), 16.0);
  }

  // Returns scores that keep apart what a shifted window takes from opposite ends of the map
  // [windows, 1, size^2, size^2].
  Value* Mask(WindowShape windows, int64_t down, int64_t across) {
    const int64_t size = windows.size, pixels = size * size;
    auto region = [&](int64_t at, int64_t count) {
      return at < count - size ? 0 : at < count - windows.shift ? 1 : 2;
    };
    const auto apart = static_cast<float>(config_.mask_twice ? 2 * kApart : kApart);
    std::vector<float> mask;
    mask.reserve(static_cast<size_t>(down * across * pixels * pixels));
    std::vector<int64_t> regions(static_cast<size_t>(pixels));
    for (int64_t window = 0; window < down * across; ++window) {
      for (int64_t i = 0; i < pixels; ++i)
        regions[static_cast<size_t>(i)] =
            3 * region(window / across * size + i / size, down * size) +
            region(window % across * size + i % size, across * size);
      for (int64_t q : regions)
        for (int64_t k : regions) mask.push_back(q == k ? 0 : apart);
    }
    return b_.Const(Tensor::Of<float>({down * across, 1, pixels, pixels}, mask), "mask");
  }

  const WindowTransformerConfig& config_;
  Builder& b_;
  Layers& layers_;
};

void CheckNumbers(const WindowTransformerConfig& config) {
  CheckPositive("stages' depths", config.depths);
  CheckPositive("stages' heads", config.heads);
  CheckPositive({{"size of a patch", config.patch},
                 {"width of the first stage", config.width},
                 {"size of a window", config.window}});
  constexpr size_t kMaxStages = 16;
  constexpr int64_t kMaxWindow = 64;
  if (config.depths.size() > kMaxStages || config.heads.size() != config.depths.size())
    throw Error("bad-file", "{} stages have depths, but {} have heads", config.depths.size(),
                config.heads.size())
        .Expected("at most {} stages", kMaxStages);
  if (config.window > kMaxWindow)
    throw Error("resource-limit", "windows have {} x {} pixels", config.window, config.window)
        .Expected("at most {} x {}", kMaxWindow, kMaxWindow);
  if (!(config.feed_forward > 0 && config.feed_forward <= 1024))
    throw Error("bad-file", "the ratio of feed-forward layers is {}", config.feed_forward)
        .Expected("more than 0, at most 1024");
  for (size_t i = 0; i < config.heads.size(); ++i)
    if ((config.width << i) % config.heads[i] != 0)
      throw Error("bad-file",
                  "the width {} of stage {} is not a multiple of the number of heads ({})",
                  config.width << i, i, config.heads[i]);
  if (config.trained.height != 0)
    CheckPositive({{"height of a picture in training", config.trained.height},
                   {"width of a picture in training", config.trained.width}});
  // Masks have one number per pixel and pixel of its window.
  const double pixels = static_cast<double>(config.picture.size.height) *
                        static_cast<double>(config.picture.size.width) /
                        static_cast<double>(config.patch * config.patch);
  constexpr double kMaxScores = 1 << 27;
  if (pixels * static_cast<double>(config.window * config.window) > kMaxScores)
    throw Error("resource-limit", "pictures have {} x {} pixels, and windows {} x {}",
                config.picture.size.height, config.picture.size.width, config.window, config.window)
        .Expected("at most {:.0f} scores", kMaxScores);
}

}  // namespace

Program BuildWindowTransformer(const WindowTransformerConfig& config, const NetworkWeights& weights,
                               Diagnostics& diagnostics) {
  CheckNumbers(config);
  PictureNetwork net(weights, config.picture, diagnostics);
  Value* x = WindowTransformer(net.b(), net.layers(), config).Tokens(net.pixels());
  Value* mean = Reduced(net.b(), "reduce_mean", x, {1}, false);
  if (config.labels > 0) {
    net.Output("logits", net.layers().Linear("classifier", mean, config.labels));
  } else {
    net.Output("last_hidden_state", x);
    net.Output("pooler_output", mean);
  }
  return net.Finish();
}

Value* WindowTokens(Builder& b, Layers& layers, const WindowTransformerConfig& config,
                    Value* pixels) {
  CheckNumbers(config);
  return WindowTransformer(b, layers, config).Tokens(pixels);
}

}  // namespace mlc::networks
