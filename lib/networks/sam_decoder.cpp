#include "lib/networks/sam_decoder.h"

#include <cmath>
#include <numbers>

#include "lib/ir/arithmetic.h"
#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/networks/picture_network.h"
#include "lib/networks/transformer_layer.h"

namespace mlc::networks {

namespace {

constexpr double kMapEpsilon = 1e-6, kFinalEpsilon = 1e-5;
constexpr int64_t kMaskLayers = 3;

class SamDecoder {
 public:
  SamDecoder(Builder& b, Layers& layers, const SamDecoderConfig& config)
      : b_(b), layers_(layers), config_(config) {}

  SamMasks Decode(const std::vector<Value*>& maps, const SamPrompt& prompt) {
    const int64_t channels = config_.channels, masks = config_.masks + 1;
    Value* picture = maps.back();
    const GridSize grid{Height(picture), Width(picture)};
    b_.SetName("prompt");
    Value* shown = Prompt(prompt);
    b_.SetName("decoder");
    std::vector<Value*> own = {layers_.Needed("score_token", {1, channels}),
                               layers_.Needed("mask_tokens", {masks, channels})};
    if (config_.second) own.insert(own.begin(), layers_.Needed("object_token", {1, channels}));
    const int64_t score = config_.second ? 1 : 0;  // of the tokens
    Value* tokens = Concat(b_, {Expanded(b_, Concat(b_, own, 0), {0}), shown}, 1);
    picture = Binary(b_, "add", picture,
                     WithShape(b_, layers_.Needed("no_mask", {1, channels}), {1, channels, 1, 1}));
    picture = Transposed(b_, WithShape(b_, picture, {1, channels, -1}), {0, 2, 1});
    Value *places = Places(grid), *x = tokens;
    auto add = [&](Value* a, Value* b) { return Binary(b_, "add", a, b); };
    for (int64_t i = 0; i < config_.layers; ++i) {
      const std::string block = fmt::format("block.{}.", i);
      auto normed = [&](int number, Value* y) {
        return layers_.LayerNorm(fmt::format("{}norm.{}", block, number), y, config_.epsilon);
      };
      // The tokens are their own positions, which the first layer does not add to them.
      Value* q = i == 0 ? x : add(x, tokens);
      Value* y = Attention(block + "self", q, q, x, 1);
      x = normed(0, i == 0 ? y : add(x, y));
      y = Attention(block + "to_picture", add(x, tokens), add(picture, places), picture,
                    config_.reduction);
      x = normed(1, add(x, y));
      y = Biased(layers_, block + "up", x, config_.feed_forward);
      y = Biased(layers_, block + "down", Activate(b_, config_.activation, y), channels);
      x = normed(2, add(x, y));
      y = Attention(block + "to_prompt", add(picture, places), add(x, tokens), x,
                    config_.reduction);
      picture = normed(3, add(picture, y));
    }
    Value* y = Attention("final", add(x, tokens), add(picture, places), picture, config_.reduction);
    x = layers_.LayerNorm("final.norm", add(x, y), kFinalEpsilon);

    b_.SetName("masks");
    Value* map =
        WithShape(b_, Transposed(b_, picture, {0, 2, 1}), {1, channels, grid.height, grid.width});
    map = Upscaled("upscale.0", map, channels / 4);
    if (config_.second) map = add(map, maps[1]);
    map = Activate(b_, Activation::kGelu, layers_.ChannelNorm("upscale.norm", map, kMapEpsilon));
    map = Upscaled("upscale.1", map, channels / 8);
    if (config_.second) map = add(map, maps[0]);
    map = Activate(b_, Activation::kGelu, map);
    const int64_t height = Height(map), width = Width(map);
    std::vector<Value*> weights;
    for (int64_t i = 1; i < masks; ++i)
      weights.push_back(Perceptron(fmt::format("mask.{}.", i), Element(b_, x, score + 1 + i, 1),
                                   channels, channels / 8, kMaskLayers));
    Value* made = b_.Make("matmul", {{"x", b_.Make("stack", {{"values", weights}, {"axis", 1}})},
                                     {"y", WithShape(b_, map, {1, channels / 8, -1})}});
    made = WithShape(b_, made, {1, 1, config_.masks, height, width});
    b_.SetName("scores");
    y = Perceptron("score.", Element(b_, x, score, 1), config_.score_width, masks,
                   config_.score_layers);
    y = SliceAlong(b_, y, 1, 1, masks, false);
    SamMasks result{WithShape(b_, y, {1, 1, config_.masks}), made};
    if (!config_.second) return result;
    result.scores = b_.Make("sigmoid", {{"x", result.scores}});
    b_.SetName("object");
    y = Perceptron("object.", Element(b_, x, 0, 1), channels, 1, kMaskLayers);
    result.object = WithShape(b_, y, {1, 1, 1});
    return result;
  }

 private:
  // Sine and cosine of random projections of x and y, both from 0 to 1 (Tancik et al. 2020).
  Value* Positioned(Value* xy, int axis) {
    Value* angles = Binary(b_, "sub", Binary(b_, "mul", xy, 2.0), 1.0);
    angles = b_.Make("matmul",
                     {{"x", angles}, {"y", layers_.Needed("frequencies", {2, config_.features})}});
    angles = Binary(b_, "mul", angles, 2 * std::numbers::pi);
    return Concat(b_, {b_.Make("sin", {{"x", angles}}), b_.Make("cos", {{"x", angles}})}, axis);
  }

  Value* Places(GridSize grid) {
    std::vector<float> centres;
    for (int64_t y = 0; y < grid.height; ++y)
      for (int64_t x = 0; x < grid.width; ++x)
        for (auto [place, count] : {std::pair{x, grid.width}, {y, grid.height}})
          centres.push_back((static_cast<float>(place) + 0.5F) / static_cast<float>(count));
    return Positioned(b_.Const(Tensor::Of<float>({1, grid.count(), 2}, centres)), 2);
  }

  // Positions of the centres of pixels [1, P, 2].
  Value* OfPixels(Value* xy) {
    const GridSize size = config_.picture;
    const Tensor sides =
        Tensor::Of<float>({2}, {static_cast<float>(size.width), static_cast<float>(size.height)});
    return Positioned(Binary(b_, "real_div", Binary(b_, "add", xy, 0.5), b_.Const(sides, "sides")),
                      2);
  }

  // Returns what a kind of point shows [1, 1, C]: 0 the background, 1 the object, 2 and 3 the corners of
  // a box.
  Value* Kind(int64_t kind) {
    const int64_t channels = config_.channels;
    Value* shown = layers_.Has("points.weight")
                       ? SliceAlong(b_, layers_.Needed("points.weight", {4, channels}), 0, kind,
                                    kind + 1, false)
                       : layers_.Needed(fmt::format("point.{}", kind), {1, channels});
    return Expanded(b_, shown, {0});
  }

  // Returns tokens [1, T, C].
  Value* Prompt(const SamPrompt& prompt) {
    Value* none = Expanded(b_, layers_.Needed("no_point", {1, config_.channels}), {0});
    std::vector<Value*> tokens;
    if (prompt.points) tokens.push_back(Points(prompt, none));
    if (prompt.boxes) {
      Value* corners = OfPixels(WithShape(b_, prompt.boxes, {1, 2, 2}));
      tokens.push_back(Binary(b_, "add", corners, Concat(b_, {Kind(2), Kind(3)}, 1)));
    }
    // It stands for the absence of a box; the second version has it behind a box, too.
    if (!prompt.boxes || config_.second) tokens.push_back(none);
    return tokens.size() == 1 ? tokens[0] : Concat(b_, tokens, 1);
  }

  Value* Points(const SamPrompt& prompt, Value* none) {
    Value* labels = Expanded(b_, Squeezed(b_, prompt.labels, {1}), {2});
    Value* x = OfPixels(Squeezed(b_, prompt.points, {1}));
    auto has = [&](int32_t label) { return Binary(b_, "equal", labels, label); };
    x = Select(b_, has(-1), none, x);
    // The label -10 stands for points that fill a batch.
    x = Select(b_, has(-10), Tensor::Full(DType::kFp32, {1, 1, 1}, 0), x);
    for (int32_t label : {0, 1}) x = Select(b_, has(label), Binary(b_, "add", x, Kind(label)), x);
    return x;
  }

  Value* Attention(const std::string& name, Value* q, Value* k, Value* v, int64_t reduction) {
    const int64_t inner = config_.channels / reduction, heads = config_.heads;
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
  Layers& layers_;
  const SamDecoderConfig& config_;
};

}  // namespace

SamMasks DecodeMasks(Builder& b, Layers& layers, const SamDecoderConfig& config,
                     const std::vector<Value*>& maps, const SamPrompt& prompt) {
  return SamDecoder(b, layers, config).Decode(maps, prompt);
}

void CheckSamDecoder(const SamDecoderConfig& config) {
  CheckPositive({{"number of channels", config.channels},
                 {"number of frequencies", config.features},
                 {"number of decoder layers", config.layers},
                 {"number of decoder heads", config.heads},
                 {"width of the decoder's feed-forward layers", config.feed_forward},
                 {"reduction of the decoder's attention", config.reduction},
                 {"number of masks", config.masks},
                 {"number of layers for scores", config.score_layers},
                 {"width of layers for scores", config.score_width}});
  for (auto [name, number] : {std::pair{"decoder layers", config.layers},
                              {"masks", config.masks},
                              {"layers for scores", config.score_layers}})
    if (number > kMaxLayers)
      throw Error("resource-limit", "the model has {} {}", number, name)
          .Expected("at most {}", kMaxLayers);
  if (2 * config.features != config.channels)
    throw Error("bad-file", "{} frequencies make positions for {} channels", config.features,
                config.channels)
        .Expected("half as many frequencies as channels");
  if (config.channels % 8 != 0 || config.channels % config.reduction != 0 ||
      config.channels / config.reduction % config.heads != 0)
    throw Error("bad-file", "{} channels are reduced by {} and divided into {} heads",
                config.channels, config.reduction, config.heads)
        .Expected("numbers that divide the channels");
}

}  // namespace mlc::networks
