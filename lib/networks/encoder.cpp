#include "lib/networks/encoder.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lib/ir/arithmetic.h"
#include "lib/ir/import_options.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/attention.h"
#include "lib/networks/check_weights.h"
#include "lib/networks/heads.h"
#include "lib/networks/masks.h"
#include "lib/networks/norms.h"
#include "lib/networks/relative_position_buckets.h"
#include "lib/networks/rotary.h"
#include "lib/ops/row.h"
#include "lib/support/edit_distance.h"

namespace mlc::networks {

namespace {

using Head = EncoderConfig::Head;
using PositionKind = EncoderConfig::Positions;
using Relative = EncoderConfig::Relative;

class Encoder {
 public:
  Encoder(const EncoderConfig& config, const NetworkWeights& weights, const Symbol& sizes,
          Diagnostics& diagnostics)
      : config_(config),
        sizes_(sizes),
        program_(&Ops()),
        main_(program_.Add("main")),
        b_(main_->body, diagnostics),
        layers_(b_, weights) {}

  Program Build() {
    MakePorts();
    Value* x = Embedded();
    MakeRelativePositions();
    for (int64_t layer = 0; layer < config_.layers; ++layer)
      x = config_.pre_norms ? PreNormLayer(layer, x) : Layer(layer, x);
    if (config_.pre_norms) x = Norm("norm", x);
    AddHead(x);
    main_->body.SetOutputs(outputs_);
    return std::move(program_);
  }

 private:
  struct Angles {
    Value *cosine = nullptr, *sine = nullptr;  // [1, S, half of a head]
  };

  void MakePorts() {
    main_->opset = Opset::kIos15;
    const bool fixed = sizes_.low == sizes_.high;
    Dim tokens = fixed ? Dim(sizes_.low) : Dim::Symbol(main_->FreshSymbol("tokens", sizes_));
    auto input = [&](const char* name) {
      const Shape shape = {1, tokens};
      Value* value = main_->AddInput(name, Type::Tensor(DType::kInt32, shape));
      main_->inputs.push_back({.name = value->name,
                               .source_name = name,
                               .source_dtype = DType::kInt32,
                               .source_shape = shape});
      return value;
    };
    ids_ = input("input_ids");
    b_.SetName("seen");
    Value* mask = input("attention_mask");
    seen_ = Binary(b_, "not_equal", Expanded(b_, mask, {1, 2}), 0);
    if (config_.types) types_ = input("token_type_ids");
  }

  Value* Norm(const std::string& name, Value* x) {
    if (config_.norm == NormKind::kRms)
      return layers_.RmsNorm(name, x, config_.epsilon, config_.norm_adds_one);
    return layers_.LayerNorm(name, x, config_.epsilon);
  }

  Value* Embedded() {
    b_.SetName("embeddings");
    auto table = [&](const char* name, int64_t rows) {
      return layers_.Needed(std::string("embeddings.") + name + ".weight",
                            {rows, config_.embedding});
    };
    tokens_ = table("tokens", config_.vocabulary);
    Value* x = Rows(b_, tokens_, ids_);
    if (config_.types)
      x = Binary(b_, "add", x, Rows(b_, table("types", config_.type_count), types_));
    if (Value* positions = PositionIds())
      x = Binary(b_, "add", x, Rows(b_, table("positions", config_.position_count), positions));
    if (config_.root_width_scale)
      x = Binary(b_, "mul", x, std::sqrt(static_cast<double>(config_.width)));
    if (config_.normed_embeddings) x = Norm("embeddings.norm", x);
    return config_.projected_tokens ? layers_.Linear("embeddings.projection", x, config_.width) : x;
  }

  // Returns [S] or [1, S]; null if the model has no positions.
  Value* PositionIds() {
    if (config_.positions == PositionKind::kNone) return nullptr;
    if (config_.positions == PositionKind::kCounted) return IndicesOf(b_, ids_, 1);
    Value* real = b_.Cast(Binary(b_, "not_equal", ids_, config_.padding), DType::kInt32);
    Value* count = b_.Make("cumsum", {{"x", real}, {"axis", 1}});
    return Binary(b_, "add", Binary(b_, "mul", count, real), config_.padding);
  }

  // The bias of a table by buckets of distances: [1, heads, S, S].
  Value* BiasOf(const std::string& table) {
    Value* bias = layers_.Needed(table, {config_.buckets, config_.heads});
    const Tensor buckets = BiasBuckets(MaxTokens(config_), config_.buckets, config_.max_distance);
    Value* rows = Rows(b_, bias, b_.Const(buckets));
    return Expanded(b_, Transposed(b_, Rows(b_, rows, apart_), {2, 0, 1}), {0});
  }

  // Computes the values that depend only on distances.
  void MakeRelativePositions() {
    b_.SetName("distances");
    if (config_.relative == Relative::kNone) return;
    const int64_t most = MaxTokens(config_);
    Value* at = IndicesOf(b_, ids_, 1);
    // i - j of query i and key j, counted from 0.
    Value* keys = Expanded(b_, at, {0});
    Value* apart = Binary(b_, "sub", Expanded(b_, at, {1}), keys);
    apart = Binary(b_, "add", apart, most - 1);
    apart_ = apart;
    if (config_.relative == Relative::kBias) bias_ = BiasOf("relative_positions.weight");
    if (config_.relative != Relative::kDisentangled) return;
    const int64_t span = Span();
    Tensor buckets = DisentangledBuckets(most, config_.buckets, config_.max_distance, span);
    Value* bucket = Rows(b_, b_.Const(buckets), apart);
    buckets_ = b_.Make(
        "tile", {{"x", Expanded(b_, bucket, {0, 1})}, {"reps", Ints({1, config_.heads, 1, 1})}});
    relative_positions_ = layers_.Needed("relative_positions.weight", {2 * span, config_.width});
    if (config_.relative_norm)
      relative_positions_ = Norm("relative_positions.norm", relative_positions_);
    relative_positions_ = Expanded(b_, relative_positions_, {0});
  }
  int64_t Span() const { return config_.buckets > 0 ? config_.buckets : config_.max_distance; }

  std::string Own(int64_t layer) {
    b_.SetName(fmt::format("layer_{}", layer));
    return fmt::format("layer.{}.", layer);
  }
  Value* Layer(int64_t layer, Value* x) {
    const std::string own = Own(layer);
    x = Norm(own + "attention_norm", Binary(b_, "add", x, Attention(layer, own, x)));
    return Norm(own + "norm", Binary(b_, "add", x, FeedForward(own, x)));
  }
  Value* PreNormLayer(int64_t layer, Value* x) {
    const std::string own = Own(layer);
    // The first layer may lack this norm, since the one of the embeddings precedes it.
    const bool first =
        layer == 0 && config_.normed_embeddings && !layers_.Has(own + "attention_norm.weight");
    auto added = [&](const char* norm, Value* y) {
      return Binary(b_, "add", x, config_.branch_norms ? Norm(own + norm, y) : y);
    };
    Value* into = first ? x : Norm(own + "attention_norm", x);
    x = added("attention_branch_norm", Attention(layer, own, into));
    return added("branch_norm", FeedForward(own, Norm(own + "norm", x)));
  }

  Value* FeedForward(const std::string& own, Value* x) {
    const int64_t size = config_.feed_forward;
    Value *gate = nullptr, *up = nullptr;
    if (config_.gated && layers_.Has(own + "gate_up.weight")) {
      std::vector<Value*> both =
          Parts(b_, layers_.Linear(own + "gate_up", x, 2 * size), {size, size}, 2);
      gate = both[0], up = both[1];
    } else if (config_.gated) {
      gate = layers_.Linear(own + "gate", x, size), up = layers_.Linear(own + "up", x, size);
    } else {
      gate = layers_.Linear(own + "up", x, size);
    }
    Value* y = Activate(b_, config_.activation, gate);
    if (up) y = Binary(b_, "mul", y, up);
    return layers_.Linear(own + "down", y, config_.width);
  }

  struct Projections {
    Value *q, *k, *v;  // [1, heads, S, elements]
  };
  Projections Projected(const std::string& own, Value* x) {
    const int64_t queries = config_.heads * config_.head_dim,
                  keys = config_.kv_heads * config_.head_dim;
    auto split = [&](Value* q, Value* k, Value* v) {
      return Projections{Heads(b_, q, config_.heads), Heads(b_, k, config_.kv_heads),
                         Heads(b_, v, config_.kv_heads)};
    };
    if (layers_.Has(own + "qkv.weight")) {
      std::vector<Value*> all =
          Parts(b_, layers_.Linear(own + "qkv", x, queries + 2 * keys), {queries, keys, keys}, 2);
      return split(all[0], all[1], all[2]);
    }
    Value* v = layers_.Linear(own + "value", x, keys);
    Value* k = layers_.Linear(own + "key", x, keys);
    return split(layers_.Linear(own + "query", x, queries), k, v);
  }

  // Returns queries or keys [1, heads, S, head dimension], normalised and rotated.
  Value* NormAndRotate(const std::string& norm, Value* x, bool local) {
    if (config_.qk_norm) x = Norm(norm, x);
    if (!config_.rotary.used) return x;
    Angles& angles = angles_[local ? 1 : 0];
    if (!angles.cosine) angles = AnglesOf(local);
    return Rotated(b_, x, angles.cosine, angles.sine, config_.rotary.interleaved);
  }
  Angles AnglesOf(bool local) {
    RotaryTable table = MakeRotaryTable(config_.rotary, MaxTokens(config_), {}, local);
    auto rows = [&](const Tensor& angles) {
      Value* positions = IndicesOf(b_, ids_, 1);
      return Expanded(b_, Rows(b_, b_.Const(angles, "angles"), positions), {0});
    };
    return {rows(table.cosine), rows(table.sine)};
  }

  Value* Attention(int64_t layer, const std::string& own, Value* x) {
    auto heads = [&](const char* name, Value* of) {
      return Heads(b_, layers_.Linear(own + name, of, config_.width), config_.heads);
    };
    const bool local = config_.local(layer);
    Projections made = Projected(own, x);
    made.q = NormAndRotate(own + "query_norm", made.q, local);
    made.k = NormAndRotate(own + "key_norm", made.k, local);
    const int kinds = 1 + config_.position_keys + config_.position_queries;
    double scale = config_.attention_scale;
    if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(kinds * config_.head_dim));
    Value* q = scale == 1 ? made.q : Binary(b_, "mul", made.q, scale);
    if (const int64_t group = config_.heads / config_.kv_heads; group > 1)
      made.k = Repeated(b_, made.k, group), made.v = Repeated(b_, made.v, group);
    AttentionParts parts{.q = q, .k = made.k, .v = made.v, .seen = {seen_}};
    if (local)
      if (Value* near = InReach(b_, q, made.k, nullptr, config_.half_window, config_.half_window))
        parts.seen.push_back(near);
    if (config_.relative == Relative::kOwnBias) bias_ = BiasOf(own + "relative_positions.weight");
    if (bias_) parts.biases.push_back(bias_);
    // Selects, from the products of queries or keys with the buckets [1, N, S, buckets], the
    // product for each pair.
    auto of_pairs = [&](Value* products) {
      return b_.Make("gather_along_axis", {{"x", products}, {"indices", buckets_}, {"axis", 3}});
    };
    auto product = [&](Value* a, Value* of) {
      return b_.Make("matmul", {{"x", a}, {"y", of}, {"transpose_y", true}});
    };
    const bool shared = config_.shares_projections;
    if (config_.position_keys)
      parts.biases.push_back(
          of_pairs(product(q, heads(shared ? "key" : "position_key", relative_positions_))));
    if (config_.position_queries) {
      // A key sees the relative position with the opposite sign, so the buckets are transposed, and
      // the result is transposed back.
      Value* queries =
          Binary(b_, "mul", heads(shared ? "query" : "position_query", relative_positions_), scale);
      Value* heard =
          b_.Make("gather_along_axis", {{"x", product(parts.k, queries)},
                                        {"indices", Transposed(b_, buckets_, {0, 1, 3, 2})},
                                        {"axis", 3}});
      parts.biases.push_back(Transposed(b_, heard, {0, 1, 3, 2}));
    }
    return layers_.Linear(own + "attention", Joined(b_, Attend(b_, parts).y), config_.width);
  }

  void Finish(Value* y, const char* name) {
    main_->Rename(y, name);
    main_->outputs.push_back({.name = y->name,
                              .source_name = name,
                              .source_dtype = DType::kFp32,
                              .source_shape = y->type.shape});
    outputs_.push_back(y);
  }
  Value* Pooled(const std::string& name, Value* x) {
    return Activate(b_, config_.pooling, layers_.Linear(name, x, config_.width));
  }
  // Applies the dense layer before the classifier of tokens, if the model has one.
  Value* TokenDense(Value* x) {
    if (!layers_.Has("tokens.dense.weight")) return x;
    return Norm("tokens.norm", Pooled("tokens.dense", x));
  }
  // Returns the pooled tokens [1, W].
  Value* Whole(Value* x) {
    if (!config_.mean_pooling) return Element(b_, x, 0, 1);
    Value* seen = b_.Cast(Reshaped(b_, seen_, {1, -1, 1}), DType::kFp32);
    auto sum = [&](Value* of) { return Reduced(b_, "reduce_sum", of, {1}, false); };
    // Without any tokens the mean is 0 (sentence-transformers' models/Pooling.py, clamp). The lower
    // bound 1 can be represented in fp16.
    Value* count = Binary(b_, "maximum", sum(seen), 1.0);
    return Binary(b_, "real_div", sum(Binary(b_, "mul", x, seen)), count);
  }

  // Follows torch.nn.functional.normalize.
  Value* OfUnitLength(Value* x) {
    constexpr double kLeast = 1e-12;
    Value* length = Reduced(b_, "reduce_l2_norm", x, {-1}, true);
    return Binary(b_, "real_div", x, Binary(b_, "maximum", length, kLeast));
  }

  void AddHead(Value* x) {
    b_.SetName("head");
    switch (config_.output) {
      case Head::kHidden:
        Finish(x, "last_hidden_state");
        if (config_.pooler) Finish(Pooled("pooler", Whole(x)), "pooler_output");
        return;
      case Head::kQuestions: {
        Value* both = layers_.Linear("questions", TokenDense(x), 2);
        Finish(Element(b_, both, 0, 2), "start_logits");
        return Finish(Element(b_, both, 1, 2), "end_logits");
      }
      case Head::kSequence: {
        Value* y = Pooled("sequence.dense", Whole(x));
        if (config_.normed_pooling) y = Norm("sequence.norm", y);
        return Finish(layers_.Linear("sequence.classifier", y, -1), "logits");
      }
      case Head::kTokens:
        return Finish(layers_.Linear("tokens.classifier", TokenDense(x), -1), "logits");
      case Head::kSentence: {
        Value* y = Whole(x);
        for (size_t i = 0; i < config_.dense.size(); ++i)
          y = Activate(b_, config_.dense[i], layers_.Linear(fmt::format("sentence.{}", i), y, -1));
        Finish(config_.unit_length ? OfUnitLength(y) : y, "sentence_embedding");
        return Finish(x, "last_hidden_state");
      }
      case Head::kMaskedLm: {
        Value* y =
            Activate(b_, config_.lm_activation, layers_.Linear("lm.dense", x, config_.embedding));
        y = Norm("lm.norm", y);
        Value* weight =
            layers_.Optional("lm.output.weight", {config_.vocabulary, config_.embedding});
        Builder::Args args = {{"x", y}, {"weight", weight ? weight : tokens_}};
        if (Value* bias = layers_.Optional("lm.output.bias", {config_.vocabulary}))
          args.emplace_back("bias", bias);
        return Finish(b_.Make("linear", std::move(args)), "logits");
      }
    }
  }

  const EncoderConfig config_;
  const Symbol sizes_;  // sizes of S
  Program program_;
  Function* main_;
  Builder b_;
  Layers layers_;
  Value *ids_ = nullptr, *types_ = nullptr, *tokens_ = nullptr;
  Angles angles_[2];                     // for global and local layers
  Value* seen_ = nullptr;                // bool [1, 1, 1, S]
  Value* apart_ = nullptr;               // int32 [S, S]: distances, counted from 0
  Value* bias_ = nullptr;                // added to scores: [1, heads, S, S]
  Value* buckets_ = nullptr;             // int32 [1, heads, S, S]
  Value* relative_positions_ = nullptr;  // [1, buckets, width]
  std::vector<Value*> outputs_;
};

void CheckNumbers(const EncoderConfig& config) {
  for (auto [name, number] : {std::pair{"layers", config.layers},
                              {"dimensions of a hidden state", config.width},
                              {"dimensions of an embedding", config.embedding},
                              {"heads", config.heads},
                              {"dimensions of a feed-forward layer", config.feed_forward},
                              {"tokens in the vocabulary", config.vocabulary},
                              {"positions", MaxTokens(config)}})
    if (number < 1 || number > INT32_MAX)
      throw Error("bad-file", "the model has {} {}", number, name);
  if (!(config.epsilon >= 0) || !std::isfinite(config.epsilon))
    throw Error("bad-file", "the epsilon of norms is {}", config.epsilon);
  // Tables of relative positions and angles grow with the number of tokens.
  constexpr int64_t kMaxTokens = 1 << 17;
  if (MaxTokens(config) > kMaxTokens)
    throw Error("resource-limit", "the model accepts {} tokens", MaxTokens(config))
        .Expected("at most {} tokens", kMaxTokens);
  if (config.head_dim == 0 && config.width % config.heads != 0)
    throw Error("bad-file", "the width {} is not a multiple of the number of heads ({})",
                config.width, config.heads);
  for (auto [name, number] : {std::pair{"number of key/value heads", config.kv_heads},
                              {"size of a head", config.head_dim}})
    if (number < 0 || number > INT32_MAX)
      throw Error("bad-file", "the {} is {}", name, number).Expected("0 to {}", INT32_MAX);
  if (config.kv_heads > 0 && config.heads % config.kv_heads != 0)
    throw Error("bad-file",
                "the number of heads ({}) is not a multiple of the number of key/value heads ({})",
                config.heads, config.kv_heads);
  const bool biased = config.relative == Relative::kBias || config.relative == Relative::kOwnBias;
  if (biased && config.buckets < 4)
    throw Error("bad-file", "the model has {} buckets of relative positions, expected 4 or more",
                config.buckets);
}

// Fills in the numbers that are derived from others.
EncoderConfig Completed(EncoderConfig config) {
  if (config.head_dim == 0) config.head_dim = config.width / config.heads;
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  config.rotary.size = config.head_dim;
  config.half_window = std::clamp<int64_t>(config.half_window, 0, MaxTokens(config));
  if (config.rotary.used && config.head_dim % 2 != 0)
    throw Error("bad-file", "a head has {} dimensions; rotary embedding requires an even number",
                config.head_dim);
  for (double base : {config.rotary.base, config.rotary.local_base})
    if (!(base >= 0 && std::isfinite(base)) || config.rotary.base == 0)
      throw Error("bad-file", "rotary embedding has the base {}", base);
  return config;
}

}  // namespace

int64_t MaxTokens(const EncoderConfig& config) {
  const bool past = config.positions == PositionKind::kPastPadding;
  return config.position_count - (past ? config.padding + 1 : 0);
}

std::pair<std::string, std::string> SplitLayer(const std::string& name) {
  constexpr std::string_view kLayer = "layer.";
  if (!name.starts_with(kLayer)) return {name, ""};
  const size_t end = name.find('.', kLayer.size());
  return {std::string(kLayer) + "{}" + name.substr(end),
          name.substr(kLayer.size(), end - kLayer.size())};
}

Symbol PackagedTokens(const ImportOptions& options, const EncoderConfig& config) {
  constexpr const char* kTokens = "tokens";
  if (options.context)
    throw Error("usage", "option 'context' is for language models; this is an encoder")
        .Help("option 'dim' tokens=... sets the number of tokens");
  const int64_t most = MaxTokens(config);
  Symbol sizes{1, most, {}};
  for (const auto& [name, wanted] : options.dims) {
    if (name != kTokens)
      throw Error("bad-name", "option 'dim' {}: unknown dimension{}", name,
                  DidYouMean(std::array{kTokens}, name))
          .Expected(kTokens);
    if (wanted.high > most)
      throw Error("usage", "option 'dim' {}={}: the model takes at most {}", name, wanted.high,
                  most)
          .Expected("1 to {}", most);
    sizes = wanted;
  }
  return sizes;
}

Program BuildEncoder(const EncoderConfig& config, const NetworkWeights& weights,
                     const Symbol& tokens, Diagnostics& diagnostics) {
  CheckNumbers(config);
  return Encoder(Completed(config), weights, tokens, diagnostics).Build();
}

}  // namespace mlc::networks
