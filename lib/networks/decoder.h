// lib/networks/decoder.h - a builder for language models that predict the next token, from flags,
// sizes and weights.
//
// swift-transformers runs the function `main` (its LanguageModel.swift names the ports). Letters of
// shapes: S tokens of this call, T all tokens so far, including the past, C the context.
//
//   inputs   inputIds int32 [1, S], causalMask fp16 [1, 1, S, T], which is added to scores
//   states   keyCache fp16 [layers, 1, key/value heads, C, head dimension] and valueCache of layers
//            with attention; convCache fp16 [layers, taps - 1, channels] of layers with another
//            token mixer, and recurrentCache fp16 [layers, batch, heads, rows, columns] unless that
//            is a short convolution. States are initially zero.
//   outputs  logits fp16 [1, S, vocabulary]
//
// The tokens have the positions T - S to T - 1. Attention is always causal, so that causalMask may
// be all zeros.
//
// If the number of tokens is fixed or listed, no size depends on the past, as the Neural Engine
// requires (apple/coreai-models, neural_engine_rules.md: "Fully static shapes", "KV cache"):
//
//   inputs   causalMask fp16 [1, 1, S, C]: 0 at the positions of the context that a token may see,
//            including its own, and -40000 or less elsewhere. The position of a token is the number
//            of positions that it sees, minus 1. A token that sees none is padding, and its logits
//            are meaningless.
//   states   keyCache fp16 [layers, 1, key/value heads * head dimension, 1, C], valueCache likewise
//
// Models that also read pictures have two more functions (AddEmbedsFunctions). W is the width.
//
//   embed_tokens   input_ids int32 [1, S]   ->   inputs_embeds fp32 [1, S, W]
//   embeds         as `main`, with inputs_embeds fp32 [1, S, W] in the place of inputIds, and, for a
//                  model with rotary_sections, position_ids int32 [3, S]: the places of tokens in time,
//                  height and width. With masks_given, causalMask alone says which tokens a token
//                  sees, and in models with windows, windowMask, of the same shape, says so for
//                  layers with a window. With deepstack_layers N, deepstack_embeds fp32 [N, S, W] is
//                  added to the states after the first N layers: zeros for tokens of text
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/ir/program.h"
#include "lib/networks/activation.h"
#include "lib/networks/norms.h"
#include "lib/networks/rotary_table.h"
#include "lib/support/error.h"

namespace mlc {
struct ImportOptions;
}  // namespace mlc

namespace mlc::networks {

// Normalisation of queries and keys before rotary embedding.
enum class QkNorm : uint8_t {
  kNone,
  kPerHead,          // each head, with one scale for all heads
  kPerHeadOwnScale,  // each head, with a separate scale per head [heads, head dimension]; optional
  kWhole,            // all heads together
};
enum class Gating : uint8_t {
  kSoftmax,          // softmax over all experts, then the largest weights are chosen
  kSoftmaxOfChosen,  // softmax over the scores of the chosen experts
};

// The operator that mixes the tokens in a layer.
enum class TokenMixer : uint8_t { kAttention, kShortConvolution, kMamba, kMamba2, kDeltaNet };

// The sizes of token mixers other than attention.
struct TokenMixerSizes {
  int64_t taps = 0;    // number of tokens in a convolution's window, including the current one
  int64_t inner = 0;   // number of channels of the recurrent state; not kShortConvolution
  int64_t state = 0;   // state size per channel
  int64_t heads = 0;   // kMamba2, kDeltaNet: number of heads
  int64_t groups = 0;  // kMamba2, kDeltaNet: number of groups of heads that share a key
  int64_t rank = 0;    // kMamba: rank of the projection to time steps
  bool normalised_selection = false;  // kMamba: time steps, B and C are normalised (FalconMamba)
};

// The flags of an architecture (architectures.h) and the hyperparameters of one model.
struct DecoderConfig {
  // Flags.
  NormKind norm = NormKind::kRms;
  bool norm_adds_one = false;  // scales are stored minus 1
  bool pre_norms = true;       // norms of the inputs of attention and feed-forward
  bool post_norms = false;     // norms of the outputs of attention and feed-forward
  bool parallel = false;       // attention and feed-forward read the same x, with one norm or two
  bool parallel_without_norm = false;  // a layer without a feed-forward norm is parallel
  QkNorm qk_norm = QkNorm::kNone;
  Activation activation = Activation::kSilu;  // activation of feed-forward layers
  bool gated = true;
  bool gate_in_up = false;  // gate and up projection are one matrix, the gate's rows first
  bool sinks = false;
  bool learned_positions = false;
  bool divided_logits = false;    // logits are divided by logit_scale
  bool root_width_scale = false;  // embeddings are multiplied by the square root of the width
  bool gated_attention = false;   // the query rows of each head are followed by those of its gate
  bool feed_forwards = true;      // layers have a feed-forward network
  TokenMixer token_mixer = TokenMixer::kAttention;  // for layers without attention
  int64_t attention_every = 0;  // with another token_mixer, every n-th layer has attention; 0: none
  Rotary rotary = {};
  // Numbers of pairs whose angles are those of the place in time, height and width; empty: there is one
  // position. They sum to the number of pairs. In `main`, the three are equal.
  std::vector<int64_t> rotary_sections = {};
  // The sections alternate: pairs 1, 4, 7 ... take the height and 2, 5, 8 ... the width, as many as the
  // sections say, and all others the time (Qwen 3 VL).
  bool alternating_sections = false;
  // After each of the first layers, `embeds` adds rows of its input deepstack_embeds; 0: there is none.
  int64_t deepstack_layers = 0;
  bool scales_embeds = false;           // root_width_scale applies to inputs_embeds of `embeds`
  bool masks_given = false;             // `embeds` does not hide tokens by itself
  int64_t no_rotary_every = 0;          // every n-th layer has no rotary embedding; 0: all have
  bool rotary_in_windows_only = false;  // in models with windows, only layers with a window rotate
  int64_t global_every = 0;             // every n-th layer has no window; 0: all have
  Gating gating = Gating::kSoftmax;
  bool normalised_gates = true;  // the weights of the chosen experts sum to 1
  // Numbers.
  int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, vocabulary = 0;
  int64_t head_dim = 0, value_head_dim = 0;
  int64_t feed_forward = 0;
  int64_t context = 0;  // the maximum training context
  int64_t experts = 0, experts_used = 0, expert_feed_forward = 0;
  int64_t shared_feed_forward = 0;  // width of the shared expert, which all tokens use; 0: none
  int64_t window = 0;               // number of keys that a query sees, including its own; 0: all
  TokenMixerSizes recurrent = {};
  // True if each layer has attention; if empty, attention_every applies.
  std::vector<bool> attends = {};
  double epsilon = 1e-5;
  double attention_scale = 0;               // 0: 1 / sqrt(head_dim)
  double attention_cap = 0, logit_cap = 0;  // 0: none
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;

  bool windowed(int64_t layer) const {
    return window > 0 && (global_every == 0 || (layer + 1) % global_every != 0);
  }
  TokenMixer TokenMixerOf(int64_t layer) const {
    bool has = attends.empty() ? attention_every > 0 && (layer + 1) % attention_every == 0
                               : attends.at(layer);
    return has ? TokenMixer::kAttention : token_mixer;
  }
  int64_t AttentionLayers() const;
  bool has_rotary(int64_t layer) const {
    return rotary.used && (no_rotary_every == 0 || (layer + 1) % no_rotary_every != 0) &&
           (!rotary_in_windows_only || window == 0 || windowed(layer));
  }
};

// The role of a tensor. Matrices are [out, in], as for `linear`; those of experts are
// [experts, out, in].
enum class Role : uint8_t {
  kTokens,     // [vocabulary, width]
  kPositions,  // [positions, width]
  kRotaryFactors,
  kRotaryLongFactors,
  kRotaryShortFactors,  // [half of the rotary dimensions]
  kOutputNorm,
  kOutput,
  // One per layer.
  kAttentionNorm,
  kSecondAttentionNorm,  // norm before attention; kAttentionNorm is then for feed-forward only
  kQuery,
  kKey,
  kValue,
  kQkv,  // the rows of queries, keys and values, in this order
  kQueryNorm,
  kKeyNorm,
  kSinks,  // [heads]
  kAttentionOutput,
  kPostAttentionNorm,
  kFeedForwardNorm,
  kGate,
  kUp,
  kDown,
  kPostFeedForwardNorm,
  kRouter,
  kExpertGates,
  kExpertUps,
  kExpertDowns,
  kSharedRouter,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  // For token mixers other than attention.
  kMixerInput,
  kConvolution,  // [channels, taps]
  kSelection,    // the projection to time step, B and C
  kTimeStep,     // its bias is added to all time steps
  kAlpha,
  kBeta,
  kDecay,  // values are negative
  kSkip,
  kMixerGate,
  kMixerNorm,
  kMixerOutput,
};
enum class Part : uint8_t { kWeight, kBias };

// The tensors of one model.
struct DecoderWeights {
  // `layer` is 0 for tensors outside of layers. Returns an empty tensor if the source has none.
  std::function<Tensor(Role, Part, int64_t layer)> find;
  std::function<std::string(Role, Part, int64_t layer)> name;  // name in the source
};

struct DecoderSizes {
  int64_t context;
  // The sizes of S and T; absent: any up to the context. With `tokens` alone, the context is fixed.
  std::optional<Symbol> tokens = {}, end = {};
  bool has_fixed_context() const { return tokens && !end; }
};
// Returns the sizes of a package. The context is the requested one, or else 2048, limited to the
// model's own. Error "usage" for sizes that the model does not support.
DecoderSizes PackagedSizes(const ImportOptions& options, const DecoderConfig& config);

// Throws the error "bad-file" for invalid or inconsistent numbers. BuildDecoder calls it, too.
void CheckNumbers(const DecoderConfig& config);

// Returns a program for these sizes. The errors "missing-tensor" and "bad-tensor" give the
// tensor's name in the source; "unsupported-architecture" for incompatible numbers.
Program BuildDecoder(const DecoderConfig& config, const DecoderWeights& weights,
                     const DecoderSizes& sizes, Diagnostics& diagnostics);

// Adds the functions `embed_tokens` and `embeds` to the program of BuildDecoder for the same arguments.
void AddEmbedsFunctions(Program& program, const DecoderConfig& config,
                        const DecoderWeights& weights, const DecoderSizes& sizes,
                        Diagnostics& diagnostics);

}  // namespace mlc::networks
