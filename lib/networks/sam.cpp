#include "lib/networks/sam.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/ir/arithmetic.h"
#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/networks/picture_network.h"
#include "lib/ops/row.h"
#include "lib/support/edit_distance.h"

namespace mlc::networks {

namespace {

constexpr double kNeckEpsilon = 1e-6, kFinalEpsilon = 1e-5;
constexpr const char *kEmbeddings = "image_embeddings", *kScores = "iou_scores",
                     *kMasks = "pred_masks";

struct Decoded {
  Value *scores, *masks;
};

// The layers of one function.
class SamLayers {
 public:
  SamLayers(Builder& b, const NetworkWeights& weights, const SamConfig& config)
      : b_(b), layers_(b, weights), config_(config) {}

  // Returns embeddings [1, C, h, w] of pixels.
  Value* Encoded(Value* pixels) {
    b_.SetName("patches");
    Value* x = layers_.Convolution("patches", pixels, config_.layer.width,
                                   {.kernel = config_.patch,
                                    .stride = config_.patch,
                                    .padding = PictureWindow::Padding::kNone});
    x = Transposed(b_, x, {0, 2, 3, 1});
    const GridSize grid = Grid();
    if (config_.position_table)
      x = Binary(b_, "add", x,
                 layers_.Needed("positions", {1, grid.height, grid.width, config_.layer.width}));
    for (int64_t i = 0; i < config_.layers; ++i) {
      b_.SetName(fmt::format("layer_{}", i));
      const std::string own = fmt::format("layer.{}.", i);
      const bool global = std::ranges::count(config_.global, i) > 0 || config_.window == 0;
      Value* y = layers_.LayerNorm(own + "attention_norm", x, config_.layer.epsilon);
      x = Binary(b_, "add", x, global ? Attended(own, y) : InWindows(own, y));
      y = layers_.LayerNorm(own + "norm", x, config_.layer.epsilon);
      x = Binary(b_, "add", x, FeedForwardOf(b_, layers_, config_.layer, own, y));
    }
    b_.SetName("neck");
    x = layers_.Convolution("neck.0", Transposed(b_, x, {0, 3, 1, 2}), config_.channels, {});
    x = layers_.ChannelNorm("neck.norm.0", x, kNeckEpsilon);
    x = layers_.Convolution("neck.1", x, config_.channels, {.kernel = 3});
    return layers_.ChannelNorm("neck.norm.1", x, kNeckEpsilon);
  }

  // Returns what points [1, 1, P, 2] with labels [1, 1, P] show.
  Decoded Decode(Value* picture, Value* points, Value* labels) {
    const int64_t channels = config_.channels, masks = config_.masks + 1;
    b_.SetName("prompt");
    Value* prompt = Prompt(points, labels);
    b_.SetName("decoder");
    Value* own = Concat(b_,
                        {layers_.Needed("score_token", {1, channels}),
                         layers_.Needed("mask_tokens", {masks, channels})},
                        0);
    Value* tokens = Concat(b_, {Expanded(b_, own, {0}), prompt}, 1);
    picture = Binary(b_, "add", picture,
                     WithShape(b_, layers_.Needed("no_mask", {1, channels}), {1, channels, 1, 1}));
    picture = Transposed(b_, WithShape(b_, picture, {1, channels, -1}), {0, 2, 1});
    Value *places = Places(), *x = tokens;
    auto add = [&](Value* a, Value* b) { return Binary(b_, "add", a, b); };
    for (int64_t i = 0; i < config_.decoder_layers; ++i) {
      const std::string block = fmt::format("block.{}.", i);
      auto normed = [&](int number, Value* y) {
        return layers_.LayerNorm(fmt::format("{}norm.{}", block, number), y,
                                 config_.decoder_epsilon);
      };
      // The tokens are their own positions, which the first layer does not add to them.
      Value* q = i == 0 ? x : add(x, tokens);
      Value* y = Attention(block + "self", q, q, x, 1);
      x = normed(0, i == 0 ? y : add(x, y));
      y = Attention(block + "to_picture", add(x, tokens), add(picture, places), picture,
                    config_.reduction);
      x = normed(1, add(x, y));
      y = Biased(layers_, block + "up", x, config_.decoder_feed_forward);
      y = Biased(layers_, block + "down", Activate(b_, config_.activation, y), channels);
      x = normed(2, add(x, y));
      y = Attention(block + "to_prompt", add(picture, places), add(x, tokens), x,
                    config_.reduction);
      picture = normed(3, add(picture, y));
    }
    Value* y = Attention("final", add(x, tokens), add(picture, places), picture, config_.reduction);
    x = layers_.LayerNorm("final.norm", add(x, y), kFinalEpsilon);
    b_.SetName("masks");
    const GridSize grid = Grid();
    Value* map =
        WithShape(b_, Transposed(b_, picture, {0, 2, 1}), {1, channels, grid.height, grid.width});
    map = Upscaled("upscale.0", map, channels / 4);
    map = Activate(b_, Activation::kGelu, layers_.ChannelNorm("upscale.norm", map, kNeckEpsilon));
    map = Activate(b_, Activation::kGelu, Upscaled("upscale.1", map, channels / 8));
    const int64_t height = Height(map), width = Width(map);
    std::vector<Value*> weights;
    for (int64_t i = 1; i < masks; ++i)
      weights.push_back(Perceptron(fmt::format("mask.{}.", i), Element(b_, x, i + 1, 1), channels,
                                   channels / 8, 3));
    Value* made = b_.Make("matmul", {{"x", b_.Make("stack", {{"values", weights}, {"axis", 1}})},
                                     {"y", WithShape(b_, map, {1, channels / 8, -1})}});
    made = WithShape(b_, made, {1, 1, config_.masks, height, width});
    b_.SetName("scores");
    y = Perceptron("score.", Element(b_, x, 0, 1), config_.score_width, masks,
                   config_.score_layers);
    y = SliceAlong(b_, y, 1, 1, masks, false);
    return {WithShape(b_, y, {1, 1, config_.masks}), made};
  }

 private:
  GridSize Grid() const {
    const GridSize size = config_.picture.size;
    return {size.height / config_.patch, size.width / config_.patch};
  }

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

  // Attention within windows; zeros fill those at the bottom and at the right.
  Value* InWindows(const std::string& own, Value* x) {
    const GridSize grid = Grid();
    const int64_t size = config_.window, down = (grid.height + size - 1) / size,
                  across = (grid.width + size - 1) / size, width = config_.layer.width;
    if (down * size > grid.height || across * size > grid.width)
      x = b_.Make(
          "pad",
          {{"x", x},
           {"pad", Ints({0, 0, 0, down * size - grid.height, 0, across * size - grid.width, 0, 0})},
           {"mode", "constant"},
           {"constant_val", 0.0}});
    x = Transposed(b_, WithShape(b_, x, {down, size, across, size, width}), {0, 2, 1, 3, 4});
    x = Attended(own, WithShape(b_, x, {down * across, size, size, width}));
    x = Transposed(b_, WithShape(b_, x, {down, across, size, size, width}), {0, 2, 1, 3, 4});
    x = WithShape(b_, x, {1, down * size, across * size, width});
    if (down * size == grid.height && across * size == grid.width) return x;
    return SliceOfSize(b_, x, {0, 0, 0, 0}, {1, grid.height, grid.width, width});
  }

  // Sine and cosine of random projections of x and y, both from 0 to 1 (Tancik et al. 2020).
  Value* Positioned(Value* xy, int axis) {
    Value* angles = Binary(b_, "sub", Binary(b_, "mul", xy, 2.0), 1.0);
    angles = b_.Make("matmul",
                     {{"x", angles}, {"y", layers_.Needed("frequencies", {2, config_.features})}});
    angles = Binary(b_, "mul", angles, 2 * std::numbers::pi);
    return Concat(b_, {b_.Make("sin", {{"x", angles}}), b_.Make("cos", {{"x", angles}})}, axis);
  }

  Value* Places() {
    const GridSize grid = Grid();
    std::vector<float> centres;
    for (int64_t y = 0; y < grid.height; ++y)
      for (int64_t x = 0; x < grid.width; ++x)
        for (auto [place, count] : {std::pair{x, grid.width}, {y, grid.height}})
          centres.push_back((static_cast<float>(place) + 0.5F) / static_cast<float>(count));
    return Positioned(b_.Const(Tensor::Of<float>({1, grid.count(), 2}, centres)), 2);
  }

  // Returns a token for each point, and one for the absence of a box [1, P + 1, C].
  Value* Prompt(Value* points, Value* labels) {
    const GridSize size = config_.picture.size;
    const int64_t channels = config_.channels;
    points = Squeezed(b_, points, {1});
    labels = Expanded(b_, Squeezed(b_, labels, {1}), {2});
    const Tensor sides =
        Tensor::Of<float>({2}, {static_cast<float>(size.width), static_cast<float>(size.height)});
    Value* x = Positioned(
        Binary(b_, "real_div", Binary(b_, "add", points, 0.5), b_.Const(sides, "sides")), 2);
    auto has = [&](int32_t label) { return Binary(b_, "equal", labels, label); };
    Value* none = layers_.Needed("no_point", {1, channels});
    // The label -10 stands for points that fill a batch.
    x = Select(b_, has(-1), Expanded(b_, none, {0}), x);
    x = Select(b_, has(-10), Tensor::Full(DType::kFp32, {1, 1, 1}, 0), x);
    for (int32_t label : {0, 1}) {
      Value* shown =
          Expanded(b_, layers_.Needed(fmt::format("point.{}", label), {1, channels}), {0});
      x = Select(b_, has(label), Binary(b_, "add", x, shown), x);
    }
    return Concat(b_, {x, Expanded(b_, none, {0})}, 1);
  }

  Value* Attention(const std::string& name, Value* q, Value* k, Value* v, int64_t reduction) {
    const int64_t inner = config_.channels / reduction, heads = config_.decoder_heads;
    auto split = [&](const char* part, Value* x) {
      return Heads(b_, Biased(layers_, name + part, x, inner), heads);
    };
    const double scale = 1 / std::sqrt(static_cast<double>(inner / heads));
    AttentionParts parts{.q = Binary(b_, "mul", split(".query", q), scale),
                         .k = split(".key", k),
                         .v = split(".value", v)};
    return Biased(layers_, name + ".output", Joined(b_, Attend(b_, parts).y), config_.channels);
  }

  Value* Upscaled(const std::string& name, Value* x, int64_t out) {
    return b_.Make("conv_transpose",
                   {{"x", x},
                    {"weight", layers_.Needed(name + ".weight", {Channels(x), out, 2, 2})},
                    {"bias", layers_.Needed(name + ".bias", {out})},
                    {"strides", Ints({2, 2})},
                    {"pad_type", "valid"}});
  }

  Value* Perceptron(const std::string& name, Value* x, int64_t inner, int64_t out, int64_t count) {
    for (int64_t i = 0; i + 1 < count; ++i)
      x = Activate(b_, Activation::kRelu, Biased(layers_, fmt::format("{}{}", name, i), x, inner));
    return Biased(layers_, fmt::format("{}{}", name, count - 1), x, out);
  }

  Builder& b_;
  Layers layers_;
  const SamConfig& config_;
};

Value* AddArray(Function& function, const char* name, DType dtype, const Shape& shape) {
  Value* value = function.AddInput(name, Type::Tensor(dtype, shape));
  function.inputs.push_back(
      {.name = value->name, .source_name = name, .source_dtype = dtype, .source_shape = shape});
  return value;
}

struct Prompts {
  Value *points, *labels;
};
Prompts AddPrompts(Function& function, const Symbol& sizes) {
  const Dim count =
      sizes.low == sizes.high ? Dim(sizes.low) : Dim::Symbol(function.FreshSymbol("points", sizes));
  return {AddArray(function, "input_points", DType::kFp32, {1, 1, count, 2}),
          AddArray(function, "input_labels", DType::kInt32, {1, 1, count})};
}

void SetOutputs(Function& function, const std::vector<std::pair<const char*, Value*>>& outputs) {
  std::vector<Value*> values;
  for (auto [name, value] : outputs) {
    AddOutput(function, value, name);
    values.push_back(value);
  }
  function.body.SetOutputs(values);
}

void CheckSam(const SamConfig& config) {
  CheckLayer(config.layer);
  CheckPositive({{"number of layers", config.layers},
                 {"size of a patch", config.patch},
                 {"number of channels", config.channels},
                 {"number of frequencies", config.features},
                 {"number of decoder layers", config.decoder_layers},
                 {"number of decoder heads", config.decoder_heads},
                 {"width of the decoder's feed-forward layers", config.decoder_feed_forward},
                 {"reduction of the decoder's attention", config.reduction},
                 {"number of masks", config.masks},
                 {"number of layers for scores", config.score_layers},
                 {"width of layers for scores", config.score_width},
                 {"height of a picture", config.picture.size.height},
                 {"width of a picture", config.picture.size.width},
                 {"number of channels of a picture", config.picture.channels}});
  for (auto [name, number] : {std::pair{"layers", config.layers},
                              {"decoder layers", config.decoder_layers},
                              {"masks", config.masks},
                              {"layers for scores", config.score_layers}})
    if (number > kMaxLayers)
      throw Error("resource-limit", "the model has {} {}", number, name)
          .Expected("at most {}", kMaxLayers);
  constexpr int64_t kMaxSide = 1 << 13, kMaxTokens = 1 << 14, kMaxWindow = 128;
  const GridSize size = config.picture.size;
  if (size.height > kMaxSide || size.width > kMaxSide)
    throw Error("resource-limit", "pictures have {} x {} pixels", size.height, size.width)
        .Expected("at most {0} x {0}", kMaxSide);
  if (size.height % config.patch != 0 || size.width % config.patch != 0)
    throw Error("bad-file", "pictures of {} x {} pixels do not consist of patches of {} x {}",
                size.height, size.width, config.patch, config.patch);
  if (const int64_t count = size.height / config.patch * (size.width / config.patch);
      count > kMaxTokens)
    throw Error("resource-limit", "a picture has {} patches", count)
        .Expected("at most {}", kMaxTokens);
  if (config.window < 0 || config.window > kMaxWindow)
    throw Error("bad-file", "windows have {} x {} patches", config.window, config.window)
        .Expected("0 (the whole picture) to {}", kMaxWindow);
  if (config.tower_only) return;
  if (2 * config.features != config.channels)
    throw Error("bad-file", "{} frequencies make positions for {} channels", config.features,
                config.channels)
        .Expected("half as many frequencies as channels");
  if (config.channels % 8 != 0 || config.channels % config.reduction != 0 ||
      config.channels / config.reduction % config.decoder_heads != 0)
    throw Error("bad-file", "{} channels are reduced by {} and divided into {} heads",
                config.channels, config.reduction, config.decoder_heads)
        .Expected("numbers that divide the channels");
}

}  // namespace

Program BuildSam(const SamConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics) {
  CheckSam(config);
  std::vector<std::string> wanted = config.outputs;
  const std::vector<std::string> known =
      config.tower_only ? std::vector<std::string>{"last_hidden_state"}
                        : std::vector<std::string>{kScores, kMasks, kEmbeddings};
  if (wanted.empty())
    wanted = config.tower_only ? known : std::vector<std::string>{kScores, kMasks};
  for (const std::string& name : wanted)
    if (std::ranges::count(known, name) == 0)
      throw Error("bad-name", "option 'outputs' {}: the model has no output with this name{}", name,
                  DidYouMean(known, name));
  Program program(&Ops());
  auto add = [&](const char* name, auto&& build) {
    Function& function = *program.Add(name);
    function.opset = Opset::kIos18;
    Builder b(function.body, diagnostics);
    SamLayers layers(b, weights, config);
    build(function, b, layers);
  };
  add("main", [&](Function& function, Builder& b, SamLayers& layers) {
    std::vector<std::pair<const char*, Value*>> outputs;
    Value* embeddings = layers.Encoded(AddPictureInput(b, function, config.picture));
    Decoded made{};
    if (!config.tower_only && wanted != std::vector<std::string>{kEmbeddings}) {
      const auto [points, labels] = AddPrompts(function, config.points);
      made = layers.Decode(embeddings, points, labels);
    }
    for (const std::string& name : wanted)
      outputs.emplace_back(name.c_str(), name == kScores  ? made.scores
                                         : name == kMasks ? made.masks
                                                          : embeddings);
    SetOutputs(function, outputs);
  });
  if (config.tower_only || !config.outputs.empty()) return program;
  add("encode", [&](Function& function, Builder& b, SamLayers& layers) {
    Value* pixels = AddPictureInput(b, function, config.picture);
    SetOutputs(function, {{kEmbeddings, layers.Encoded(pixels)}});
  });
  add("decode", [&](Function& function, Builder&, SamLayers& layers) {
    const GridSize size = config.picture.size;
    Value* embeddings =
        AddArray(function, kEmbeddings, DType::kFp32,
                 {1, config.channels, size.height / config.patch, size.width / config.patch});
    const auto [points, labels] = AddPrompts(function, config.points);
    const Decoded made = layers.Decode(embeddings, points, labels);
    SetOutputs(function, {{kScores, made.scores}, {kMasks, made.masks}});
  });
  return program;
}

}  // namespace mlc::networks
