#include "lib/networks/decoder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "lib/ir/arithmetic.h"
#include "lib/ir/import_options.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/attention.h"
#include "lib/networks/decoder_weights.h"
#include "lib/networks/feed_forward.h"
#include "lib/networks/heads.h"
#include "lib/networks/key_value_cache.h"
#include "lib/networks/masks.h"
#include "lib/networks/norms.h"
#include "lib/networks/rotary.h"
#include "lib/networks/token_mixer_table.h"
#include "lib/ops/row.h"
#include "lib/support/edit_distance.h"

namespace mlc::networks {

namespace {

// The score of a masked key; the sum with any other score is within the range of fp16.
constexpr double kHidden = -4e4;
constexpr int64_t kUsualContext = 2048;
// Limits the size of the table of rotary angles.
constexpr int64_t kMaxHeadDim = 1 << 14;

enum class DecoderFunction : uint8_t { kMain, kEmbedTokens, kEmbeds };

class Decoder {
 public:
  // Adds one function to the program.
  Decoder(Program& program, DecoderFunction which, const DecoderConfig& config,
          const DecoderWeights& weights, const DecoderSizes& sizes, Diagnostics& diagnostics)
      : which_(which),
        config_(config),
        sizes_(sizes),
        context_(sizes.context),
        fixed_(sizes.has_fixed_context()),
        main_(program.Add(which == DecoderFunction::kMain          ? "main"
                          : which == DecoderFunction::kEmbedTokens ? "embed_tokens"
                                                                   : "embeds")),
        b_(main_->body, diagnostics),
        tensors_(b_, weights) {}

  void Build() {
    if (which_ == DecoderFunction::kEmbedTokens) {
      main_->opset = Opset::kIos18;
      ids_ = Input("input_ids", DType::kInt32, {1, Size("tokens", sizes_.tokens)});
      return Finish(Embedded(), "inputs_embeds");
    }
    MakePorts();
    MakePositions();
    Value* x = which_ == DecoderFunction::kMain ? Embedded() : ids_;
    if (config_.root_width_scale && (which_ == DecoderFunction::kMain || config_.scales_embeds))
      x = Scaled(x, std::sqrt(static_cast<double>(config_.width)));
    if (config_.learned_positions) x = Binary(b_, "add", x, Rows(b_, PositionTable(), positions_));
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      x = Layer(layer, x);
      if (deepstack_ && layer < config_.deepstack_layers)
        x = Binary(b_, "add", x, SliceAlong(b_, deepstack_, 0, layer, layer + 1, false));
    }
    if (fixed_) WriteCaches();
    Finish(b_.Cast(Logits(Norm(Role::kOutputNorm, 0, x)), DType::kFp16), "logits");
  }

 private:
  // The values that depend on the positions: one set for layers with a window, one for the others.
  struct PositionInputs {
    Value *cosine = nullptr, *sine = nullptr;  // [1, S, half of the rotary dimensions]
    Value* bias = nullptr;                     // the mask [1, 1, S, T], which is added to scores
  };

  // The keys or values of all layers. With a fixed number of tokens: before this call, and each
  // layer after it.
  struct Cache {
    Value *state = nullptr, *before = nullptr;
    std::vector<Value*> after;
  };

  Dim Size(const char* name, const std::optional<Symbol>& given) {
    const Symbol sizes = given.value_or(Symbol{1, context_, {}});
    return sizes.low == sizes.high ? Dim(sizes.low) : Dim::Symbol(main_->FreshSymbol(name, sizes));
  }
  Value* Input(const char* name, DType dtype, const Shape& shape) {
    Value* value = main_->AddInput(name, Type::Tensor(dtype, shape));
    main_->inputs.push_back(
        {.name = value->name, .source_name = name, .source_dtype = dtype, .source_shape = shape});
    return value;
  }

  // Returns the embeddings of the tokens, as `embeds` takes them if that is a function of the model.
  Value* Embedded() {
    Value* x =
        Rows(b_, tensors_.Weight(Role::kTokens, 0, {config_.vocabulary, config_.width}), ids_);
    x = Scaled(x, config_.embedding_scale);
    if (which_ == DecoderFunction::kEmbedTokens && config_.root_width_scale &&
        !config_.scales_embeds)
      x = Scaled(x, std::sqrt(static_cast<double>(config_.width)));
    return x;
  }

  void MakePorts() {
    main_->opset = Opset::kIos18;
    Dim tokens = Size("tokens", sizes_.tokens);
    Dim end = fixed_ ? Dim(context_) : Size("end", sizes_.end);
    const bool embeds = which_ == DecoderFunction::kEmbeds;
    ids_ = embeds ? Input("inputs_embeds", DType::kFp32, {1, tokens, config_.width})
                  : Input("inputIds", DType::kInt32, {1, tokens});
    mask_ = Input("causalMask", DType::kFp16, {1, 1, tokens, end});
    if (embeds && config_.masks_given && config_.window > 0)
      window_mask_ = Input("windowMask", DType::kFp16, {1, 1, tokens, end});
    if (embeds && !config_.rotary_sections.empty())
      places_ = Input("position_ids", DType::kInt32, {3, tokens});
    if (embeds && config_.deepstack_layers > 0)
      deepstack_ = Input("deepstack_embeds", DType::kFp32,
                         {config_.deepstack_layers, tokens, config_.width});
    auto state = [&](const char* name, const Dims& dims) {
      Shape shape(dims.begin(), dims.end());
      Value* value = main_->AddInput(name, Type::State(Type::Tensor(DType::kFp16, shape)));
      main_->states.push_back({.name = value->name, .source_name = name});
      return value;
    };
    if (const int64_t layers = config_.AttentionLayers()) {
      auto cache = [&](const char* name, int64_t elements) {
        return fixed_ ? state(name, {layers, 1, config_.kv_heads * elements, 1, context_})
                      : state(name, {layers, 1, config_.kv_heads, context_, elements});
      };
      key_cache_.state = cache("keyCache", config_.head_dim);
      value_cache_.state = cache("valueCache", config_.value_head_dim);
    }
    if (const int64_t layers = config_.layers - config_.AttentionLayers()) {
      const TokenMixerRow& row = RowOf(config_.token_mixer);
      conv_cache_ = state("convCache", {layers, config_.recurrent.taps - 1, row.channels(config_)});
      Dims dims = row.state(config_.recurrent);
      dims.insert(dims.begin(), layers);
      if (dims.size() > 1) recurrent_cache_ = state("recurrentCache", dims);
    }
  }

  // Computes the positions of the tokens and the values that depend on them.
  void MakePositions() {
    b_.SetName("positions");
    if (fixed_) return MakePositionsOfMask();
    Value* tokens = DimOf(b_, ids_, 1);
    Value* past = Binary(b_, "sub", DimOf(b_, mask_, 3), tokens);
    positions_ = Binary(b_, "add", IndicesOf(b_, ids_, 1), past);
    past_ = AsVector(b_, past);
    if (config_.AttentionLayers() == 0) return;
    MakePositionInputs(false);
    if (config_.window > 0) MakePositionInputs(true);
  }

  // With a fixed number of tokens: the position of a token is the last one that it sees, and it is
  // written there into the caches.
  void MakePositionsOfMask() {
    seen_ = Binary(b_, "greater", b_.Cast(mask_, DType::kFp32), kHidden / 2);
    Value* count = Reduced(b_, "reduce_sum", b_.Cast(seen_, DType::kInt32), {3}, false);
    Value* rows = Binary(b_, "sub", Squeezed(b_, count, {0}), 1);  // [1, S]; -1: padding
    positions_ = Squeezed(b_, Binary(b_, "maximum", rows, 0), {0});
    if (config_.AttentionLayers() == 0) return;
    Value* columns = b_.Const(Ints(Consecutive(0, context_)), "columns");
    Value* written = Binary(b_, "equal", Expanded(b_, rows, {2}), columns);  // [1, S, C]
    written = b_.Cast(written, DType::kFp32);
    Value* any = Reduced(b_, "reduce_max", written, {1}, true);
    kept_ = Expanded(b_, Transposed(b_, Binary(b_, "sub", 1.0, any), {0, 2, 1}), {1});
    written_ = Expanded(b_, Transposed(b_, written, {0, 2, 1}), {1});
    MakePositionInputs(false);
    if (config_.window > 0) MakePositionInputs(true);
    for (Cache* cache : {&key_cache_, &value_cache_})
      cache->before = b_.Make("read_state", {{"input", cache->state}});
  }

  // Returns the keys or values of all positions, with the fresh ones [1, heads, S, head dimension]
  // at theirs: [heads, 1, C, head dimension]. Sums select them, because the Neural Engine does not
  // write at computed positions.
  Value* UpdateFixedCache(Cache& cache, int64_t layer, Value* fresh) {
    const int64_t elements = fresh->type.shape[3].constant();
    Value* old = Element(b_, cache.before, layer, 0);  // [1, heads * elements, 1, C]
    old = WithShape(b_, old, {1, config_.kv_heads, elements, context_});
    old = Transposed(b_, b_.Cast(old, DType::kFp32), {0, 1, 3, 2});
    const bool one = fresh->type.shape[2] == Dim(1);
    Value* placed = Binary(b_, one ? "mul" : "matmul", written_, fresh);
    Value* all = Binary(b_, "add", Binary(b_, "mul", old, kept_), placed);
    Value* flat = WithShape(b_, Transposed(b_, all, {0, 1, 3, 2}),
                            {1, 1, config_.kv_heads * elements, 1, context_});
    cache.after.push_back(b_.Cast(flat, DType::kFp16));
    return WithShape(b_, all, {config_.kv_heads, 1, context_, elements});
  }

  // Writes all layers at once.
  void WriteCaches() {
    b_.SetName("caches");
    for (const Cache* cache : {&key_cache_, &value_cache_})
      if (!cache->after.empty())
        b_.MakeAll("write_state", {{"input", cache->state}, {"data", Concat(b_, cache->after, 0)}});
  }

  void MakePositionInputs(bool local) {
    PositionInputs& around = position_inputs_[local ? 1 : 0];
    b_.SetName("mask");
    if (which_ == DecoderFunction::kEmbeds && config_.masks_given) {
      around.bias = b_.Cast(local ? window_mask_ : mask_, DType::kFp32);
      return MakeAngles(local, around);
    }
    const bool windowed = local && config_.window < context_;
    // Finite numbers keep the results of padding finite, which are multiplied by 0 in the caches.
    auto given = [&] {
      return fixed_ ? Select(b_, seen_, Tensor::Full(DType::kFp32, {}, 0), kHidden)
                    : b_.Cast(mask_, DType::kFp32);
    };
    if (fixed_ && !windowed) {
      around.bias = given();
    } else {
      Value* columns = IndicesOf(b_, mask_, 3);
      Value* hidden =
          Hidden(b_, Expanded(b_, positions_, {1}), columns, windowed ? config_.window : 0);
      around.bias = Select(b_, hidden, kHidden, given());
    }
    MakeAngles(local, around);
  }

  void MakeAngles(bool local, PositionInputs& around) {
    if (!config_.rotary.used) return;
    std::vector<double> factors;
    if (std::optional<Role> role = FactorsRole())
      factors = tensors_.Factors(*role, config_.rotary.size / 2);
    b_.SetName("rotary");
    RotaryTable table = MakeRotaryTable(config_.rotary, context_, factors, local);
    auto rows = [&](const Tensor& angles) {
      Value* all = b_.Const(angles, "angles");
      if (places_) return AnglesOfPlaces(all);
      return Expanded(b_, Rows(b_, all, positions_), {0});
    };
    around.cosine = rows(table.cosine);
    around.sine = rows(table.sine);
  }

  // Each section of pairs takes the angles of its own coordinate.
  Value* AnglesOfPlaces(Value* table) {
    Value* each = Rows(b_, table, places_);  // [3, S, pairs]
    if (config_.alternating_sections) return AlternatingAngles(each);
    std::vector<Value*> sections;
    int64_t first = 0;
    for (size_t i = 0; i < config_.rotary_sections.size(); ++i) {
      const int64_t pairs = config_.rotary_sections[i], place = static_cast<int64_t>(i);
      if (pairs == 0) continue;
      Value* own = SliceAlong(b_, each, 0, place, place + 1, false);
      sections.push_back(SliceAlong(b_, own, 2, first, first + pairs, false));
      first += pairs;
    }
    return sections.size() == 1 ? sections[0] : Concat(b_, sections, 2);
  }

  Value* AlternatingAngles(Value* each) {
    const int64_t pairs = config_.rotary.size / 2;
    Value* angles = SliceAlong(b_, each, 0, 0, 1, false);
    for (int64_t place : {1, 2}) {
      std::vector<bool> own(static_cast<size_t>(pairs), false);
      for (int64_t pair = place; pair < std::min(3 * config_.rotary_sections[place], pairs);
           pair += 3)
        own[static_cast<size_t>(pair)] = true;
      Value* chosen = b_.Const(Tensor::Of<bool>({1, 1, pairs}, own), "section");
      angles = Select(b_, chosen, SliceAlong(b_, each, 0, place, place + 1, false), angles);
    }
    return angles;
  }

  // The factors for long contexts apply to all positions.
  std::optional<Role> FactorsRole() const {
    if (tensors_.Has(Role::kRotaryFactors)) return Role::kRotaryFactors;
    const bool has_long = tensors_.Has(Role::kRotaryLongFactors),
               has_short = tensors_.Has(Role::kRotaryShortFactors);
    if (!has_long && !has_short) return std::nullopt;
    bool reaches_beyond = context_ > config_.rotary.original_context;
    return reaches_beyond ? Role::kRotaryLongFactors : Role::kRotaryShortFactors;
  }

  Value* PositionTable() {
    return tensors_.Weight(Role::kPositions, 0, {config_.context, config_.width});
  }

  Value* Scaled(Value* x, double scale) { return scale == 1 ? x : Binary(b_, "mul", x, scale); }

  Value* Norm(Role role, int64_t layer, Value* x) {
    return Normed(role, layer, x, x->type.shape.back().constant());
  }
  Value* Normed(Role role, int64_t layer, Value* x, int64_t size) {
    Value* scale = tensors_.Weight(role, layer, {size});
    if (config_.norm_adds_one) scale = Binary(b_, "add", scale, 1.0);
    Value* bias = tensors_.Bias(role, layer, {size});
    if (config_.norm == NormKind::kLayer)
      return LayerNorm(b_, x, {-1}, scale, bias, config_.epsilon);
    return RmsNorm(b_, x, {-1}, scale, bias, config_.epsilon).y;
  }

  Value* Layer(int64_t layer, Value* x) {
    b_.SetName(fmt::format("layer_{}", layer));
    auto added = [&](Value* to, Value* y) {
      return Binary(b_, "add", to, Scaled(y, config_.residual_scale));
    };
    Value* into = config_.pre_norms ? Norm(Role::kAttentionNorm, layer, x) : x;
    Value* y = MixTokens(layer, tensors_.Has(Role::kSecondAttentionNorm, layer)
                                    ? Norm(Role::kSecondAttentionNorm, layer, x)
                                    : into);
    if (config_.post_norms) y = Norm(Role::kPostAttentionNorm, layer, y);
    if (!config_.feed_forwards) return added(x, y);
    auto normed = [&] { return tensors_.Has(Role::kFeedForwardNorm, layer); };
    if (config_.parallel || (config_.parallel_without_norm && !normed())) {
      if (normed()) into = Norm(Role::kFeedForwardNorm, layer, x);
      Value* fed = FeedForward(b_, tensors_, config_, layer, into);
      return added(added(x, y), fed);
    }
    x = added(x, y);
    into = config_.pre_norms ? Norm(Role::kFeedForwardNorm, layer, x) : x;
    y = FeedForward(b_, tensors_, config_, layer, into);
    if (config_.post_norms) y = Norm(Role::kPostFeedForwardNorm, layer, y);
    return added(x, y);
  }

  Value* MixTokens(int64_t layer, Value* x) {
    const TokenMixer token_mixer = config_.TokenMixerOf(layer);
    if (token_mixer == TokenMixer::kAttention) return Attention(layer, x);
    TokenMixerContext context{b_,
                              tensors_,
                              config_,
                              layer,
                              {conv_cache_, other_layers_},
                              {recurrent_cache_, other_layers_}};
    ++other_layers_;
    return RowOf(token_mixer).mix(context, x);
  }

  struct Projections {
    Value *q, *k, *v;  // [1, S, heads * head dimension]
    Value* gate;       // gate of the attention output, same shape; null: none
  };

  Projections Project(int64_t layer, Value* x) {
    const int64_t q = config_.heads * config_.head_dim * (config_.gated_attention ? 2 : 1),
                  k = config_.kv_heads * config_.head_dim,
                  v = config_.kv_heads * config_.value_head_dim;
    if (tensors_.Has(Role::kQkv, layer)) {
      Value* all = Projected(b_, tensors_, Role::kQkv, layer, x, q + k + v);
      std::vector<Value*> parts = Parts(b_, all, {q, k, v}, 2);
      return Gated({parts[0], parts[1], parts[2], nullptr});
    }
    auto project = [&](Role role, int64_t size, int64_t heads) {
      if (!InHalves(layer)) return Projected(b_, tensors_, role, layer, x, size);
      Value* weight = tensors_.InHalves(role, Part::kWeight, layer, {size, config_.width}, heads);
      Builder::Args args = {{"x", x}, {"weight", weight}};
      if (Value* bias = tensors_.InHalves(role, Part::kBias, layer, {size}, heads))
        args.emplace_back("bias", bias);
      return b_.Make("linear", std::move(args));
    };
    return Gated({project(Role::kQuery, q, config_.heads), project(Role::kKey, k, config_.kv_heads),
                  Projected(b_, tensors_, Role::kValue, layer, x, v), nullptr});
  }

  Projections Gated(Projections made) {
    if (!config_.gated_attention) return made;
    const int64_t heads = config_.heads, head = config_.head_dim;
    Value* both = Reshaped(b_, made.q, {1, {made.q, 1}, heads, 2 * head});
    std::vector<Value*> parts = Parts(b_, both, {head, head}, 3);
    for (Value*& part : parts) part = Reshaped(b_, part, {1, {part, 1}, heads * head});
    made.q = parts[0];
    made.gate = b_.Make("sigmoid", {{"x", parts[1]}});
    return made;
  }

  // Interleaved pairs are converted to pairs of the two halves of a head, which are cheaper to
  // rotate: queries and keys are permuted in the same way, so their products do not change. A fused
  // tensor of queries, keys and values is not permuted.
  bool InHalves(int64_t layer) const {
    return config_.rotary.used && config_.rotary.interleaved && !tensors_.Has(Role::kQkv, layer) &&
           config_.rotary.size == config_.head_dim && config_.qk_norm == QkNorm::kNone &&
           !config_.gated_attention;
  }

  // Returns queries or keys as [1, heads, S, head dimension], normalised and rotated.
  Value* NormAndRotate(Role norm, int64_t layer, Value* x, int64_t heads) {
    if (config_.qk_norm == QkNorm::kWhole) x = Norm(norm, layer, x);
    x = Heads(b_, x, heads);
    if (config_.qk_norm == QkNorm::kPerHead) x = Norm(norm, layer, x);
    if (config_.qk_norm == QkNorm::kPerHeadOwnScale && tensors_.Has(norm, layer)) {
      Value* scale = tensors_.Weight(norm, layer, {heads, config_.head_dim});
      x = LayerNorm(b_, x, {-1}, Reshaped(b_, scale, {heads, int64_t{1}, config_.head_dim}),
                    nullptr, config_.epsilon);
    }
    if (!config_.has_rotary(layer)) return x;
    const PositionInputs& around = PositionInputsOf(layer);
    return Rotated(b_, x, around.cosine, around.sine,
                   config_.rotary.interleaved && !InHalves(layer));
  }

  const PositionInputs& PositionInputsOf(int64_t layer) const {
    return position_inputs_[config_.windowed(layer) ? 1 : 0];
  }

  // Writes `fresh` [1, heads, S, head dimension] into a layer of a cache and returns the layer's
  // keys or values of all tokens so far: [heads, 1, T, head dimension].
  Value* UpdateCache(Cache& cache, int64_t layer, Value* fresh) {
    if (fixed_) return UpdateFixedCache(cache, layer, fresh);
    return WithPast(b_, cache.state, layer, past_, mask_, fresh);
  }

  // Queries are [key/value heads, group, S, .], so keys and values need not be repeated.
  Value* Attention(int64_t layer, Value* x) {
    Projections made = Project(layer, x);
    const int64_t group = config_.heads / config_.kv_heads;
    Value* q = NormAndRotate(Role::kQueryNorm, layer, made.q, config_.heads);
    double scale = config_.attention_scale;
    if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(config_.head_dim));
    q = Reshaped(b_, Scaled(q, scale), {config_.kv_heads, group, {q, 2}, config_.head_dim});
    Value* k = NormAndRotate(Role::kKeyNorm, layer, made.k, config_.kv_heads);
    Value* v = Heads(b_, made.v, config_.kv_heads);
    AttentionParts parts{.q = q,
                         .k = UpdateCache(key_cache_, attention_layers_, k),
                         .v = UpdateCache(value_cache_, attention_layers_, v),
                         .softcap = config_.attention_cap,
                         .biases = {PositionInputsOf(layer).bias}};
    if (config_.sinks)
      parts.sink = Reshaped(b_, tensors_.Weight(Role::kSinks, layer, {config_.heads}),
                            {config_.kv_heads, group, 1, 1});
    ++attention_layers_;
    Value* y = Attend(b_, parts).y;
    y = Joined(b_, Reshaped(b_, y, {1, config_.heads, {y, 2}, config_.value_head_dim}));
    if (made.gate) y = Binary(b_, "mul", y, made.gate);
    return Projected(b_, tensors_, Role::kAttentionOutput, layer, y, config_.width);
  }

  Value* Logits(Value* x) {
    b_.SetName("head");
    Role role = tensors_.Has(Role::kOutput) ? Role::kOutput : Role::kTokens;
    Value* y = Projected(b_, tensors_, role, 0, x, config_.vocabulary);
    y = Scaled(y, config_.divided_logits ? 1 / config_.logit_scale : config_.logit_scale);
    return config_.logit_cap > 0 ? SoftCapped(b_, y, config_.logit_cap) : y;
  }

  void Finish(Value* y, const char* name) {
    main_->Rename(y, name);
    main_->body.SetOutputs({y});
    main_->outputs.push_back({.name = y->name,
                              .source_name = name,
                              .source_dtype = DType::kFp32,
                              .source_shape = y->type.shape});
  }

  const DecoderFunction which_;
  const DecoderConfig& config_;
  const DecoderSizes sizes_;
  const int64_t context_;
  const bool fixed_;  // no size depends on the past
  Function* main_;
  Builder b_;
  DecoderTensors tensors_;
  Value* ids_ = nullptr;  // the tokens, or their embeddings
  Value *mask_ = nullptr, *window_mask_ = nullptr, *places_ = nullptr, *deepstack_ = nullptr;
  Cache key_cache_, value_cache_;
  Value *conv_cache_ = nullptr, *recurrent_cache_ = nullptr;
  int64_t attention_layers_ = 0,
          other_layers_ = 0;    // number of layers so far with attention, and without
  Value* positions_ = nullptr;  // int32 [S]
  Value* past_ = nullptr;       // int32 [1]: the number of past tokens
  // With a fixed number of tokens: the positions that tokens see, bool [1, 1, S, C]; 1 where a token
  // is written [1, 1, C, S], and where none is [1, 1, C, 1].
  Value *seen_ = nullptr, *written_ = nullptr, *kept_ = nullptr;
  PositionInputs position_inputs_[2];
};

[[noreturn]] void Fail(const std::string& text) { throw Error("bad-file", text); }

void CheckAttention(const DecoderConfig& config) {
  for (auto [name, number] : {std::pair{"heads", config.heads},
                              {"key/value heads", config.kv_heads},
                              {"dimensions of a head", config.head_dim},
                              {"dimensions of a value head", config.value_head_dim}})
    if (number < 1 || number > INT32_MAX) Fail(fmt::format("the model has {} {}", number, name));
  if (std::max(config.head_dim, config.value_head_dim) > kMaxHeadDim)
    Fail(fmt::format("a head has {} dimensions, at most {} are supported",
                     std::max(config.head_dim, config.value_head_dim), kMaxHeadDim));
  for (int64_t elements : {config.head_dim, config.value_head_dim})
    if (config.heads * elements > INT32_MAX)
      Fail(fmt::format("the model has {} heads of {} dimensions", config.heads, elements));
  if (config.heads % config.kv_heads != 0)
    Fail(fmt::format(
        "the number of heads ({}) is not a multiple of the number of key/value heads ({})",
        config.heads, config.kv_heads));
  if (config.gated_attention && config.head_dim != config.value_head_dim)
    Fail(fmt::format("the attention gate has {} dimensions per head, but values have {}",
                     config.head_dim, config.value_head_dim));
}

}  // namespace

int64_t DecoderConfig::AttentionLayers() const {
  if (token_mixer == TokenMixer::kAttention) return layers;
  if (!attends.empty()) return std::ranges::count(attends, true);
  return attention_every > 0 ? layers / attention_every : 0;
}

void CheckNumbers(const DecoderConfig& config) {
  for (auto [name, number] : {std::pair{"layers", config.layers},
                              {"dimensions of an embedding", config.width},
                              {"tokens in the vocabulary", config.vocabulary},
                              {"tokens of context", config.context}})
    if (number < 1 || number > INT32_MAX) Fail(fmt::format("the model has {} {}", number, name));
  if (!config.attends.empty() && std::ssize(config.attends) != config.layers)
    Fail(fmt::format("the model lists the kinds of {} layers, but has {}", config.attends.size(),
                     config.layers));
  if (config.AttentionLayers() > 0) CheckAttention(config);
  if (config.AttentionLayers() < config.layers) CheckTokenMixer(config);
  if (config.window < 0 || config.window > INT32_MAX)
    Fail(fmt::format("a window has {} keys", config.window));
  for (auto [name, number] : {std::pair{"epsilon of norms", config.epsilon},
                              {"scale of embeddings", config.embedding_scale},
                              {"scale of residuals", config.residual_scale},
                              {"scale of logits", config.logit_scale}})
    if (!(number > 0) || !std::isfinite(number))
      Fail(fmt::format("the {} is {}, expected a positive number", name, number));
  for (auto [name, number] : {std::pair{"scale of attention", config.attention_scale},
                              {"cap of attention", config.attention_cap},
                              {"cap of logits", config.logit_cap},
                              {"local base of rotary frequencies", config.rotary.local_base}})
    if (!(number >= 0) || !std::isfinite(number))
      Fail(fmt::format("the {} is {}, expected a non-negative number", name, number));
  for (int64_t size : {config.feed_forward, config.expert_feed_forward, config.shared_feed_forward})
    if (size < 0 || size > INT32_MAX)
      Fail(fmt::format("a feed-forward layer has {} elements", size));
  const Rotary& rotary = config.rotary;
  if (rotary.used && (rotary.size < 2 || rotary.size % 2 != 0 || rotary.size > config.head_dim))
    Fail(
        fmt::format("rotary embedding covers {0} of the {1} dimensions of a head, expected an even "
                    "number from 2 to {1}",
                    rotary.size, config.head_dim));
  for (double number : {rotary.base, rotary.factor, rotary.magnitude, rotary.fast, rotary.slow,
                        rotary.local_magnitude})
    if (rotary.used && !(number > 0 && number < 1e30))
      Fail(
          fmt::format("rotary embedding has base {}, factor {}, magnitude {} and betas {} and {}, "
                      "expected positive numbers",
                      rotary.base, rotary.factor, rotary.magnitude, rotary.fast, rotary.slow));
  if (!config.rotary_sections.empty()) {
    int64_t pairs = 0;
    for (int64_t section : config.rotary_sections)
      pairs += std::clamp<int64_t>(section, -1, INT32_MAX);
    if (config.rotary_sections.size() != 3 || std::ranges::min(config.rotary_sections) < 0 ||
        pairs != rotary.size / 2)
      Fail(fmt::format("the sections of the rotary embedding are {}, expected three that sum to {}",
                       fmt::join(config.rotary_sections, ", "), rotary.size / 2));
  }
  if (config.deepstack_layers < 0 || config.deepstack_layers > config.layers)
    Fail(fmt::format("{} layers take features of pictures, of {}", config.deepstack_layers,
                     config.layers));
  if (config.experts > 0 && (config.experts_used < 1 || config.experts_used > config.experts))
    Fail(fmt::format("a token uses {0} of {1} experts, expected 1 to {1}", config.experts_used,
                     config.experts));
}

DecoderSizes PackagedSizes(const ImportOptions& options, const DecoderConfig& config) {
  DecoderSizes sizes{std::min(kUsualContext, config.context)};
  if (const std::optional<int64_t> asked = options.context) {
    if (*asked < 1 || *asked > config.context)
      throw Error("usage", "option 'context' {}: the model was trained for {} tokens", *asked,
                  config.context)
          .Expected("1 to {}", config.context);
    sizes.context = *asked;
  }
  for (const auto& [name, wanted] : options.dims) {
    if (name != "tokens" && name != "end")
      throw Error("bad-name", "option 'dim' {}: unknown dimension{}", name,
                  DidYouMean(std::array{"tokens", "end"}, name))
          .Expected("tokens or end");
    if (wanted.low < 1 || wanted.high > sizes.context)
      throw Error("usage", "option 'dim' {}={}: the context has {} tokens", name,
                  wanted.low == wanted.high ? std::to_string(wanted.low)
                                            : fmt::format("{}..{}", wanted.low, wanted.high),
                  sizes.context)
          .Expected("1 to {}", sizes.context);
    (name == "end" ? sizes.end : sizes.tokens) = wanted;
  }
  if (sizes.has_fixed_context() && config.AttentionLayers() < config.layers &&
      sizes.tokens->high > 1)
    throw Error("usage",
                "option 'dim' tokens={}: this model has layers with a state that padding would "
                "change",
                sizes.tokens->high)
        .Expected("tokens=1");
  return sizes;
}

Program BuildDecoder(const DecoderConfig& config, const DecoderWeights& weights,
                     const DecoderSizes& sizes, Diagnostics& diagnostics) {
  CheckNumbers(config);
  // Angles are constants: the limit allows a million tokens with heads of 256 dimensions.
  constexpr int64_t kMostAngles = int64_t{1} << 27;
  if (const int64_t angles = config.rotary.used ? config.rotary.size / 2 : 1;
      sizes.context > kMostAngles / angles)
    throw Error("resource-limit", "a context of {} tokens is too long", sizes.context)
        .Expected("at most {} tokens", kMostAngles / angles)
        .Help("option 'context' sets the maximum number of tokens");
  Program program(&Ops());
  Decoder(program, DecoderFunction::kMain, config, weights, sizes, diagnostics).Build();
  return program;
}

void AddEmbedsFunctions(Program& program, const DecoderConfig& config,
                        const DecoderWeights& weights, const DecoderSizes& sizes,
                        Diagnostics& diagnostics) {
  if (config.masks_given && sizes.has_fixed_context())
    throw Error(
        "usage",
        "option 'dim' tokens: tokens of a picture see each other both ways in this model, so "
        "that masks do not give their positions")
        .Expected("any number of tokens, without the option");
  for (DecoderFunction which : {DecoderFunction::kEmbeds, DecoderFunction::kEmbedTokens})
    Decoder(program, which, config, weights, sizes, diagnostics).Build();
}

}  // namespace mlc::networks
