#include "lib/networks/conformer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ir/import_options.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/conformer_layers.h"
#include "lib/ops/row.h"

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
    const ConformerLayersConfig how{.activation = config_.activation,
                                    .width = config_.width,
                                    .heads = config_.heads,
                                    .feed_forward = config_.feed_forward,
                                    .taps = config_.taps};
    ConformerLayers conformer(b_, layers_, how);
    conformer.MakePositions(x);
    for (int64_t layer = 0; layer < config_.layers; ++layer) x = conformer.Layer(layer, x);
    b_.SetName("head");
    const char* name = config_.vocabulary > 0 ? "logits" : "last_hidden_state";
    if (config_.vocabulary > 0) x = Pointwise(b_, layers_, "head", x, config_.vocabulary);
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

  const ConformerConfig& config_;
  const Symbol frames_;
  Program program_;
  Function* main_;
  Builder b_;
  Layers layers_;
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
  if (config.stem_taps % 2 == 0)
    throw Error("bad-file", "a convolution has {} taps", config.stem_taps)
        .Expected("an odd number");
  const Symbol frames = PackagedFrames(options, 1, kMostSpectrum, config.most << config.halvings);
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
