#include "lib/networks/conformer_layers.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ir/import_options.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/attention.h"
#include "lib/networks/convolution_1d.h"
#include "lib/networks/heads.h"
#include "lib/networks/norms.h"
#include "lib/networks/rotary.h"
#include "lib/support/edit_distance.h"
#include "lib/support/error.h"

namespace mlc::networks {

using Places = ConformerLayersConfig::Positions;

ConformerLayers::ConformerLayers(Builder& b, Layers& layers, const ConformerLayersConfig& config)
    : b_(b), layers_(layers), config_(config) {
  auto check = [](const char* name, int64_t number, int64_t least, int64_t most) {
    if (number < least || number > most)
      throw Error("bad-file", "the model has {} {}", number, name)
          .Expected("{} to {}", least, most);
  };
  check("dimensions of a hidden state", config.width, 1, 1 << 16);
  check("heads", config.heads, 1, config.width);
  check("dimensions of a feed-forward layer", config.feed_forward, 1, 1 << 24);
  check("taps of a convolution", config.taps, 1, 1 << 12);
  check("rows of earlier frames", config.left, 0, 1 << 16);
  check("rows of later frames", config.right, 0, 1 << 16);
  if (config.width % config.heads != 0)
    throw Error("bad-file", "the width {} is not a multiple of the number of heads ({})",
                config.width, config.heads);
  if (config.taps % 2 == 0)
    throw Error("bad-file", "a convolution has {} taps", config.taps).Expected("an odd number");
  if (config.positions == Places::kRotary && config.width / config.heads % 2 != 0)
    throw Error("bad-file", "a head has {} dimensions", config.width / config.heads)
        .Expected("an even number, which rotary embedding needs");
  if (config.positions == Places::kRotary && !(config.rotary_base > 0))
    throw Error("bad-file", "the base of rotary embedding is {}", config.rotary_base)
        .Expected("more than 0");
}

void ConformerLayers::MakePositions(Value* x) {
  b_.SetName("distances");
  const int64_t width = config_.width, most = Greatest(b_, x->type.shape[1]);
  switch (config_.positions) {
    case Places::kNone:
      return;
    case Places::kRows:
      return MakeRows(x, config_.left, config_.right);
    case Places::kSines: {
      std::vector<float> table;
      for (int64_t distance = 1 - most; distance < most; ++distance)
        for (int64_t i = 0; i < width; ++i) {
          const double angle =
              static_cast<double>(distance) *
              std::pow(10000.0, -static_cast<double>(i / 2 * 2) / static_cast<double>(width));
          table.push_back(static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle)));
        }
      distances_ = b_.Const(Tensor::Of<float>({1, 2 * most - 1, width}, table), "distances");
      return MakeRows(x, most - 1, most - 1);
    }
    case Places::kRotary: {
      const int64_t half = width / config_.heads / 2;
      std::vector<float> cosines, sines;
      for (int64_t at = 0; at < most; ++at)
        for (int64_t i = 0; i < half; ++i) {
          const double angle =
              static_cast<double>(at) *
              std::pow(config_.rotary_base, -static_cast<double>(i) / static_cast<double>(half));
          cosines.push_back(static_cast<float>(std::cos(angle)));
          sines.push_back(static_cast<float>(std::sin(angle)));
        }
      Value* at = IndicesOf(b_, x, 1);
      auto rows = [&](const std::vector<float>& table) {
        return Expanded(b_, Rows(b_, b_.Const(Tensor::Of<float>({most, half}, table)), at), {0});
      };
      cosines_ = rows(cosines), sines_ = rows(sines);
    }
  }
}

// The row of each pair of query and key: kSines counts what lies before the query up, kRows down.
void ConformerLayers::MakeRows(Value* x, int64_t left, int64_t right) {
  Value* at = IndicesOf(b_, x, 1);
  Value *queries = Expanded(b_, at, {1}), *keys = Expanded(b_, at, {0});
  const bool rows = config_.positions == Places::kRows;
  Value* apart = rows ? Binary(b_, "sub", keys, queries) : Binary(b_, "sub", queries, keys);
  if (rows) apart = Binary(b_, "maximum", Binary(b_, "minimum", apart, right), -left);
  apart = Expanded(b_, Binary(b_, "add", apart, left), {0, 1});
  rows_ = b_.Make("tile", {{"x", apart}, {"reps", Ints({1, config_.heads, 1, 1})}});
}

Value* ConformerLayers::Norm(const std::string& name, Value* x) {
  return layers_.LayerNorm(name, x, config_.epsilon);
}

Value* ConformerLayers::Layer(int64_t layer, Value* x) {
  b_.SetName(fmt::format("layer_{}", layer));
  const std::string own = fmt::format("layer.{}.", layer);
  auto half = [&](const char* n) {
    const std::string number = n;
    Value* y =
        layers_.Linear(own + "up" + number, Norm(own + "norm" + number, x), config_.feed_forward);
    y = layers_.Linear(own + "down" + number, Activate(b_, config_.activation, y), config_.width);
    return Binary(b_, "add", x, Binary(b_, "mul", y, 0.5));
  };
  x = half("1");
  x = Binary(b_, "add", x, Attention(own, Norm(own + "attention_norm", x)));
  x = Binary(b_, "add", x, Convolved(own, Norm(own + "conv_norm", x)));
  x = half("2");
  return Norm(own + "norm", x);
}

// Rotates the heads of x itself [1, F, W] (transformers' modeling_wav2vec2_conformer.py).
Value* ConformerLayers::RotatedInput(Value* x) {
  return Joined(b_, Rotated(b_, Heads(b_, x, config_.heads), cosines_, sines_, false));
}

Value* ConformerLayers::Attention(const std::string& own, Value* x) {
  const int64_t heads = config_.heads, size = config_.width / heads;
  auto project = [&](const char* name, Value* of) {
    return Heads(b_, layers_.Linear(own + name, of, config_.width), heads);
  };
  Value* placed = config_.positions == Places::kRotary ? RotatedInput(x) : x;
  Value* q = project("query", placed);
  const double scale = 1 / std::sqrt(static_cast<double>(size));
  AttentionParts parts;
  Value* scores = nullptr;  // [1, heads, F, rows]
  if (config_.positions == Places::kSines) {
    auto with = [&](const char* name) {
      Value* bias = Expanded(b_, layers_.Needed(own + name, {heads, size}), {0, 2});
      return Binary(b_, "mul", Binary(b_, "add", q, bias), scale);
    };
    Value* keys = project("relative_key", distances_);
    scores = b_.Make("matmul", {{"x", with("bias_v")}, {"y", keys}, {"transpose_y", true}});
    parts.q = with("bias_u");
  } else {
    parts.q = Binary(b_, "mul", q, scale);
    if (config_.positions == Places::kRows) {
      Value* table =
          layers_.Needed(own + "distances.weight", {config_.left + config_.right + 1, size});
      scores = b_.Make("matmul", {{"x", parts.q}, {"y", table}, {"transpose_y", true}});
    }
  }
  parts.k = project("key", placed);
  parts.v = project("value", x);
  if (scores)
    parts.biases.push_back(
        b_.Make("gather_along_axis", {{"x", scores}, {"indices", rows_}, {"axis", 3}}));
  return layers_.Linear(own + "attention", Joined(b_, Attend(b_, parts).y), config_.width);
}

Value* ConformerLayers::Convolved(const std::string& own, Value* x) {
  constexpr double kEpsilon = 1e-5;  // of torch.nn.BatchNorm1d
  const int64_t width = config_.width;
  x = GatedHalf(b_, Pointwise(b_, layers_, own + "conv_in", x, 2 * width), width, 2);
  x = Transposed(b_, x, {0, 2, 1});
  if (config_.causal && config_.taps > 1)
    x = b_.Make("pad", {{"x", x},
                        {"pad", Ints({0, 0, 0, 0, config_.taps - 1, 0})},
                        {"mode", "constant"},
                        {"constant_val", 0.0}});
  x = networks::Convolved(b_, layers_, own + "depthwise", x,
                          {.channels = width,
                           .taps = config_.taps,
                           .padding = config_.causal ? 0 : (config_.taps - 1) / 2,
                           .groups = width});
  x = Transposed(b_, x, {0, 2, 1});
  if (config_.causal) {
    x = Norm(own + "depthwise_norm", x);
  } else {
    auto row = [&](const char* part) { return layers_.Needed(own + "batch_norm" + part, {width}); };
    Value* scale =
        Binary(b_, "mul", row(".weight"), InverseRoot(b_, row(".running_var"), kEpsilon));
    x = Binary(b_, "mul", Binary(b_, "sub", x, row(".running_mean")), scale);
    x = Binary(b_, "add", x, row(".bias"));
  }
  return Pointwise(b_, layers_, own + "conv_out", Activate(b_, config_.activation, x), width);
}

Value* Pointwise(Builder& b, Layers& layers, const std::string& name, Value* x, int64_t out) {
  const int64_t in = x->type.shape[2].constant();
  Value* weight = Reshaped(b, layers.Needed(name + ".weight", {out, in, 1}), {out, in});
  Builder::Args args = {{"x", x}, {"weight", weight}};
  if (Value* bias = layers.Optional(name + ".bias", {out})) args.emplace_back("bias", bias);
  return b.Make("linear", std::move(args));
}

Value* GatedHalf(Builder& b, Value* x, int64_t width, int64_t axis) {
  const std::vector<Value*> halves = Parts(b, x, {width, width}, axis);
  return Binary(b, "mul", halves[0], b.Make("sigmoid", {{"x", halves[1]}}));
}

Symbol PackagedFrames(const ImportOptions& options, int64_t least, int64_t usual, int64_t most) {
  constexpr const char* kFrames = "frames";
  Symbol frames{least, std::max(least, std::min(usual, most)), {}};
  for (const auto& [name, wanted] : options.dims) {
    if (name != kFrames)
      throw Error("bad-name", "option 'dim' {}: unknown dimension{}", name,
                  DidYouMean(std::array{kFrames}, name))
          .Expected(kFrames);
    if (wanted.high > most)
      throw Error("usage", "option 'dim' {}={}: the model takes at most {}", name, wanted.high,
                  most);
    if (wanted.low < least)
      throw Error("usage", "option 'dim' {}={}: the model takes at least {}", name, wanted.low,
                  least);
    frames = wanted;
  }
  return frames;
}

}  // namespace mlc::networks
