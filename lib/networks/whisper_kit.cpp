#include "lib/networks/whisper_kit.h"

#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/masks.h"
#include "lib/ops/row.h"

namespace mlc::networks {

namespace {

using WhisperSide = EncoderDecoderConfig::Side;

// One function. Hidden states are [1, W, 1, S], and linear layers convolutions, as the Neural Engine
// prefers (apple/ml-ane-transformers).
class WhisperKitFunction {
 public:
  WhisperKitFunction(const EncoderDecoderConfig& config, const NetworkWeights& weights,
                     Program& program, const char* name, Diagnostics& diagnostics)
      : config_(config),
        function_(*program.Add(name)),
        b_(function_.body, diagnostics),
        layers_(b_, weights) {
    function_.opset = Opset::kIos16;
  }

  void BuildMelSpectrogram() {
    const int64_t samples = 2 * config_.encoder.most * config_.mel->hop;
    Value* audio = Floats("audio", {samples});
    Value* mel = WhisperMel(b_, Expanded(b_, audio, {0}), *config_.mel);
    Finish(Expanded(b_, mel, {2}), "melspectrogram_features");
  }

  void BuildAudioEncoder() {
    const WhisperSide& side = config_.encoder;
    Value* x = Floats("melspectrogram_features", {1, config_.bands, 1, 2 * side.most});
    b_.SetName("stem");
    for (const char* name : {"encoder.conv1", "encoder.conv2"}) {
      const bool second = std::string_view(name) == "encoder.conv2";
      Value* weight = layers_.Needed(std::string(name) + ".weight",
                                     {side.width, second ? side.width : config_.bands, 3});
      weight = Expanded(b_, weight, {2});
      x = Convolve(x, weight, layers_.Optional(std::string(name) + ".bias", {side.width}),
                   second ? 2 : 1, 1);
      x = Activate(b_, Activation::kGelu, x);
    }
    Value* table = layers_.Needed("encoder.positions.weight", {side.most, side.width});
    x = Binary(b_, "add", x, Expanded(b_, Transposed(b_, table, {1, 0}), {0, 2}));
    for (int64_t layer = 0; layer < side.layers; ++layer) {
      b_.SetName(fmt::format("layer_{}", layer));
      const std::string own = fmt::format("encoder.layer.{}.", layer);
      Value* into = Norm(own + "attention_norm", x);
      Value* y = Attend(side, Linear(own + "query", into), Linear(own + "key", into),
                        Linear(own + "value", into), nullptr)
                     .y;
      x = Binary(b_, "add", x, Linear(own + "attention", y));
      x = Binary(b_, "add", x, FeedForward(own, side, Norm(own + "norm", x)));
    }
    b_.SetName("output");
    Finish(Norm("encoder.norm", x), "encoder_output_embeds");
  }

  void BuildTextDecoder(const std::vector<std::pair<int64_t, int64_t>>& alignment) {
    const WhisperSide& side = config_.decoder;
    const int64_t width = side.width, all = width * side.layers, context = side.most;
    Value* ids = AddPort("input_ids", DType::kInt32, {1});
    Value* length = AddPort("cache_length", DType::kInt32, {1});
    Value* keys = Floats("key_cache", {1, all, 1, context});
    Value* values = Floats("value_cache", {1, all, 1, context});
    Value* written = Floats("kv_cache_update_mask", {1, context});
    Value* source =
        Floats("encoder_output_embeds", {1, config_.encoder.width, 1, config_.encoder.most});
    Value* padding = Floats("decoder_key_padding_mask", {1, context});
    b_.SetName("embeddings");
    Value* tokens = layers_.Needed("decoder.tokens.weight", {side.vocabulary, width});
    Value* positions = layers_.Needed("decoder.positions.weight", {context, width});
    Value* x = Binary(b_, "add", Rows(b_, tokens, ids), Rows(b_, positions, length));
    x = Expanded(b_, x, {2, 3});
    written = Expanded(b_, written, {1, 2});  // [1, 1, 1, C]
    Value* kept = Binary(b_, "sub", 1.0, written);
    Value* bias = Expanded(b_, padding, {1, 2});
    std::vector<Value*> key_updates, value_updates, aligned;
    for (int64_t layer = 0; layer < side.layers; ++layer) {
      b_.SetName(fmt::format("layer_{}", layer));
      const std::string own = fmt::format("decoder.layer.{}.", layer);
      Value* into = Norm(own + "attention_norm", x);
      auto with_past = [&](Value* cache, Value* fresh) {
        Value* past = SliceAlong(b_, cache, 1, layer * width, (layer + 1) * width, false);
        return Binary(b_, "add", Binary(b_, "mul", past, kept), Binary(b_, "mul", fresh, written));
      };
      key_updates.push_back(Linear(own + "key", into));
      value_updates.push_back(Linear(own + "value", into));
      Value* y = Attend(side, Linear(own + "query", into), with_past(keys, key_updates.back()),
                        with_past(values, value_updates.back()), bias)
                     .y;
      x = Binary(b_, "add", x, Linear(own + "attention", y));
      into = Norm(own + "cross_norm", x);
      const Shared shared =
          Attend(side, Linear(own + "cross_query", into), Linear(own + "cross_key", source),
                 Linear(own + "cross_value", source), nullptr);
      for (const auto& [of, head] : alignment)
        if (of == layer) aligned.push_back(SliceAlong(b_, shared.shares, 1, head, head + 1, false));
      x = Binary(b_, "add", x, Linear(own + "cross", shared.y));
      x = Binary(b_, "add", x, FeedForward(own, side, Norm(own + "norm", x)));
    }
    b_.SetName("output");
    x = Reshaped(b_, Norm("decoder.norm", x), {int64_t{1}, int64_t{1}, width});
    Value* weight = layers_.Optional("output.weight", {side.vocabulary, width});
    Finish(b_.Make("linear", {{"x", x}, {"weight", weight ? weight : tokens}}), "logits");
    Finish(Concat(b_, key_updates, 1), "key_cache_updates");
    Finish(Concat(b_, value_updates, 1), "value_cache_updates");
    if (aligned.empty()) return;
    Value* together = aligned.size() == 1 ? aligned[0] : Concat(b_, aligned, 1);
    together = Reduced(b_, "reduce_mean", together, {1}, false);  // [1, 1, F]
    Finish(Squeezed(b_, together, {1}), "alignment_heads_weights");
  }

 private:
  Value* AddPort(const char* name, DType dtype, const Dims& dims) {
    const Shape shape(dims.begin(), dims.end());
    Value* value = function_.AddInput(name, Type::Tensor(dtype, shape));
    function_.inputs.push_back(
        {.name = value->name, .source_name = name, .source_dtype = dtype, .source_shape = shape});
    return value;
  }
  Value* Floats(const char* name, const Dims& dims) {
    return b_.Cast(AddPort(name, DType::kFp16, dims), DType::kFp32);
  }
  void Finish(Value* x, const char* name) {
    Value* y = b_.Cast(x, DType::kFp16);
    function_.Rename(y, name);
    function_.outputs.push_back({.name = y->name,
                                 .source_name = name,
                                 .source_dtype = DType::kFp16,
                                 .source_shape = y->type.shape});
    outputs_.push_back(y);
    function_.body.SetOutputs(outputs_);
  }

  Value* Convolve(Value* x, Value* weight, Value* bias, int64_t stride, int64_t padding) {
    Builder::Args args = {{"x", x},
                          {"weight", weight},
                          {"strides", Ints({1, stride})},
                          {"pad_type", "custom"},
                          {"pad", Ints({0, 0, padding, padding})},
                          {"dilations", Ints({1, 1})},
                          {"groups", 1}};
    if (bias) args.emplace_back("bias", bias);
    return b_.Make("conv", std::move(args));
  }
  Value* Linear(const std::string& name, Value* x) {
    const int64_t in = x->type.shape[1].constant();
    Value* weight = layers_.Needed(name + ".weight", {-1, in});
    const int64_t out = weight->type.shape[0].constant();
    return Convolve(x, Expanded(b_, weight, {2, 3}), layers_.Optional(name + ".bias", {out}), 1, 0);
  }
  Value* Norm(const std::string& name, Value* x) {
    const int64_t size = x->type.shape[1].constant();
    return b_.Make("layer_norm", {{"x", x},
                                  {"axes", Ints({1})},
                                  {"gamma", layers_.Needed(name + ".weight", {size})},
                                  {"beta", layers_.Needed(name + ".bias", {size})},
                                  {"epsilon", config_.epsilon}});
  }
  Value* FeedForward(const std::string& own, const WhisperSide& side, Value* x) {
    return Linear(own + "down", Activate(b_, side.activation, Linear(own + "up", x)));
  }

  struct Shared {
    Value* y;       // [1, W, 1, queries]
    Value* shares;  // [1, heads, queries, keys]
  };
  Shared Attend(const WhisperSide& side, Value* q, Value* k, Value* v, Value* bias) {
    const int64_t size = side.head_dim;
    auto heads = [&](Value* x) {
      return Reshaped(b_, x, {int64_t{1}, side.heads, size, x->type.shape[3].constant()});
    };
    q = Binary(b_, "mul", q, 1 / std::sqrt(static_cast<double>(size)));
    Value* scores = b_.Make("matmul", {{"x", heads(q)}, {"y", heads(k)}, {"transpose_x", true}});
    if (bias) scores = Binary(b_, "add", scores, bias);
    Value* shares = b_.Make("softmax", {{"x", scores}, {"axis", -1}});
    Value* y = b_.Make("matmul", {{"x", heads(v)}, {"y", shares}, {"transpose_y", true}});
    return {
        Reshaped(b_, y, {int64_t{1}, side.heads * size, int64_t{1}, q->type.shape[3].constant()}),
        shares};
  }

  const EncoderDecoderConfig& config_;
  Function& function_;
  Builder b_;
  Layers layers_;
  std::vector<Value*> outputs_;
};

}  // namespace

Program BuildWhisperKit(const EncoderDecoderConfig& given,
                        const std::vector<std::pair<int64_t, int64_t>>& alignment,
                        const NetworkWeights& weights, Diagnostics& diagnostics) {
  const EncoderDecoderConfig config = CheckedEncoderDecoder(given);
  for (const auto& [layer, head] : alignment)
    if (layer < 0 || layer >= config.decoder.layers || head < 0 || head >= config.decoder.heads)
      throw Error("bad-file", "the alignment head {} of layer {} does not exist", head, layer)
          .Expected("below {} heads and {} layers", config.decoder.heads, config.decoder.layers);
  Program program(&Ops());
  auto function = [&](const char* name) {
    return WhisperKitFunction(config, weights, program, name, diagnostics);
  };
  function("MelSpectrogram").BuildMelSpectrogram();
  function("AudioEncoder").BuildAudioEncoder();
  function("TextDecoder").BuildTextDecoder(alignment);
  program.interface.default_function = "TextDecoder";
  return program;
}

}  // namespace mlc::networks
