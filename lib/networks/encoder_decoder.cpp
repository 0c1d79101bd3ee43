#include "lib/networks/encoder_decoder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ir/import_options.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/attention.h"
#include "lib/networks/conformer_layers.h"
#include "lib/networks/convolution_1d.h"
#include "lib/networks/heads.h"
#include "lib/networks/key_value_cache.h"
#include "lib/networks/masks.h"
#include "lib/networks/relative_position_buckets.h"
#include "lib/networks/rotary.h"
#include "lib/networks/speech_encoder.h"
#include "lib/ops/row.h"
#include "lib/support/edit_distance.h"

namespace mlc::networks {

namespace {

using EncoderInput = EncoderDecoderConfig::Input;
using SidePositions = EncoderDecoderConfig::Positions;
using Side = EncoderDecoderConfig::Side;
using SequenceHead = EncoderDecoderConfig::Head;

// The score of a masked key; the sum with any other score is within the range of fp16.
constexpr double kUnseen = -4e4;
constexpr int64_t kUsualTokens = 2048;

// The convolutions of Moonshine's encoder (transformers' modeling_moonshine.py, MoonshineEncoder).
const std::vector<SpeechEncoderConfig::Convolution> kMoonshine = {
    {0, 127, 64}, {0, 7, 3}, {0, 3, 2}};

// The sizes of a package.
struct PackageSizes {
  Symbol inputs;    // I; kSamples: samples
  int64_t context;  // C
};

// Builds one function.
class SequenceFunction {
 public:
  SequenceFunction(const EncoderDecoderConfig& config, const NetworkWeights& weights,
                   const PackageSizes& sizes, Program& program, const char* name,
                   Diagnostics& diagnostics)
      : config_(config),
        sizes_(sizes),
        function_(*program.Add(name)),
        b_(function_.body, diagnostics),
        layers_(b_, weights) {
    function_.opset = Opset::kIos18;
  }

  // Whisper's front end.
  void BuildFeatures() {
    const MelSpectrogram& how = *config_.mel;
    Value* samples =
        AddInput("input_values", DType::kFp32, {1, 2 * config_.encoder.most * how.hop});
    Finish(WhisperMel(b_, samples, how), "input_features");
  }

  void BuildMain() {
    Value* states = Encoded();
    if (config_.head == SequenceHead::kSound) return Finish(SoundLogits(states), "logits");
    if (config_.head == SequenceHead::kSequence || config_.head == SequenceHead::kSpans) {
      ids_ = ShiftedInput();
      positions_ = IndicesOf(b_, ids_, 1);
      return FinishClasses(Decoded(CrossOfEncoder(states)), states);
    }
    ids_ = AddInput(config_.output_ids, DType::kInt32, {1, Size("output", 1, sizes_.context)});
    positions_ = IndicesOf(b_, ids_, 1);
    Value* x = Decoded(CrossOfEncoder(states));
    if (config_.head == SequenceHead::kHidden)
      Finish(x, "last_hidden_state");
    else
      Finish(Logits(x), "logits");
    Finish(states, config_.states);
  }

  void BuildEncode() {
    Value* states = Encoded();
    b_.SetName("cross");
    Value* source = Projected(states);
    std::vector<Value*> keys, values;
    for (int64_t layer = 0; layer < config_.decoder.layers; ++layer) {
      const KeysAndValues made = CrossOf(fmt::format("decoder.layer.{}.", layer), source);
      keys.push_back(made.k);
      values.push_back(made.v);
    }
    Finish(states, "last_hidden_state");
    Finish(b_.Cast(Concat(b_, keys, 0), DType::kFp16), "cross_keys");
    Finish(b_.Cast(Concat(b_, values, 0), DType::kFp16), "cross_values");
  }

  void BuildDecode() {
    const Side& side = config_.decoder;
    ids_ = AddInput("input_ids", DType::kInt32, {1, Size("tokens", 1, sizes_.context)});
    mask_ = AddInput("causal_mask", DType::kFp16,
                     {1, 1, ids_->type.shape[1], Size("end", 1, sizes_.context)});
    Dim inputs;
    if (config_.input == EncoderInput::kTokens) {
      inputs = InputTokens();
      MakeSeen(AddInput("attention_mask", DType::kInt32, {1, inputs}));
    } else if (config_.input == EncoderInput::kMel) {
      inputs = Dim(config_.encoder.most);
    } else {
      inputs = Size("inputs", 1, kMostFrames);
    }
    const Shape shape = {side.layers, side.kv_heads, inputs, side.head_dim};
    Value* keys = AddInput("cross_keys", DType::kFp16, shape);
    Value* values = AddInput("cross_values", DType::kFp16, shape);
    auto state = [&](const char* name) {
      const Shape dims = {side.layers, 1, side.kv_heads, sizes_.context, side.head_dim};
      Value* value = function_.AddInput(name, Type::State(Type::Tensor(DType::kFp16, dims)));
      function_.states.push_back({.name = value->name, .source_name = name});
      return value;
    };
    key_cache_ = state("keyCache");
    value_cache_ = state("valueCache");
    b_.SetName("positions");
    Value* past = Binary(b_, "sub", DimOf(b_, mask_, 3), DimOf(b_, ids_, 1));
    positions_ = Binary(b_, "add", IndicesOf(b_, ids_, 1), past);
    past_ = AsVector(b_, past);
    int64_t layer = 0;
    Value* x = Decoded([&](const std::string&) {
      auto mine = [&](Value* of) {
        return b_.Cast(SliceAlong(b_, of, 0, layer, layer + 1, false), DType::kFp32);
      };
      const KeysAndValues made{mine(keys), mine(values)};
      ++layer;
      return made;
    });
    Finish(Logits(x), "logits");
  }

 private:
  // The most hidden states of an encoder whose number is not known in advance.
  static constexpr int64_t kMostFrames = 1 << 14;

  struct KeysAndValues {
    Value *k, *v;  // [1, key/value heads, I, head dimension]
  };

  Dim Size(const char* name, int64_t low, int64_t high) {
    return low == high ? Dim(low) : Dim::Symbol(function_.FreshSymbol(name, {low, high, {}}));
  }
  Dim InputTokens() {
    const Symbol& size = sizes_.inputs;
    const char* name = config_.input == EncoderInput::kSamples  ? "samples"
                       : config_.input == EncoderInput::kFrames ? "frames"
                                                                : "inputs";
    return size.low == size.high ? Dim(size.low) : Dim::Symbol(function_.FreshSymbol(name, size));
  }
  Value* AddInput(const std::string& name, DType dtype, const Shape& shape) {
    Value* value = function_.AddInput(name, Type::Tensor(dtype, shape));
    function_.inputs.push_back(
        {.name = value->name, .source_name = name, .source_dtype = dtype, .source_shape = shape});
    return value;
  }
  void Finish(Value* y, const std::string& name) {
    function_.Rename(y, name);
    function_.outputs.push_back({.name = y->name,
                                 .source_name = name,
                                 .source_dtype = DType::kFp32,
                                 .source_shape = y->type.shape});
    outputs_.push_back(y);
    function_.body.SetOutputs(outputs_);
  }
  void MakeSeen(Value* mask) {
    b_.SetName("seen");
    seen_ = Binary(b_, "not_equal", Expanded(b_, mask, {1, 2}), 0);
  }

  Value* Norm(const std::string& name, Value* x) {
    return config_.norm == NormKind::kRms ? layers_.RmsNorm(name, x, config_.epsilon)
                                          : layers_.LayerNorm(name, x, config_.epsilon);
  }

  Value* Encoded() {
    if (config_.input == EncoderInput::kOther) return config_.other(function_, b_);
    const Side& side = config_.encoder;
    Value *x = nullptr, *queries = nullptr, *keys = nullptr;
    switch (config_.input) {
      case EncoderInput::kTokens: {
        const Dim tokens = InputTokens();
        Value* ids = input_ids_ = AddInput("input_ids", DType::kInt32, {1, tokens});
        MakeSeen(AddInput("attention_mask", DType::kInt32, {1, tokens}));
        if (config_.picture) picture_ = config_.picture(function_, b_);
        Value* at = IndicesOf(b_, ids, 1);
        x = Embedded("encoder.", side, ids, at);
        queries = at;
        keys = IndicesOf(b_, ids, 1);
        break;
      }
      case EncoderInput::kMel:
        x = WhisperStem();
        break;
      case EncoderInput::kFrames:
        x = FrameStem();
        break;
      default:
        x = MoonshineStem();
    }
    if (config_.positions == SidePositions::kRotary)
      MakeAngles(IndicesOf(b_, x, 1), Greatest(b_, x->type.shape[1]));
    Value* bias = config_.own_distances ? nullptr : Distances("encoder.", side, queries, keys);
    for (int64_t layer = 0; layer < side.layers; ++layer) {
      encoder_states_.push_back(x);
      const std::string own = fmt::format("encoder.layer.{}.", layer);
      if (config_.own_distances) bias = Distances("encoder.", side, queries, keys, own);
      b_.SetName(fmt::format("encoder_{}", layer));
      x = Branch(own + "attention_norm", x, [&](Value* into) {
        AttentionParts parts{.q = Queries(own + "query", side, into, true)};
        const KeysAndValues made = KeysOf(own + "key", own + "value", side, into, true);
        parts.k = Repeated(b_, made.k, side.heads / side.kv_heads);
        parts.v = Repeated(b_, made.v, side.heads / side.kv_heads);
        if (bias) parts.biases.push_back(bias);
        if (seen_) parts.seen.push_back(seen_);
        return layers_.Linear(own + "attention", Joined(b_, Attend(b_, parts).y), side.width);
      });
      x = Branch(own + "norm", x, [&](Value* into) { return FeedForward(own, side, into); });
    }
    b_.SetName("encoder");
    if (config_.final_norms) x = Norm("encoder.norm", x);
    encoder_states_.push_back(x);
    return x;
  }

  // The two convolutions of Whisper's encoder, the second of which halves the number of frames.
  Value* WhisperStem() {
    const Side& side = config_.encoder;
    b_.SetName("stem");
    Value* x = AddInput("input_features", DType::kFp32, {1, config_.bands, 2 * side.most});
    for (const char* name : {"encoder.conv1", "encoder.conv2"}) {
      const int64_t stride = std::string_view(name) == "encoder.conv2" ? 2 : 1;
      x = Convolved(b_, layers_, name, x, {side.width, 3, stride, 1});
      x = Activate(b_, Activation::kGelu, x);
    }
    x = Transposed(b_, x, {0, 2, 1});
    Value* table = layers_.Needed("encoder.positions.weight", {side.most, side.width});
    return Binary(b_, "add", x, Expanded(b_, table, {0}));
  }

  // The convolutions of Speech2Text's encoder, each of which halves the number of frames.
  Value* FrameStem() {
    const Side& side = config_.encoder;
    b_.SetName("stem");
    Value* x = AddInput("input_features", DType::kFp32, {1, InputTokens(), config_.bands});
    x = Transposed(b_, x, {0, 2, 1});
    for (size_t i = 0; i < config_.stem_taps.size(); ++i) {
      const bool last = i + 1 == config_.stem_taps.size();
      const int64_t out = last ? 2 * side.width : config_.stem_channels,
                    taps = config_.stem_taps[i];
      x = Convolved(b_, layers_, fmt::format("encoder.stem.{}", i), x, {out, taps, 2, taps / 2});
      x = GatedHalf(b_, x, out / 2, 1);
    }
    x = Transposed(b_, x, {0, 2, 1});
    if (config_.embedding_scale != 1) x = Binary(b_, "mul", x, config_.embedding_scale);
    return WithPositions("encoder.", side, x, IndicesOf(b_, x, 1));
  }

  // The three convolutions of Moonshine's encoder; the first result is normalised as a whole.
  Value* MoonshineStem() {
    const int64_t width = config_.encoder.width;
    b_.SetName("stem");
    Value* x = AddInput("input_values", DType::kFp32, {1, InputTokens()});
    x = Convolved(b_, layers_, "encoder.conv1", Expanded(b_, x, {1}),
                  {width, kMoonshine[0].taps, kMoonshine[0].stride});
    x = Activate(b_, Activation::kTanh, x);
    auto column = [&](const char* part) {
      return Reshaped(b_, layers_.Needed(std::string("encoder.conv_norm") + part, {width}),
                      {width, int64_t{1}});
    };
    constexpr double kEpsilon = 1e-5;  // of torch.nn.GroupNorm
    Value* centred = Binary(b_, "sub", x, Mean(b_, x, {1, 2}));
    Value* variance = Mean(b_, Binary(b_, "mul", centred, centred), {1, 2});
    x = Binary(b_, "mul", centred, InverseRoot(b_, variance, kEpsilon));
    x = Binary(b_, "add", Binary(b_, "mul", x, column(".weight")), column(".bias"));
    x = Convolved(b_, layers_, "encoder.conv2", x,
                  {2 * width, kMoonshine[1].taps, kMoonshine[1].stride});
    x = Activate(b_, Activation::kGelu, x);
    x = Convolved(b_, layers_, "encoder.conv3", x,
                  {width, kMoonshine[2].taps, kMoonshine[2].stride});
    return Transposed(b_, Activate(b_, Activation::kGelu, x), {0, 2, 1});
  }

  // The encoder's tokens after the first one of the decoder, without the last: [1, I]. That first one
  // is `start`, or the last token that is no padding.
  Value* ShiftedInput() {
    b_.SetName("shifted");
    Value* at = IndicesOf(b_, input_ids_, 1);
    Value* before = Binary(b_, "maximum", Binary(b_, "sub", at, 1), 0);
    if (config_.wraps) {
      Value* tokens = b_.Cast(Binary(b_, "not_equal", input_ids_, config_.padding), DType::kInt32);
      Value* last = Binary(b_, "sub", Reduced(b_, "reduce_sum", tokens, {1}, false), 1);
      Value* first = b_.Cast(Binary(b_, "equal", at, 0), DType::kInt32);
      before = Binary(b_, "add", before, Binary(b_, "mul", first, Binary(b_, "maximum", last, 0)));
      return b_.Make("gather", {{"x", input_ids_}, {"indices", before}, {"axis", 1}});
    }
    Value* moved = b_.Make("gather", {{"x", input_ids_}, {"indices", before}, {"axis", 1}});
    return Select(b_, Expanded(b_, Binary(b_, "equal", at, 0), {0}), config_.start, moved);
  }
  void FinishClasses(Value* x, Value* states) {
    if (config_.head == SequenceHead::kSpans) {
      std::vector<Value*> both = Parts(b_, layers_.Linear("head.output", x, 2), {1, 1}, 2);
      Finish(Squeezed(b_, both[0], {2}), "start_logits");
      Finish(Squeezed(b_, both[1], {2}), "end_logits");
    } else {
      // The place of the last token that ends a text; the first one if there is none.
      Value* ends = b_.Cast(Binary(b_, "equal", input_ids_, config_.end), DType::kInt32);
      Value* place = Binary(b_, "mul", ends, Expanded(b_, IndicesOf(b_, input_ids_, 1), {0}));
      place = Reduced(b_, "reduce_max", place, {1}, false);
      x = Squeezed(b_, b_.Make("gather", {{"x", x}, {"indices", place}, {"axis", 1}}), {1});
      x = Activate(b_, Activation::kTanh, layers_.Linear("head.dense", x, config_.decoder.width));
      Finish(layers_.Linear("head.output", x, -1), "logits");
    }
    Finish(states, config_.states);
  }
  Value* SoundLogits(Value* x) {
    b_.SetName("head");
    if (config_.weighted_layers) x = WeightedSum(b_, layers_, "layer_weights", encoder_states_);
    x = layers_.Linear("head.projection", x, config_.projected);
    return layers_.Linear("head.output", Reduced(b_, "reduce_mean", x, {1}, false), -1);
  }

  std::function<KeysAndValues(const std::string&)> CrossOfEncoder(Value* states) {
    b_.SetName("cross");
    Value* source = Projected(states);
    return [this, source](const std::string& own) { return CrossOf(own, source); };
  }
  Value* Projected(Value* states) {
    if (!layers_.Has("projection.weight")) return states;
    return layers_.Linear("projection", states, config_.decoder.width);
  }

  template <typename Cross>
  Value* Decoded(Cross cross) {
    const Side& side = config_.decoder;
    Value* columns = IndicesOf(b_, mask_ ? mask_ : ids_, mask_ ? 3 : 1);
    b_.SetName("mask");
    Value* hidden = Hidden(b_, Expanded(b_, positions_, {1}), columns, 0);
    Value* causal = mask_ ? Select(b_, hidden, kUnseen, b_.Cast(mask_, DType::kFp32))
                          : Filled(b_, hidden, kUnseen, DType::kFp32);
    Value* bias =
        config_.own_distances ? nullptr : Distances("decoder.", side, positions_, columns);
    Value* x = Embedded("decoder.", side, ids_, positions_);
    if (config_.positions == SidePositions::kRotary) MakeAngles(positions_, side.most);
    for (int64_t layer = 0; layer < side.layers; ++layer) {
      const std::string own = fmt::format("decoder.layer.{}.", layer);
      if (config_.own_distances) bias = Distances("decoder.", side, positions_, columns, own);
      b_.SetName(fmt::format("decoder_{}", layer));
      x = Branch(own + "attention_norm", x, [&](Value* into) {
        AttentionParts parts{.q = Queries(own + "query", side, into, true)};
        KeysAndValues made = KeysOf(own + "key", own + "value", side, into, true);
        if (mask_) {
          // [heads, 1, T, .] -> [1, heads, T, .]
          auto all = [&](Value* cache, Value* fresh) {
            return Transposed(b_, WithPast(b_, cache, layer, past_, mask_, fresh), {1, 0, 2, 3});
          };
          made = {all(key_cache_, made.k), all(value_cache_, made.v)};
        }
        parts.k = Repeated(b_, made.k, side.heads / side.kv_heads);
        parts.v = Repeated(b_, made.v, side.heads / side.kv_heads);
        if (bias) parts.biases.push_back(bias);
        parts.biases.push_back(causal);
        return layers_.Linear(own + "attention", Joined(b_, Attend(b_, parts).y), side.width);
      });
      x = Branch(own + "cross_norm", x, [&](Value* into) {
        AttentionParts parts{.q = Queries(own + "cross_query", side, into, false)};
        const KeysAndValues made = cross(own);
        parts.k = Repeated(b_, made.k, side.heads / side.kv_heads);
        parts.v = Repeated(b_, made.v, side.heads / side.kv_heads);
        if (seen_) parts.seen.push_back(seen_);
        return layers_.Linear(own + "cross", Joined(b_, Attend(b_, parts).y), side.width);
      });
      x = Branch(own + "norm", x, [&](Value* into) { return FeedForward(own, side, into); });
    }
    b_.SetName("head");
    return config_.final_norms ? Norm("decoder.norm", x) : x;
  }

  Value* Logits(Value* x) {
    const Side& side = config_.decoder;
    if (config_.dense_logits)
      x = Norm("lm.norm", Activate(b_, side.activation, layers_.Linear("lm.dense", x, side.width)));
    if (config_.logit_scale != 1) x = Binary(b_, "mul", x, config_.logit_scale);
    Value* weight = layers_.Optional("output.weight", {side.vocabulary, side.width});
    if (!weight) weight = layers_.Needed("decoder.tokens.weight", {side.vocabulary, side.width});
    Builder::Args args = {{"x", x}, {"weight", weight}};
    if (Value* bias = layers_.Optional("output.bias", {side.vocabulary})) {
      if (bias->type.rank() != 1) bias = Reshaped(b_, bias, {side.vocabulary});
      args.emplace_back("bias", bias);
    }
    return b_.Make("linear", std::move(args));
  }

  template <typename Compute>
  Value* Branch(const std::string& norm, Value* x, Compute compute) {
    if (config_.pre_norms) return Binary(b_, "add", x, compute(Norm(norm, x)));
    return Norm(norm, Binary(b_, "add", x, compute(x)));
  }

  Value* Embedded(const std::string& own, const Side& side, Value* ids, Value* at) {
    b_.SetName(own.substr(0, own.size() - 1) + "_embeddings");
    Value* table = layers_.Needed(own + "tokens.weight", {side.vocabulary, side.width});
    Value* x = Rows(b_, table, ids);
    if (config_.embedding_scale != 1) x = Binary(b_, "mul", x, config_.embedding_scale);
    if (picture_ && ids == input_ids_) x = WithPicture(x, ids);
    const bool norm_first = config_.positions_after_norm && own == "decoder.";
    if (norm_first) x = Norm(own + "embedding_norm", x);
    x = WithPositions(own, side, x, at);
    return config_.normed_embeddings && !norm_first ? Norm(own + "embedding_norm", x) : x;
  }

  // Adds rows of the table of positions, if the model has one, to x [1, S, width].
  Value* WithPositions(const std::string& own, const Side& side, Value* x, Value* at) {
    Value* positions = PositionTable(own, side);
    if (!positions) return x;
    Value* rows =
        config_.position_offset == 0 ? at : Binary(b_, "add", at, config_.position_offset);
    return Binary(b_, "add", x, Expanded(b_, Rows(b_, positions, rows), {0}));
  }

  // Replaces the embeddings of picture tokens; each one more takes the next embedding of the picture.
  Value* WithPicture(Value* x, Value* ids) {
    Value* replaced = Binary(b_, "equal", ids, config_.picture_token);
    Value* place = b_.Make("cumsum", {{"x", b_.Cast(replaced, DType::kInt32)}, {"axis", 1}});
    const auto last = static_cast<int32_t>(picture_->type.shape[1].constant() - 1);
    place = Binary(b_, "minimum", Binary(b_, "maximum", Binary(b_, "sub", place, 1), 0), last);
    Value* rows = Rows(b_, Squeezed(b_, picture_, {0}), place);
    return Select(b_, Expanded(b_, replaced, {2}), rows, x);
  }

  // Returns [rows, width], or null if the model has no such table.
  Value* PositionTable(const std::string& own, const Side& side) {
    const std::string name = own + "positions.weight";
    const int64_t rows = side.most + config_.position_offset;
    switch (config_.positions) {
      case SidePositions::kTable:
        return layers_.Needed(name, {rows, side.width});
      case SidePositions::kHalves:
        if (Value* stored = layers_.Optional(name, {rows, side.width})) return stored;
        return b_.Const(Sinusoids(rows, side.width), "sinusoids");
      case SidePositions::kFairseq:
        return b_.Const(Sinusoids(rows, side.width), "sinusoids");
      default:
        return nullptr;
    }
  }
  Tensor Sinusoids(int64_t rows, int64_t width) const {
    const int64_t half = config_.positions == SidePositions::kHalves ? (width + 1) / 2 : width / 2;
    const double step = config_.positions == SidePositions::kHalves
                            ? 2.0 / static_cast<double>(width)
                            : 1.0 / std::max(static_cast<double>(half - 1), 1.0);
    std::vector<float> table(static_cast<size_t>(rows * width), 0);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0; j < half; ++j) {
        const double angle =
            static_cast<double>(row) * std::pow(10000.0, -step * static_cast<double>(j));
        table[static_cast<size_t>(row * width + j)] = static_cast<float>(std::sin(angle));
        if (half + j < width)
          table[static_cast<size_t>(row * width + half + j)] = static_cast<float>(std::cos(angle));
      }
    return Tensor::Of<float>({rows, width}, table);
  }

  // Returns the bias of scores by distance [1, heads, queries, keys]; null if there is none. The table
  // is that of `layer`, or else of all layers.
  Value* Distances(const std::string& own, const Side& side, Value* queries, Value* keys,
                   const std::string& layer = "") {
    if (config_.positions != SidePositions::kDistances) return nullptr;
    b_.SetName("distances");
    const int64_t most = side.most;
    Value* apart = Binary(b_, "sub", Expanded(b_, queries, {1}), Expanded(b_, keys, {0}));
    apart = Binary(b_, "add", apart, most - 1);
    Value* bias = layers_.Needed((layer.empty() ? own : layer) + "distances.weight",
                                 {config_.buckets, side.heads});
    Value* rows =
        Rows(b_, bias,
             b_.Const(BiasBuckets(most, config_.buckets, config_.max_distance, own == "decoder.")));
    return Expanded(b_, Transposed(b_, Rows(b_, rows, apart), {2, 0, 1}), {0});
  }

  void MakeAngles(Value* positions, int64_t rows) {
    b_.SetName("rotary");
    const int64_t pairs = config_.rotary_size / 2;
    std::vector<float> cosine, sine;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0; j < pairs; ++j) {
        const double angle =
            static_cast<double>(row) *
            std::pow(config_.rotary_theta,
                     -2.0 * static_cast<double>(j) / static_cast<double>(config_.rotary_base_size));
        cosine.push_back(static_cast<float>(std::cos(angle)));
        sine.push_back(static_cast<float>(std::sin(angle)));
      }
    auto made = [&](const std::vector<float>& all) {
      Value* table = b_.Const(Tensor::Of<float>({rows, pairs}, all), "angles");
      return Expanded(b_, Rows(b_, table, positions), {0});
    };
    cosine_ = made(cosine);
    sine_ = made(sine);
  }
  Value* Turned(Value* x, bool positions) {
    if (!positions || config_.positions != SidePositions::kRotary) return x;
    return Rotated(b_, x, cosine_, sine_, true);
  }
  Value* Queries(const std::string& name, const Side& side, Value* x, bool positions) {
    double scale = config_.attention_scale;
    if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(side.head_dim));
    Value* q = layers_.Linear(name, x, side.heads * side.head_dim);
    if (scale != 1) q = Binary(b_, "mul", q, scale);
    return Turned(Heads(b_, q, side.heads), positions);
  }
  KeysAndValues KeysOf(const std::string& key, const std::string& value, const Side& side, Value* x,
                       bool positions) {
    auto heads = [&](const std::string& name) {
      return Heads(b_, layers_.Linear(name, x, side.kv_heads * side.head_dim), side.kv_heads);
    };
    Value* k = Turned(heads(key), positions);
    return {k, heads(value)};
  }
  KeysAndValues CrossOf(const std::string& own, Value* source) {
    return KeysOf(own + "cross_key", own + "cross_value", config_.decoder, source, false);
  }

  Value* FeedForward(const std::string& own, const Side& side, Value* x) {
    const int64_t size = side.feed_forward;
    if (!side.gated) {
      x = Activate(b_, side.activation, layers_.Linear(own + "up", x, size));
    } else if (layers_.Has(own + "up_gate.weight")) {
      std::vector<Value*> both =
          Parts(b_, layers_.Linear(own + "up_gate", x, 2 * size), {size, size}, 2);
      x = Binary(b_, "mul", both[0], Activate(b_, side.activation, both[1]));
    } else {
      Value* gate = Activate(b_, side.activation, layers_.Linear(own + "gate", x, size));
      x = Binary(b_, "mul", gate, layers_.Linear(own + "up", x, size));
    }
    return layers_.Linear(own + "down", x, side.width);
  }

  const EncoderDecoderConfig& config_;
  const PackageSizes& sizes_;
  Function& function_;
  Builder b_;
  Layers layers_;
  std::vector<Value*> outputs_;
  Value *ids_ = nullptr, *mask_ = nullptr;
  Value *key_cache_ = nullptr, *value_cache_ = nullptr;
  Value* positions_ = nullptr;                 // int32 [S]
  Value* past_ = nullptr;                      // int32 [1]: the number of past tokens
  Value* seen_ = nullptr;                      // bool [1, 1, 1, I]
  Value* input_ids_ = nullptr;                 // of the encoder
  Value* picture_ = nullptr;                   // [1, P, width]; null if the encoder reads none
  std::vector<Value*> encoder_states_;         // before each layer, and the last
  Value *cosine_ = nullptr, *sine_ = nullptr;  // [1, tokens, half of the rotated dimensions]
};

constexpr int64_t kMostNumber = int64_t{1} << 24, kMostTokens = 1 << 17;

void CheckNumber(const char* name, int64_t number, int64_t least, int64_t most) {
  if (number < least || number > most)
    throw Error("bad-file", "the model has {} {}", number, name).Expected("{} to {}", least, most);
}

void CheckSide(const EncoderDecoderConfig& config, const Side& side, bool decoder) {
  CheckNumber("dimensions of a hidden state", side.width, 1, kMostNumber);
  CheckNumber("layers", side.layers, 1, 1 << 16);
  CheckNumber("heads", side.heads, 1, kMostNumber);
  CheckNumber("key/value heads", side.kv_heads, 1, side.heads);
  CheckNumber("dimensions of a head", side.head_dim, 1, 1 << 14);
  CheckNumber("dimensions of a feed-forward layer", side.feed_forward, 1, kMostNumber);
  if (decoder || config.input != EncoderInput::kSamples)
    CheckNumber("positions", side.most, 1, kMostTokens);
  if (decoder || config.input == EncoderInput::kTokens)
    CheckNumber("tokens in the vocabulary", side.vocabulary, 1, INT32_MAX);
  if (side.heads % side.kv_heads != 0)
    throw Error("bad-file", "the model has {} heads and {} key/value heads", side.heads,
                side.kv_heads)
        .Expected("a multiple of the key/value heads");
}

Side CompletedSide(Side side) {
  if (side.kv_heads == 0) side.kv_heads = side.heads;
  if (side.head_dim == 0 && side.heads > 0) {
    if (side.width % side.heads != 0)
      throw Error("bad-file", "the width {} is not a multiple of the number of heads ({})",
                  side.width, side.heads);
    side.head_dim = side.width / side.heads;
  }
  return side;
}

PackageSizes SizesOf(const ImportOptions& options, const EncoderDecoderConfig& config) {
  PackageSizes sizes{};
  sizes.context = std::min(config.decoder.most, kUsualTokens);
  if (options.context) {
    if (*options.context < 1 || *options.context > config.decoder.most)
      throw Error("usage", "option 'context' {}: the decoder takes at most {} tokens",
                  *options.context, config.decoder.most)
          .Expected("1 to {}", config.decoder.most);
    sizes.context = *options.context;
  }
  if (config.input == EncoderInput::kSamples) {
    ImportOptions only = options;
    only.context.reset();
    sizes.inputs = PackagedSamples(only, LeastSamples(kMoonshine));
    return sizes;
  }
  if (config.input == EncoderInput::kFrames) {
    constexpr int64_t kUsualFrames = 3000;  // of 10 ms
    sizes.inputs = PackagedFrames(options, 1, kUsualFrames, config.encoder.most);
    return sizes;
  }
  constexpr const char* kTokens = "tokens";
  sizes.inputs = {1, config.encoder.most, {}};
  for (const auto& [name, wanted] : options.dims) {
    if (name != kTokens || config.input != EncoderInput::kTokens)
      throw Error("bad-name", "option 'dim' {}: unknown dimension{}", name,
                  config.input == EncoderInput::kTokens ? DidYouMean(std::array{kTokens}, name)
                                                        : std::string())
          .Expected(config.input == EncoderInput::kTokens ? kTokens
                                                          : "none: the encoder's sizes are fixed");
    if (wanted.high > config.encoder.most)
      throw Error("usage", "option 'dim' {}={}: the model takes at most {}", name, wanted.high,
                  config.encoder.most)
          .Expected("1 to {}", config.encoder.most);
    sizes.inputs = wanted;
  }
  return sizes;
}

}  // namespace

EncoderDecoderConfig CheckedEncoderDecoder(const EncoderDecoderConfig& given) {
  EncoderDecoderConfig config = given;
  config.decoder = CompletedSide(config.decoder);
  CheckSide(config, config.decoder, true);
  if (config.input != EncoderInput::kOther) {
    config.encoder = CompletedSide(config.encoder);
    CheckSide(config, config.encoder, false);
  }
  // Sines are constants.
  constexpr int64_t kMostSines = int64_t{1} << 24;
  auto check_sines = [](int64_t positions, int64_t dims) {
    if (dims > kMostSines / positions)
      throw Error("resource-limit", "the model has {} positions of {} dimensions", positions, dims);
  };
  if (config.positions == SidePositions::kHalves || config.positions == SidePositions::kFairseq)
    for (const Side* side : {&config.encoder, &config.decoder})
      if (side->most > 0) check_sines(side->most + config.position_offset, side->width);
  if (config.head == SequenceHead::kSound)
    CheckNumber("dimensions of a projected hidden state", config.projected, 1, kMostNumber);
  if (config.input == EncoderInput::kMel || config.input == EncoderInput::kFrames)
    CheckNumber("mel bands", config.bands, 1, 1 << 12);
  if (config.input == EncoderInput::kFrames) {
    CheckNumber("convolutions of the stem", std::ssize(config.stem_taps), 1, 16);
    CheckNumber("channels of the stem", config.stem_channels, 2, 1 << 16);
    if (config.stem_channels % 2 != 0)
      throw Error("bad-file", "the stem has {} channels", config.stem_channels)
          .Expected("an even number, half of which are gates");
    for (int64_t taps : config.stem_taps) {
      CheckNumber("taps of a convolution", taps, 1, 1 << 10);
      if (taps % 2 == 0)
        throw Error("bad-file", "a convolution has {} taps", taps).Expected("an odd number");
    }
  }
  if (config.mel) {
    // The window is transformed by a table of its square.
    CheckNumber("samples in a window of the spectrogram", config.mel->window, 2, 1 << 12);
    CheckNumber("samples between windows of the spectrogram", config.mel->hop, 1, 1 << 12);
    CheckNumber("samples per second", config.mel->rate, 1000, 1 << 20);
    if (2 * config.encoder.most * config.mel->hop <= config.mel->window)
      throw Error("bad-file", "a window of the spectrogram has {} samples, which is all of them",
                  config.mel->window);
  }
  if (config.positions == SidePositions::kDistances) {
    CheckNumber("buckets of distances", config.buckets, 4, 1 << 16);
    CheckNumber("tokens of the largest distance", config.max_distance, config.buckets / 2 + 1,
                kMostNumber);
  }
  if (config.positions == SidePositions::kRotary) {
    for (const Side* side : {&config.encoder, &config.decoder})
      CheckNumber("rotated dimensions of a head", config.rotary_size, 2, side->head_dim);
    check_sines(config.decoder.most, config.rotary_size);
  }
  if (!(config.epsilon >= 0) || !std::isfinite(config.epsilon))
    throw Error("bad-file", "the epsilon of norms is {}", config.epsilon);
  return config;
}

Program BuildEncoderDecoder(const EncoderDecoderConfig& given, const NetworkWeights& weights,
                            const ImportOptions& options, Diagnostics& diagnostics) {
  const EncoderDecoderConfig config = CheckedEncoderDecoder(given);
  const PackageSizes sizes = SizesOf(options, config);
  Program program(&Ops());
  SequenceFunction(config, weights, sizes, program, "main", diagnostics).BuildMain();
  if (config.head == SequenceHead::kTokens) {
    SequenceFunction(config, weights, sizes, program, "encode", diagnostics).BuildEncode();
    SequenceFunction(config, weights, sizes, program, "decode", diagnostics).BuildDecode();
  }
  if (config.mel)
    SequenceFunction(config, weights, sizes, program, "features", diagnostics).BuildFeatures();
  return program;
}

}  // namespace mlc::networks
