#include "lib/networks/conformer.h"

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
#include "lib/ops/row.h"
#include "lib/support/edit_distance.h"

namespace mlc::networks {

namespace {

constexpr int64_t kMostSpectrum = 3000;  // frames of 10 ms

class Conformer {
 public:
  Conformer(const ConformerConfig& config, const NetworkWeights& weights, const Symbol& frames,
            Diagnostics& diagnostics)
      : config_(config),
        frames_(frames),
        program_(&Ops()),
        main_(program_.Add("main")),
        b_(main_->body, diagnostics),
        layers_(b_, weights) {}

  Program Build() {
    main_->opset = Opset::kIos15;
    const Shape shape = {1,
                         frames_.low == frames_.high
                             ? Dim(frames_.low)
                             : Dim::Symbol(main_->FreshSymbol("frames", frames_)),
                         config_.bands};
    Value* input = main_->AddInput("input_features", Type::Tensor(DType::kFp32, shape));
    main_->inputs.push_back({.name = input->name,
                             .source_name = "input_features",
                             .source_dtype = DType::kFp32,
                             .source_shape = shape});
    Value* x = Subsampled(Expanded(b_, input, {1}));
    MakeDistances(x);
    for (int64_t layer = 0; layer < config_.layers; ++layer) x = Layer(layer, x);
    b_.SetName("head");
    const char* name = config_.vocabulary > 0 ? "logits" : "last_hidden_state";
    if (config_.vocabulary > 0) x = Pointwise("head", x, config_.vocabulary);
    main_->Rename(x, name);
    main_->outputs.push_back({.name = x->name,
                              .source_name = name,
                              .source_dtype = DType::kFp32,
                              .source_shape = x->type.shape});
    main_->body.SetOutputs({x});
    return std::move(program_);
  }

  // The samples are those of two frames at least, which have a deviation.
  static void AddFeatures(Program& program, const MelSpectrogram& how, const Symbol& frames,
                          Diagnostics& diagnostics) {
    Function& function = *program.Add("features");
    function.opset = Opset::kIos18;
    Builder b(function.body, diagnostics);
    const Symbol samples{
        std::max<int64_t>(frames.low, 2) * how.hop, (frames.high + 1) * how.hop - 1, {}};
    const Shape shape = {1, Dim::Symbol(function.FreshSymbol("samples", samples))};
    Value* input = function.AddInput("input_values", Type::Tensor(DType::kFp32, shape));
    function.inputs.push_back({.name = input->name,
                               .source_name = "input_values",
                               .source_dtype = DType::kFp32,
                               .source_shape = shape});
    Value* x = ParakeetMel(b, input, how);
    function.Rename(x, "input_features");
    function.outputs.push_back({.name = x->name,
                                .source_name = "input_features",
                                .source_dtype = DType::kFp32,
                                .source_shape = x->type.shape});
    function.body.SetOutputs({x});
  }

 private:
  // Convolves x [1, C, frames, bands].
  Value* Convolve(const std::string& name, Value* x, int64_t taps, int64_t stride, bool depthwise) {
    const int64_t in = x->type.shape[1].constant(), out = config_.channels,
                  padding = (taps - 1) / 2;
    Value* weight = layers_.Needed(name + ".weight", {out, depthwise ? 1 : in, taps, taps});
    Builder::Args args = {{"x", x},
                          {"weight", weight},
                          {"strides", Ints({stride, stride})},
                          {"pad_type", "custom"},
                          {"pad", Ints({padding, padding, padding, padding})},
                          {"dilations", Ints({1, 1})},
                          {"groups", depthwise ? in : int64_t{1}}};
    if (Value* bias = layers_.Optional(name + ".bias", {out})) args.emplace_back("bias", bias);
    return b_.Make("conv", std::move(args));
  }
  Value* Subsampled(Value* x) {
    b_.SetName("stem");
    x = Convolve("stem.0", x, config_.stem_taps, 2, false);
    x = b_.Make("relu", {{"x", x}});
    for (int64_t i = 1; i < config_.halvings; ++i) {
      const std::string own = fmt::format("stem.{}.", i);
      x = Convolve(own + "depthwise", x, config_.stem_taps, 2, true);
      x = b_.Make("relu", {{"x", Convolve(own + "pointwise", x, 1, 1, false)}});
    }
    x = Transposed(b_, x, {0, 2, 1, 3});
    x = Reshaped(b_, x, {int64_t{1}, {x, 1}, config_.channels * x->type.shape[3].constant()});
    x = layers_.Linear("stem.linear", x, config_.width);
    return config_.root_width_scale
               ? Binary(b_, "mul", x, std::sqrt(static_cast<double>(config_.width)))
               : x;
  }

  // Sines and cosines of all distances query - key, and the row for each pair.
  void MakeDistances(Value* x) {
    b_.SetName("distances");
    const int64_t most = Greatest(b_, x->type.shape[1]), width = config_.width;
    std::vector<float> table;
    for (int64_t distance = 1 - most; distance < most; ++distance)
      for (int64_t i = 0; i < width; ++i) {
        const double angle =
            static_cast<double>(distance) *
            std::pow(10000.0, -static_cast<double>(i / 2 * 2) / static_cast<double>(width));
        table.push_back(static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle)));
      }
    distances_ = b_.Const(Tensor::Of<float>({1, 2 * most - 1, width}, table), "distances");
    Value* at = IndicesOf(b_, x, 1);
    Value* apart = Binary(b_, "sub", Expanded(b_, at, {1}), Expanded(b_, at, {0}));
    apart = Expanded(b_, Binary(b_, "add", apart, most - 1), {0, 1});
    rows_ = b_.Make("tile", {{"x", apart}, {"reps", Ints({1, config_.heads, 1, 1})}});
  }

  Value* Norm(const std::string& name, Value* x) { return layers_.LayerNorm(name, x, 1e-5); }
  Value* Layer(int64_t layer, Value* x) {
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

  // Relative attention (arXiv 1901.02860, section 3.3).
  Value* Attention(const std::string& own, Value* x) {
    const int64_t heads = config_.heads, size = config_.width / heads;
    auto project = [&](const char* name, Value* of) {
      return Heads(b_, layers_.Linear(own + name, of, config_.width), heads);
    };
    Value* q = project("query", x);
    const double scale = 1 / std::sqrt(static_cast<double>(size));
    auto with = [&](const char* name) {
      Value* bias = Expanded(b_, layers_.Needed(own + name, {heads, size}), {0, 2});
      return Binary(b_, "mul", Binary(b_, "add", q, bias), scale);
    };
    Value* all = b_.Make(
        "matmul",
        {{"x", with("bias_v")}, {"y", project("relative_key", distances_)}, {"transpose_y", true}});
    AttentionParts parts{.q = with("bias_u"), .k = project("key", x), .v = project("value", x)};
    parts.biases.push_back(
        b_.Make("gather_along_axis", {{"x", all}, {"indices", rows_}, {"axis", 3}}));
    return layers_.Linear(own + "attention", Joined(b_, Attend(b_, parts).y), config_.width);
  }

  // A convolution of one tap over x [1, F, C].
  Value* Pointwise(const std::string& name, Value* x, int64_t out) {
    const int64_t in = x->type.shape[2].constant();
    Value* weight = Reshaped(b_, layers_.Needed(name + ".weight", {out, in, 1}), {out, in});
    Builder::Args args = {{"x", x}, {"weight", weight}};
    if (Value* bias = layers_.Optional(name + ".bias", {out})) args.emplace_back("bias", bias);
    return b_.Make("linear", std::move(args));
  }
  Value* Convolved(const std::string& own, Value* x) {
    constexpr double kEpsilon = 1e-5;  // of torch.nn.BatchNorm1d
    const int64_t width = config_.width;
    std::vector<Value*> halves =
        Parts(b_, Pointwise(own + "conv_in", x, 2 * width), {width, width}, 2);
    x = Binary(b_, "mul", halves[0], b_.Make("sigmoid", {{"x", halves[1]}}));
    x = networks::Convolved(b_, layers_, own + "depthwise", Transposed(b_, x, {0, 2, 1}),
                            {.channels = width,
                             .taps = config_.taps,
                             .padding = (config_.taps - 1) / 2,
                             .groups = width});
    x = Transposed(b_, x, {0, 2, 1});
    auto row = [&](const char* part) { return layers_.Needed(own + "batch_norm" + part, {width}); };
    Value* scale =
        Binary(b_, "mul", row(".weight"), InverseRoot(b_, row(".running_var"), kEpsilon));
    x = Binary(b_, "mul", Binary(b_, "sub", x, row(".running_mean")), scale);
    x = Activate(b_, config_.activation, Binary(b_, "add", x, row(".bias")));
    return Pointwise(own + "conv_out", x, width);
  }

  const ConformerConfig& config_;
  const Symbol frames_;
  Program program_;
  Function* main_;
  Builder b_;
  Layers layers_;
  Value* distances_ = nullptr;  // [1, distances, W]
  Value* rows_ = nullptr;       // int32 [1, heads, F, F]
};

}  // namespace

Program BuildConformer(const ConformerConfig& config, const NetworkWeights& weights,
                       const ImportOptions& options, Diagnostics& diagnostics) {
  auto check = [](const char* name, int64_t number, int64_t least, int64_t most) {
    if (number < least || number > most)
      throw Error("bad-file", "the model has {} {}", number, name)
          .Expected("{} to {}", least, most);
  };
  check("layers", config.layers, 1, 1 << 16);
  check("dimensions of a hidden state", config.width, 1, 1 << 16);
  check("heads", config.heads, 1, config.width);
  check("dimensions of a feed-forward layer", config.feed_forward, 1, 1 << 24);
  check("mel bands", config.bands, 1, 1 << 12);
  check("taps of a convolution", config.taps, 1, 1 << 12);
  check("taps of the stem", config.stem_taps, 1, 1 << 8);
  check("channels of the stem", config.channels, 1, 1 << 24);
  check("halvings of the stem", config.halvings, 1, 8);
  check("frames", config.most, 1, 1 << 16);
  check("tokens in the vocabulary", config.vocabulary, 0, INT32_MAX);
  if (config.width % config.heads != 0)
    throw Error("bad-file", "the width {} is not a multiple of the number of heads ({})",
                config.width, config.heads);
  if (config.taps % 2 == 0 || config.stem_taps % 2 == 0)
    throw Error("bad-file", "a convolution has {} taps",
                config.taps % 2 == 0 ? config.taps : config.stem_taps)
        .Expected("an odd number");
  constexpr const char* kFrames = "frames";
  const int64_t most = config.most << config.halvings;
  Symbol frames{1, std::min(kMostSpectrum, most), {}};
  for (const auto& [name, wanted] : options.dims) {
    if (name != kFrames)
      throw Error("bad-name", "option 'dim' {}: unknown dimension{}", name,
                  DidYouMean(std::array{kFrames}, name))
          .Expected(kFrames);
    if (wanted.high > most)
      throw Error("usage", "option 'dim' {}={}: the model takes at most {}", name, wanted.high,
                  most);
    frames = wanted;
  }
  Program program = Conformer(config, weights, frames, diagnostics).Build();
  if (!config.mel) return program;
  check("samples in a window of the spectrogram", config.mel->window, 2, 1 << 12);
  check("samples of the Fourier transform", config.mel->transform, config.mel->window, 1 << 12);
  check("samples between windows of the spectrogram", config.mel->hop, 1, 1 << 12);
  check("samples per second", config.mel->rate, 1000, 1 << 20);
  Conformer::AddFeatures(program, *config.mel, frames, diagnostics);
  return program;
}

}  // namespace mlc::networks
