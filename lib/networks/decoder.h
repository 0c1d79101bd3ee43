// lib/networks/decoder.h - language models that predict the next token: one builder, which a record of
// flags and sizes and a source of weights drive.
//
// The function `main` is the one that swift-transformers runs (its LanguageModel.swift names the
// ports): letters of shapes are S tokens of this call, T those up to the last of them, the past
// included, and C the context.
//   inputs   inputIds int32 [1, S], causalMask fp16 [1, 1, S, T], which is added to scores
//   states   keyCache fp16 [layers, 1, heads of keys, C, elements of a head], valueCache likewise, of
//            layers with attention; of those that remember in other ways convCache fp16 [layers, taps - 1,
//            channels] and, but for short convolutions, recurrentCache fp16 [layers, batch, heads, rows,
//            columns]. A state begins with zeros.
//   outputs  logits fp16 [1, S, vocabulary]
// The tokens stand at positions T - S to T - 1. What comes later than a token is hidden from it
// whatever the mask says, so that one of zeros will do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/networks/bends.h"
#include "lib/networks/norms.h"
#include "lib/networks/rotary_table.h"
#include "lib/support/error.h"

namespace mlc {

// How queries and keys are normalised before rotary embedding.
enum class NormOfHeads : uint8_t {
  kNone,
  kEach,     // each head alone, all with one scale
  kEachOwn,  // each head alone, with its own scale (weights [heads, head]), if there are weights
  kWhole,    // all heads together
};
enum class Gating : uint8_t {
  kSoftmax,          // shares of all experts, of which the largest count
  kSoftmaxOfChosen,  // shares of those with the largest scores
};
// Where a bias must be; elsewhere there may be one.
enum Biases : uint8_t { kNoBias = 0, kQkvBias = 1, kAttentionOutputBias = 2, kFeedForwardBias = 4 };

// What mixes the tokens of a layer.
enum class Mixer : uint8_t { kAttention, kShortConvolution, kMamba, kMamba2, kDeltaNet };

// Of mixers that are no attention.
struct MixerSizes {
  int64_t taps = 0;                   // tokens that a convolution sees, the last one included
  int64_t inner = 0;                  // channels of what is remembered, not for kShortConvolution
  int64_t state = 0;                  // numbers that each of them remembers
  int64_t heads = 0;                  // into which kMamba2 and kDeltaNet divide the channels,
  int64_t groups = 0;                 // and with so many keys: heads of a group share one
  int64_t rank = 0;                   // of the projection to the time steps of kMamba
  bool normalised_selection = false;  // kMamba: time steps, B and C, as FalconMamba has it
};

// What one family of models has (architectures.h), and the numbers of one model.
struct DecoderConfig {
  // Flags.
  NormKind norm = NormKind::kRms;
  bool norm_adds_one = false;     // scales are stored less 1
  bool pre_norms = true;          // of what goes into attention and feed-forward
  bool post_norms = false;        // of what they give
  bool parallel = false;          // both read the same x, under one norm or two
  bool norm_or_parallel = false;  // a layer without a norm of its feed-forward is parallel
  NormOfHeads norm_of_heads = NormOfHeads::kNone;
  Bend bend = Bend::kSilu;  // of feed-forward layers
  bool gated = true;
  bool gate_in_up = false;  // one matrix, the gate's rows first
  uint8_t biases = kNoBias;
  bool sinks = false;
  bool learned_positions = false;
  bool divided_logits = false;      // by logit_scale
  bool root_width_scale = false;    // embeddings are times the square root of the width
  bool gated_attention = false;     // rows of each head's query are followed by those of its gate
  bool feed_forwards = true;        // layers have a feed-forward part
  Mixer mixer = Mixer::kAttention;  // of layers that have no attention
  int64_t attention_every = 0;      // the last of so many layers has attention; 0: none has
  Rotary rotary = {};
  int64_t no_rotary_every = 0;     // the last of so many layers does not turn; 0: all do
  bool turned_in_windows = false;  // where there are windows, layers without one do not turn
  int64_t global_every = 0;        // the last of so many layers has no window; 0: all have
  Gating gating = Gating::kSoftmax;
  bool normalised_gates = true;  // the shares of the chosen experts add up to 1
  // Numbers.
  int64_t layers = 0, width = 0, heads = 0, key_heads = 0, vocabulary = 0;
  int64_t head = 0, value_head = 0;  // elements
  int64_t feed_forward = 0;
  int64_t context = 0;  // the most that the model was made for
  int64_t experts = 0, experts_used = 0, expert_feed_forward = 0;
  int64_t shared_feed_forward = 0;  // of an expert that all tokens take; 0: there is none
  int64_t window = 0;               // keys that a query sees, itself included; 0: all
  MixerSizes recurrent = {};
  // Whether each layer has attention, where attention_every does not say it.
  std::vector<bool> attends = {};
  double epsilon = 1e-5;
  double attention_scale = 0;               // 0: 1 / sqrt(head)
  double attention_cap = 0, logit_cap = 0;  // 0: none
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;

  bool windowed(int64_t layer) const {
    return window > 0 && (global_every == 0 || (layer + 1) % global_every != 0);
  }
  Mixer MixerOf(int64_t layer) const {
    bool has = attends.empty() ? attention_every > 0 && (layer + 1) % attention_every == 0
                               : attends.at(layer);
    return has ? Mixer::kAttention : mixer;
  }
  int64_t AttentionLayers() const;
  bool turned(int64_t layer) const {
    return rotary.used && (no_rotary_every == 0 || (layer + 1) % no_rotary_every != 0) &&
           (!turned_in_windows || window == 0 || windowed(layer));
  }
};

// What a tensor is for. Matrices are [out, in], as `linear` has them; those of experts have them in
// front.
enum class Role : uint8_t {
  kTokens,     // [vocabulary, width]
  kPositions,  // [positions, width]
  kRotaryFactors,
  kRotaryLongFactors,
  kRotaryShortFactors,  // [half of what is turned]
  kOutputNorm,
  kOutput,
  // Of a layer.
  kAttentionNorm,
  kSecondAttentionNorm,  // the norm before attention; kAttentionNorm is then for feed-forward alone
  kQuery,
  kKey,
  kValue,
  kQkv,  // queries, keys and values, one below the other
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
  // Of a layer's mixer that is no attention.
  kMixerInput,
  kConvolution,  // [channels, taps]
  kSelection,    // to time step, B and C
  kTimeStep,     // its bias is that of all time steps
  kAlpha,
  kBeta,
  kDecay,  // by which a state decays; below 0
  kSkip,
  kMixerGate,
  kMixerNorm,
  kMixerOutput,
};
enum class Part : uint8_t { kWeight, kBias };

// Tensors of one model under whatever names its source has for them.
struct DecoderWeights {
  // `layer` is 0 for what is of none. An empty Tensor: the source has none.
  std::function<Tensor(Role, Part, int64_t layer)> find;
  std::function<std::string(Role, Part, int64_t layer)> name;  // which it has, or would have
  // What becomes of a weight in the order in which the network has it, of the source's name; empty:
  // itself.
  std::function<Tensor(const Tensor&, const std::string& name)> stored = {};
};

// The context of a package: what was asked for, else 2048, at most the model's own. Error "usage",
// for --dim too, as there is no dimension that is open.
int64_t PackagedContext(const ImportOptions& options, int64_t own);

// Error "bad-file" where numbers of the model cannot be: sizes that are none, or that do not go
// together, factors that are no positive numbers. BuildDecoder asks, too.
void CheckNumbers(const DecoderConfig& config);

// A program for `context` tokens. Errors "missing-tensor" and "bad-tensor" name what the source
// calls it; "unsupported-architecture" where numbers do not go together.
Program BuildDecoder(const DecoderConfig& config, const DecoderWeights& weights, int64_t context,
                     Diagnostics& diagnostics);

}  // namespace mlc
