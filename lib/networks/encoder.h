// lib/networks/encoder.h - a builder for encoders of text (BERT and its relatives, T5's,
// EmbeddingGemma), from flags, sizes and weights.
//
// Ports of the function `main`. Letters of shapes: S tokens, W the width, L labels.
//
//   inputs   input_ids int32 [1, S]
//            attention_mask int32 [1, S], 0 for padding
//            token_type_ids int32 [1, S], for models with types
//   outputs  depend on the head, fp32:
//            kHidden     last_hidden_state [1, S, W]; pooler_output [1, W] for models with a pooler
//            kQuestions  start_logits, end_logits [1, S]
//            kSequence   logits [1, L]
//            kTokens     logits [1, S, L]
//            kMaskedLm   logits [1, S, vocabulary]
//            kSentence   sentence_embedding [1, W], or with the width of the last dense layer;
//                        last_hidden_state
//
// The outputs for padding are meaningless.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lib/ir/program.h"
#include "lib/networks/activation.h"
#include "lib/networks/layers.h"
#include "lib/networks/norms.h"
#include "lib/networks/rotary_table.h"
#include "lib/support/error.h"

namespace mlc {
struct ImportOptions;
}  // namespace mlc

namespace mlc::networks {

// The flags of an architecture (encoder_architectures.h) and the hyperparameters of one model.
struct EncoderConfig {
  // Flags.
  enum class Positions : uint8_t {
    kNone,
    kCounted,      // token i has row i of the table
    kPastPadding,  // positions are counted from the padding row on (RoBERTa)
  } positions = Positions::kCounted;
  enum class Relative : uint8_t {
    kNone,
    kBias,  // added to scores, by buckets of relative positions, shared by all layers (T5, MPNet)
    kOwnBias,       // the same with a table in each layer (UMT5)
    kDisentangled,  // relative positions have keys and queries (DeBERTa, section 3.1)
  } relative = Relative::kNone;
  Rotary rotary = {.used = false};  // for whole heads
  NormKind norm = NormKind::kLayer;
  bool norm_adds_one = false;  // scales are stored minus 1
  bool normed_embeddings = true;
  // Norms of the inputs of attention and feed-forward, and a final norm; otherwise of the outputs.
  bool pre_norms = false;
  bool branch_norms = false;  // pre_norms: norms of the outputs, too, before the sum
  bool qk_norm = false;       // queries and keys are normalised per head before rotary embedding
  bool root_width_scale = false;  // embeddings are multiplied by the square root of the width
  bool gated = false;             // feed-forward networks have gate and up projections
  bool types = false;
  bool projected_tokens = false;  // embeddings are narrower than hidden states
  bool pooler = false;            // kHidden: a layer over the first token; kSequence always has one
  Activation pooling = Activation::kTanh;
  Activation activation = Activation::kGelu, lm_activation = Activation::kGelu;
  enum class Head : uint8_t {
    kHidden,
    kQuestions,
    kSequence,
    kTokens,
    kMaskedLm,
    kSentence,
  } output = Head::kHidden;
  bool normed_pooling = false;  // for kSequence
  bool mean_pooling = false;    // kSequence, kSentence: mean of all tokens, not the first token
  std::vector<Activation> dense = {};  // kSentence: of the linear layers after the pooling
  bool unit_length = false;            // kSentence: the embedding is scaled to length 1
  // For kDisentangled.
  bool position_keys = false, position_queries = false;  // c2p, p2c
  bool shares_projections = false;  // relative positions and tokens share the projections
  bool relative_norm = false;
  // Numbers.
  int64_t layers = 0, width = 0, heads = 0, feed_forward = 0, vocabulary = 0;
  int64_t kv_heads = 0;        // 0: as many as heads
  int64_t head_dim = 0;        // 0: width / heads
  double attention_scale = 0;  // 0: 1 / sqrt(head_dim)
  // Width of embeddings; that of hidden states unless projected_tokens.
  int64_t embedding = 0;
  int64_t type_count = 0, position_count = 0, padding = 0;
  // Number of buckets of relative positions; kDisentangled: per side, 0: one per distance.
  int64_t buckets = 0;
  int64_t max_distance = 128;  // larger distances share the last bucket
  double epsilon = 1e-12;
  // Every n-th layer is global, the first or the last of n; a query of other layers sees
  // half_window keys on each side. 0: all layers are global.
  int64_t global_every = 0, half_window = 0;
  bool global_last = false;

  bool local(int64_t layer) const {
    return global_every > 0 && layer % global_every != (global_last ? global_every - 1 : 0);
  }
};

// The tensors of one model (NetworkWeights, layers.h) have these names; matrices are [out, in], as for `linear`:
//
//   embeddings.tokens embeddings.positions embeddings.types embeddings.norm embeddings.projection
//   relative_positions layer.N.relative_positions distances distances.norm
//   layer.N.query layer.N.key layer.N.value, or layer.N.qkv, their rows in this order
//   layer.N.query_norm layer.N.key_norm
//   layer.N.position_key layer.N.position_query layer.N.attention layer.N.attention_norm
//   layer.N.attention_branch_norm layer.N.branch_norm
//   layer.N.gate layer.N.up, or layer.N.gate_up, the gate's rows first; layer.N.down layer.N.norm
//   norm
//   pooler sequence.dense sequence.norm sequence.classifier tokens.dense tokens.norm
//   tokens.classifier questions sentence.N, layer N after the pooling
//   lm.dense lm.norm lm.output
//
// Each is followed by .weight or .bias. A tensor is empty if the source has none.

// Splits "layer.3.query" into "layer.{}.query" and "3"; other names have no number.
std::pair<std::string, std::string> SplitLayer(const std::string& name);

// Returns the maximum number of tokens.
int64_t MaxTokens(const EncoderConfig& config);
// Returns the sizes of S in a package: those of --dim tokens=..., or else up to the maximum. Errors
// "usage", "bad-name".
Symbol PackagedTokens(const ImportOptions& options, const EncoderConfig& config);
// `tokens` gives the sizes of S, at most MaxTokens. The errors "missing-tensor" and "bad-tensor"
// give the tensor's name in the source; "bad-file" for inconsistent numbers.
Program BuildEncoder(const EncoderConfig& config, const NetworkWeights& weights,
                     const Symbol& tokens, Diagnostics& diagnostics);

}  // namespace mlc::networks
