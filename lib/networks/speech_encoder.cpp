#include "lib/networks/speech_encoder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ir/import_options.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/attention.h"
#include "lib/networks/check_weights.h"
#include "lib/networks/convolution_1d.h"
#include "lib/networks/heads.h"
#include "lib/networks/norms.h"
#include "lib/networks/relative_position_buckets.h"
#include "lib/ops/row.h"
#include "lib/support/edit_distance.h"

namespace mlc::networks {

namespace {

constexpr int64_t kMostSamples = 16000 * 30;
constexpr int64_t kMostSpectrum = 1500;  // frames of 20 ms

class SpeechEncoder {
 public:
  using Head = SpeechEncoderConfig::Head;
  SpeechEncoder(const SpeechEncoderConfig& config, const NetworkWeights& weights,
                const Symbol& samples, Diagnostics& diagnostics)
      : config_(config),
        weights_(weights),
        samples_(samples),
        program_(&Ops()),
        main_(program_.Add("main")),
        b_(main_->body, diagnostics),
        layers_(b_, weights) {}

  Program Build() {
    main_->opset = Opset::kIos15;
    const bool spectrum = config_.bands > 0;
    Shape shape = {
        1, samples_.low == samples_.high
               ? Dim(samples_.low)
               : Dim::Symbol(main_->FreshSymbol(spectrum ? "frames" : "samples", samples_))};
    if (spectrum) shape.push_back(config_.bands);
    const char* name = spectrum ? "input_features" : "input_values";
    Value* input = main_->AddInput(name, Type::Tensor(DType::kFp32, shape));
    main_->inputs.push_back({.name = input->name,
                             .source_name = name,
                             .source_dtype = DType::kFp32,
                             .source_shape = shape});
    Value* features =
        spectrum ? input : Transposed(b_, Features(Expanded(b_, input, {1})), {0, 2, 1});
    b_.SetName("projection");
    if (config_.normed_features) features = Norm("projection.norm", features);
    Value* x = features;
    // SEW projects only features of another width.
    if (config_.squeeze == 1 || layers_.Has("projection.weight"))
      x = layers_.Linear("projection", features, config_.width);
    if (config_.conformer) return BuildConformer(x, features);
    Value* frames = x;
    x = WithPositions(x);
    if (!config_.pre_norms) x = Norm("norm", x);
    if (config_.gated_distances) MakeDistances(x);
    std::vector<Value*> states = {x};
    for (int64_t layer = 0; layer < config_.layers; ++layer) states.push_back(x = Layer(layer, x));
    if (config_.pre_norms) states.back() = x = Norm("norm", x);
    x = ShortenedOutput(AllFrames(x, frames));
    if (config_.weighted_layers) x = WeightedSum(b_, layers_, "layer_weights", states);
    Finish(x, features);
    return std::move(program_);
  }

 private:
  Program BuildConformer(Value* x, Value* features) {
    ConformerLayersConfig how = *config_.conformer;
    how.width = config_.width, how.heads = config_.heads;
    how.feed_forward = config_.feed_forward, how.activation = config_.activation;
    ConformerLayers conformer(b_, layers_, how);
    conformer.MakePositions(x);
    std::vector<Value*> states = {x};
    for (int64_t layer = 0; layer < config_.layers; ++layer)
      states.push_back(x = conformer.Layer(layer, x));
    if (config_.pre_norms) states.back() = x = Norm("norm", x);
    if (config_.half_feed_forward) {
      b_.SetName("half");
      Value* y = layers_.Linear("half.up", x, config_.feed_forward);
      y = layers_.Linear("half.down", Activate(b_, Activation::kRelu, y), config_.width);
      x = Binary(b_, "add", x, Binary(b_, "mul", y, 0.5));
    }
    x = ShortenedOutput(x);
    if (config_.weighted_layers) x = WeightedSum(b_, layers_, "layer_weights", states);
    Finish(x, features);
    return std::move(program_);
  }

  Value* Norm(const std::string& name, Value* x) {
    return layers_.LayerNorm(name, x, config_.epsilon);
  }

  // [1, 1, N] -> [1, channels, F].
  Value* Features(Value* x) {
    constexpr double kEpsilon = 1e-5;  // of torch.nn.GroupNorm and LayerNorm
    for (size_t i = 0; i < config_.convolutions.size(); ++i) {
      const SpeechEncoderConfig::Convolution& row = config_.convolutions[i];
      const std::string own = fmt::format("features.{}.", i);
      b_.SetName(fmt::format("features_{}", i));
      x = Convolved(b_, layers_, own + "conv", x, {row.channels, row.taps, row.stride});
      if (!config_.group_norm) {
        x = Transposed(b_, x, {0, 2, 1});
        x = layers_.LayerNorm(own + "norm", x, kEpsilon);
        x = Transposed(b_, x, {0, 2, 1});
      } else if (i == 0) {
        // A group per channel: each is normalised over time.
        auto column = [&](const char* part) {
          return Reshaped(b_, layers_.Needed(own + "norm" + part, {row.channels}),
                          {row.channels, int64_t{1}});
        };
        Value* centred = Binary(b_, "sub", x, Mean(b_, x, {2}));
        Value* variance = Mean(b_, Binary(b_, "mul", centred, centred), {2});
        x = Binary(b_, "mul", centred, InverseRoot(b_, variance, kEpsilon));
        x = Binary(b_, "add", Binary(b_, "mul", x, column(".weight")), column(".bias"));
      }
      x = Activate(b_, config_.feature_activation, x);
    }
    return x;
  }

  // Adds the positions to the frames x, or to their means.
  Value* WithPositions(Value* x) {
    if (config_.position_layers > 0) {
      Value* y = x;
      for (int64_t layer = 0; layer < config_.position_layers; ++layer)
        y = PlainPositions(layer, y);
      return Binary(b_, "add", x, y);
    }
    Value* positions = Positions(x);
    if (config_.squeeze == 1) return Binary(b_, "add", x, positions);
    b_.SetName("squeezed");
    Value* means = b_.Make("avg_pool", {{"x", Transposed(b_, x, {0, 2, 1})},
                                        {"kernel_sizes", Ints({config_.squeeze})},
                                        {"strides", Ints({config_.squeeze})},
                                        {"pad_type", "valid"},
                                        {"exclude_padding_from_average", true}});
    means = Transposed(b_, means, {0, 2, 1});
    return Binary(b_, "add", means, FirstRows(positions, means));
  }
  // The first rows of x [1, M, W], as many as y [1, N, W] has.
  Value* FirstRows(Value* x, Value* y) {
    return b_.Make("gather", {{"x", x}, {"indices", IndicesOf(b_, y, 1)}, {"axis", 1}});
  }
  // Makes `squeeze` frames of each, and zeros of those that it left out.
  Value* AllFrames(Value* x, Value* frames) {
    if (config_.squeeze == 1) return x;
    b_.SetName("upsample");
    x = layers_.Linear("upsample", x, config_.squeeze * config_.width);
    x = Reshaped(b_, Activate(b_, config_.feature_activation, x), {1, -1, config_.width});
    const Dims rest = {1, config_.squeeze - 1, config_.width};
    x = Concat(b_, {x, b_.Const(Tensor::Full(DType::kFp32, rest, 0))}, 1);
    return FirstRows(x, frames);
  }
  Value* PlainPositions(int64_t layer, Value* x) {
    constexpr double kEpsilon = 1e-5;  // of torch.nn.LayerNorm
    const std::string own = fmt::format("positions.{}.conv", layer);
    b_.SetName(fmt::format("positions_{}", layer));
    const int64_t taps = config_.position_taps;
    Value* y = Convolved(b_, layers_, own, Transposed(b_, x, {0, 2, 1}),
                         {.channels = config_.width,
                          .taps = taps,
                          .padding = taps / 2,
                          .groups = config_.position_groups});
    y = Transposed(b_, y, {0, 2, 1});
    if (taps % 2 == 0) y = FirstRows(y, x);  // an even kernel gives one frame too many
    Value* centred = Binary(b_, "sub", y, Mean(b_, y, {2}));
    Value* variance = Mean(b_, Binary(b_, "mul", centred, centred), {2});
    y = Binary(b_, "mul", centred, InverseRoot(b_, variance, kEpsilon));
    return Activate(b_, config_.feature_activation, y);
  }

  // The positions are a convolution of the features themselves: [1, F, W], or [1, F / squeeze, W] and
  // perhaps some more.
  Value* Positions(Value* x) {
    b_.SetName("positions");
    const int64_t taps = config_.position_taps, groups = config_.position_groups;
    const Dims dims = {config_.width, config_.width / groups, taps};
    Value* y = Transposed(b_, x, {0, 2, 1});
    if (config_.batch_norm) y = BatchNorm("positions.norm", y);
    Value* weight = nullptr;
    if (Tensor v = weights_.find("positions.conv.weight_v"); v && config_.weight_norm) {
      const Tensor g = weights_.find("positions.conv.weight_g");
      const std::string name = weights_.name("positions.conv.weight_v");
      if (!g) layers_.Needed("positions.conv.weight_g", {1, 1, taps});
      weight = b_.Const(NormalisedTaps(CheckedWeight(v, name, dims), g, name), name);
    } else {
      weight = layers_.Needed("positions.conv.weight", dims);
    }
    y = Convolved(b_, weight, layers_.Optional("positions.conv.bias", {config_.width}), y,
                  {.channels = config_.width,
                   .taps = taps,
                   .stride = config_.squeeze,
                   .padding = taps / 2,
                   .groups = groups});
    y = Transposed(b_, y, {0, 2, 1});
    // An even kernel gives one frame too many.
    if (taps % 2 == 0 && config_.squeeze == 1) {
      y = b_.Make("slice_by_index", {{"x", y},
                                     {"begin", Ints({0, 0, 0})},
                                     {"end", Ints({0, -1, 0})},
                                     {"begin_mask", Tensor::Vector<bool>({true, true, true})},
                                     {"end_mask", Tensor::Vector<bool>({true, false, true})}});
      // The kernel is longer than one frame, so that the shapes' symbols differ in name alone.
      y = Reshaped(b_, y, {1, {x, 1}, config_.width});
    }
    return Activate(b_, config_.feature_activation, y);
  }
  Value* BatchNorm(const std::string& name, Value* x) {
    constexpr double kEpsilon = 1e-5;  // of torch.nn.BatchNorm1d
    auto column = [&](const char* part) {
      return Reshaped(b_, layers_.Needed(name + part, {config_.width}),
                      {config_.width, int64_t{1}});
    };
    x = Binary(b_, "sub", x, column(".running_mean"));
    Value* scale =
        Binary(b_, "mul", column(".weight"), InverseRoot(b_, column(".running_var"), kEpsilon));
    return Binary(b_, "add", Binary(b_, "mul", x, scale), column(".bias"));
  }

  // The bias of scores by distance: [1, heads, F, F].
  void MakeDistances(Value* x) {
    b_.SetName("distances");
    const int64_t most = Greatest(b_, x->type.shape[1]);
    Value* at = IndicesOf(b_, x, 1);
    Value* apart = Binary(b_, "sub", Expanded(b_, at, {1}), Expanded(b_, at, {0}));
    apart = Binary(b_, "add", apart, most - 1);
    Value* bias = layers_.Needed("distances.weight", {config_.buckets, config_.heads});
    Value* rows =
        Rows(b_, bias, b_.Const(BiasBuckets(most, config_.buckets, config_.max_distance)));
    distances_ = Expanded(b_, Transposed(b_, Rows(b_, rows, apart), {2, 0, 1}), {0});
  }
  // A query scales its biases by a gate a (b c - 1) + 2 of a head's c, and of sums of four projections
  // of its part of the hidden state each (transformers' modeling_wavlm.py).
  Value* GatedDistances(const std::string& own, Value* x) {
    constexpr int64_t kGates = 2, kSummed = 4;
    Value* parts = layers_.Linear(own + "gate", Heads(b_, x, config_.heads), kGates * kSummed);
    parts = Reshaped(b_, parts, {config_.heads, {parts, 2}, kGates, kSummed});
    parts = b_.Make("sigmoid", {{"x", Reduced(b_, "reduce_sum", parts, {3}, false)}});
    std::vector<Value*> gates = Parts(b_, parts, {1, 1}, 2);  // [heads, F, 1]
    Value* scale = Reshaped(b_, layers_.Needed(own + "gate_scale", {1, config_.heads, 1, 1}),
                            {config_.heads, int64_t{1}, int64_t{1}});
    Value* inner = Binary(b_, "sub", Binary(b_, "mul", gates[1], scale), 1.0);
    Value* gate = Binary(b_, "add", Binary(b_, "mul", gates[0], inner), 2.0);
    return Binary(b_, "mul", distances_, Expanded(b_, gate, {0}));
  }

  Value* Layer(int64_t layer, Value* x) {
    b_.SetName(fmt::format("layer_{}", layer));
    const std::string own = fmt::format("layer.{}.", layer);
    auto add = [&](Value* y) { return Binary(b_, "add", x, y); };
    if (!config_.pre_norms) {
      x = Norm(own + "attention_norm", add(Attention(own, x)));
      return Norm(own + "norm", add(FeedForward(own, x)));
    }
    x = add(Attention(own, Norm(own + "attention_norm", x)));
    x = add(FeedForward(own, Norm(own + "norm", x)));
    if (config_.adapter == 0) return x;
    Value* y = layers_.LayerNorm(own + "adapter.norm", x, 1e-5);
    y = Activate(b_, Activation::kRelu, layers_.Linear(own + "adapter.down", y, config_.adapter));
    return add(layers_.Linear(own + "adapter.up", y, config_.width));
  }
  Value* FeedForward(const std::string& own, Value* x) {
    x = Activate(b_, config_.activation, layers_.Linear(own + "up", x, config_.feed_forward));
    return layers_.Linear(own + "down", x, config_.width);
  }
  Value* Attention(const std::string& own, Value* x) { return Attention(own, x, config_.width); }
  Value* Attention(const std::string& own, Value* x, int64_t width) {
    auto project = [&](const char* name) { return layers_.Linear(own + name, x, width); };
    const double scale =
        1 / std::sqrt(static_cast<double>(width) / static_cast<double>(config_.heads));
    AttentionParts parts{.q = Heads(b_, Binary(b_, "mul", project("query"), scale), config_.heads),
                         .k = Heads(b_, project("key"), config_.heads),
                         .v = Heads(b_, project("value"), config_.heads)};
    if (distances_) parts.biases.push_back(GatedDistances(own, x));
    return layers_.Linear(own + "attention", Joined(b_, Attend(b_, parts).y), width);
  }

  Value* ShortenedOutput(Value* x) {
    if (config_.output_adapters == 0) return x;
    b_.SetName("output");
    const int64_t width = config_.output_width;
    if (width != config_.width)
      x = layers_.LayerNorm("output.norm", layers_.Linear("output.projection", x, width), 1e-5);
    for (int64_t i = 0; i < config_.output_adapters; ++i) {
      const std::string own = fmt::format("output.{}", i);
      x = config_.attending_adapters ? AttendingAdapter(own + ".", x) : Shortened(own, x, 1);
    }
    return x;
  }
  // A convolution with a stride, and gates: [1, F, W] -> [1, fewer, W].
  Value* Shortened(const std::string& name, Value* x, int64_t padding) {
    const int64_t width = config_.output_width;
    x = Convolved(b_, layers_, name, Transposed(b_, x, {0, 2, 1}),
                  {2 * width, config_.output_taps, config_.output_stride, padding});
    return Transposed(b_, GatedHalf(b_, x, width, 1), {0, 2, 1});
  }
  Value* AttendingAdapter(const std::string& own, Value* x) {
    const int64_t width = config_.output_width, padding = config_.output_stride / 2;
    Value* residual = Shortened(own + "residual", Norm(own + "residual_norm", x), padding);
    x = Shortened(own + "shortened", Norm(own + "attention_norm", x), padding);
    x = Binary(b_, "add", residual, Attention(own, x, width));
    Value* y = layers_.Linear(own + "up", Norm(own + "norm", x), config_.feed_forward);
    y = layers_.Linear(own + "down", Activate(b_, config_.adapter_activation, y), width);
    return Binary(b_, "add", x, y);
  }

  // A time-delay network: convolutions whose matrices have a tap after another. [1, channels, frames]
  Value* Delayed(Value* x) {
    const auto& rows = config_.delays;
    x = layers_.Linear("head.projection", x, rows[0].channels);
    x = Transposed(b_, x, {0, 2, 1});
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t in = rows[i > 0 ? i - 1 : 0].channels, taps = rows[i].taps;
      const std::string own = fmt::format("head.delays.{}", i);
      Value* weight = layers_.Needed(own + ".weight", {rows[i].channels, taps * in});
      weight = Transposed(b_, Reshaped(b_, weight, {rows[i].channels, taps, in}), {0, 2, 1});
      Value* bias = layers_.Optional(own + ".bias", {rows[i].channels});
      x = Convolved(b_, weight, bias, x,
                    {.channels = rows[i].channels, .taps = taps, .dilation = rows[i].stride});
      x = Activate(b_, Activation::kRelu, x);
    }
    return x;
  }
  // The means of channels over time, then their deviations, which are those of a sample.
  Value* Statistics(Value* x) {
    Value* mean = Mean(b_, x, {2});
    Value* centred = Binary(b_, "sub", x, mean);
    Value* sum = Reduced(b_, "reduce_sum", Binary(b_, "mul", centred, centred), {2}, false);
    Value* count = b_.Cast(DimOf(b_, x, 2), DType::kFp32);
    Value* variance = Binary(b_, "real_div", sum, Binary(b_, "sub", count, 1.0));
    return Concat(b_, {Squeezed(b_, mean, {2}), b_.Make("sqrt", {{"x", variance}})}, 1);
  }

  void Finish(Value* x, Value* features) {
    b_.SetName("head");
    std::vector<Value*> outputs;
    auto add = [&](Value* y, const char* name) {
      main_->Rename(y, name);
      main_->outputs.push_back({.name = y->name,
                                .source_name = name,
                                .source_dtype = DType::kFp32,
                                .source_shape = y->type.shape});
      outputs.push_back(y);
    };
    switch (config_.head) {
      case Head::kHidden:
        add(x, "last_hidden_state");
        add(features, "extract_features");
        break;
      case Head::kFrames:
        add(layers_.Linear("head", x, config_.labels), "logits");
        break;
      case Head::kSequence:
        x = layers_.Linear("head.projection", x, config_.projected);
        x = Reduced(b_, "reduce_mean", x, {1}, false);
        add(layers_.Linear("head", x, config_.labels), "logits");
        break;
      case Head::kSpeaker:
        x = layers_.Linear("head.embedding", Statistics(Delayed(x)), config_.embedding);
        add(layers_.Linear("head", x, config_.embedding), "logits");
        add(x, "embeddings");
        break;
    }
    main_->body.SetOutputs(outputs);
  }

  const SpeechEncoderConfig& config_;
  const NetworkWeights& weights_;
  const Symbol samples_;
  Program program_;
  Function* main_;
  Builder b_;
  Layers layers_;
  Value* distances_ = nullptr;
};

void CheckSpeechNumbers(const SpeechEncoderConfig& config) {
  auto check = [](const char* name, int64_t number, int64_t least, int64_t most) {
    if (number < least || number > most)
      throw Error("bad-file", "the model has {} {}", number, name)
          .Expected("{} to {}", least, most);
  };
  constexpr int64_t kMost = int64_t{1} << 24;
  check("bands of a spectrogram", config.bands, 0, 1 << 16);
  if (config.bands > 0) check("frames", config.most_frames, 1, 1 << 16);
  if (config.bands == 0)
    check("convolutions", static_cast<int64_t>(config.convolutions.size()), 1, 64);
  for (const SpeechEncoderConfig::Convolution& row : config.convolutions) {
    check("channels of a convolution", row.channels, 1, kMost);
    check("taps of a convolution", row.taps, 1, 1 << 16);
    check("samples between the outputs of a convolution", row.stride, 1, 1 << 16);
  }
  check("layers", config.layers, 1, 1 << 16);
  check("dimensions of a hidden state", config.width, 1, kMost);
  check("heads", config.heads, 1, config.width);
  check("dimensions of a feed-forward layer", config.feed_forward, 1, kMost);
  if (!config.conformer) {
    check("taps of positions", config.position_taps, 1, 1 << 16);
    check("groups of positions", config.position_groups, 1, config.width);
  }
  check("convolutions of positions", config.position_layers, 0, 64);
  check("frames that become one", config.squeeze, 1, 64);
  check("output adapters", config.output_adapters, 0, 64);
  if (config.head == SpeechEncoderConfig::Head::kSpeaker) {
    check("convolutions before the embedding", static_cast<int64_t>(config.delays.size()), 1, 64);
    for (const SpeechEncoderConfig::Convolution& row : config.delays) {
      check("channels of a convolution", row.channels, 1, kMost);
      check("taps of a convolution", row.taps, 1, 1 << 10);
      check("dilations of a convolution", row.stride, 1, 1 << 10);
    }
    check("dimensions of an embedding", config.embedding, 1, kMost);
  }
  if (config.output_adapters > 0) {
    check("taps of an output adapter", config.output_taps, 1, 1 << 16);
    check("frames between the outputs of an output adapter", config.output_stride, 1, 1 << 16);
    check("dimensions of an output", config.output_width, 1, kMost);
    if (config.attending_adapters && config.output_width % config.heads != 0)
      throw Error("bad-file", "the width {} is not a multiple of the number of heads ({})",
                  config.output_width, config.heads);
  }
  if (config.gated_distances) {
    check("buckets of distances", config.buckets, 4, kMost);
    check("frames of the largest distance", config.max_distance, config.buckets / 4 + 1, kMost);
  }
  for (auto [name, divisor] :
       {std::pair{"heads", config.heads},
        {"groups of positions", config.conformer ? 1 : config.position_groups}})
    if (config.width % divisor != 0)
      throw Error("bad-file", "the width {} is not a multiple of the number of {} ({})",
                  config.width, name, divisor);
  if (!(config.epsilon >= 0) || !std::isfinite(config.epsilon))
    throw Error("bad-file", "the epsilon of norms is {}", config.epsilon);
}

}  // namespace

Value* WeightedSum(Builder& b, Layers& layers, const std::string& name,
                   const std::vector<Value*>& states) {
  b.SetName("layer_weights");
  const auto count = static_cast<int64_t>(states.size());
  Value* shares = b.Make("softmax", {{"x", layers.Needed(name, {count})}, {"axis", -1}});
  Value* sum = nullptr;
  for (int64_t i = 0; i < count; ++i) {
    Value* part = Binary(b, "mul", states[static_cast<size_t>(i)], Element(b, shares, i, 0));
    sum = sum ? Binary(b, "add", sum, part) : part;
  }
  return sum;
}

int64_t LeastSamples(const std::vector<SpeechEncoderConfig::Convolution>& convolutions,
                     int64_t frames) {
  int64_t count = frames;
  for (auto row = convolutions.rbegin(); row != convolutions.rend(); ++row) {
    count = (count - 1) * row->stride + row->taps;
    if (count > kMostSamples)
      throw Error("bad-file", "the convolutions need more than {} samples for a frame",
                  kMostSamples);
  }
  return count;
}

Symbol PackagedSamples(const ImportOptions& options, int64_t least) {
  constexpr const char* kSamples = "samples";
  if (options.context)
    throw Error("usage", "option 'context' is for language models; this is an encoder of speech")
        .Help("option 'dim' samples=... sets the number of samples");
  Symbol sizes{least, std::max(kMostSamples, least), {}};
  for (const auto& [name, wanted] : options.dims) {
    if (name != kSamples)
      throw Error("bad-name", "option 'dim' {}: unknown dimension{}", name,
                  DidYouMean(std::array{kSamples}, name))
          .Expected(kSamples);
    if (wanted.low < least)
      throw Error("usage", "option 'dim' {}={}: a frame needs {} samples", name, wanted.low, least)
          .Expected("{} or more", least);
    sizes = wanted;
  }
  return sizes;
}

Program BuildSpeechEncoder(const SpeechEncoderConfig& config, const NetworkWeights& weights,
                           const ImportOptions& options, Diagnostics& diagnostics) {
  CheckSpeechNumbers(config);
  // The deviation of a sample needs two frames.
  int64_t frames = config.squeeze;
  if (config.head == SpeechEncoderConfig::Head::kSpeaker)
    for (frames = 2; const SpeechEncoderConfig::Convolution& row : config.delays)
      frames += (row.taps - 1) * row.stride;
  if (config.bands > 0) {
    // The fewest frames of which the adapters leave as many as the head needs.
    for (int64_t i = 0; i < config.output_adapters; ++i)
      frames = std::max<int64_t>(1, (frames - 1) * config.output_stride + config.output_taps -
                                        2 * (config.output_stride / 2));
    const Symbol sizes = PackagedFrames(options, frames, kMostSpectrum, config.most_frames);
    return SpeechEncoder(config, weights, sizes, diagnostics).Build();
  }
  const Symbol samples = PackagedSamples(options, LeastSamples(config.convolutions, frames));
  return SpeechEncoder(config, weights, samples, diagnostics).Build();
}

}  // namespace mlc::networks
