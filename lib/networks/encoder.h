// lib/networks/encoder.h - encoders of text (BERT and its relatives, T5's, EmbeddingGemma): one builder,
// which a record of flags and sizes and a source of weights drive.
//
// The function `main`; letters of shapes: S tokens, W the width, L labels.
//   inputs   input_ids int32 [1, S]
//            attention_mask int32 [1, S], 0 where a token is padding, which nobody sees
//            token_type_ids int32 [1, S], where the model has types
//   outputs  of the head, fp32:
//            kHidden     last_hidden_state [1, S, W]; pooler_output [1, W] where there is a pooler
//            kQuestions  start_logits, end_logits [1, S]
//            kSequence   logits [1, L]
//            kTokens     logits [1, S, L]
//            kMaskedLm   logits [1, S, vocabulary]
//            kSentence   sentence_embedding [1, W], or as wide as the last of its layers;
//                        last_hidden_state, of which it is made
// What it gives for padding is of no use.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/networks/bends.h"
#include "lib/networks/norms.h"
#include "lib/networks/rotary_table.h"
#include "lib/support/error.h"

namespace mlc {

// What one family of models has, and the numbers of one model.
struct EncoderConfig {
  // Flags.
  enum class Positions : uint8_t {
    kNone,
    kCounted,      // row i of the table for token i
    kPastPadding,  // from the row of padding on, which tokens of padding have (RoBERTa)
  } positions = Positions::kCounted;
  enum class Relative : uint8_t {
    kNone,
    kBias,          // of scores, by buckets of the distance, for all layers (T5, MPNet)
    kDisentangled,  // distances have keys and queries, too (DeBERTa, section 3.1)
  } relative = Relative::kNone;
  Rotary rotary = {.used = false};  // all of a head turns
  NormKind norm = NormKind::kLayer;
  bool norm_adds_one = false;  // scales are stored less 1
  bool normed_embeddings = true;
  bool pre_norms = false;  // of what goes into attention and feed-forward, and one behind all; else
                           // of what comes out
  bool branch_norms = false;      // pre_norms: also of what both give, before it is added
  bool norm_of_heads = false;     // of queries and keys, each head, before they turn
  bool root_width_scale = false;  // embeddings are times the square root of the width
  bool gated = false;             // feed-forward: one half activated, times the other
  bool types = false;
  bool projected_tokens = false;  // embeddings are narrower than the rest
  bool pooler = false;            // kHidden: a layer over the first token; kSequence has one anyway
  Bend pooling = Bend::kTanh;
  Bend bend = Bend::kGelu, lm_bend = Bend::kGelu;
  enum class Head : uint8_t {
    kHidden,
    kQuestions,
    kSequence,
    kTokens,
    kMaskedLm,
    kSentence,
  } output = Head::kHidden;
  bool normed_pooling = false;  // kSequence
  bool mean_pooling = false;  // kSequence, kSentence: of all tokens that are seen, not of the first
  std::vector<Bend> dense = {};  // kSentence: of each linear layer behind the pooling
  bool unit_length = false;      // kSentence
  // Of kDisentangled.
  bool position_keys = false, position_queries = false;  // c2p, p2c
  bool shares_projections = false;  // distances and tokens have one for keys, one for queries
  bool normed_distances = false;
  // Numbers.
  int64_t layers = 0, width = 0, heads = 0, feed_forward = 0, vocabulary = 0;
  int64_t key_heads = 0;       // which groups of heads share; 0: each has its own
  int64_t head = 0;            // elements; 0: the width is split
  double attention_scale = 0;  // 0: 1 / sqrt(head)
  int64_t embedding = 0;       // elements of a token's; the width unless projected_tokens
  int64_t type_count = 0, position_count = 0, padding = 0;
  int64_t buckets = 0;     // of distances; kDisentangled: on either side, 0: each has one
  int64_t farthest = 128;  // distance, from which on all have the last bucket
  double epsilon = 1e-12;
  // A query of a layer that is not the first (the last) of so many sees so many keys on either side.
  // 0: all see all.
  int64_t global_every = 0, reach = 0;
  bool global_last = false;

  bool local(int64_t layer) const {
    return global_every > 0 && layer % global_every != (global_last ? global_every - 1 : 0);
  }
};

// Tensors of one model under these names; matrices are [out, in], as `linear` has them:
//   embeddings.tokens embeddings.positions embeddings.types embeddings.norm embeddings.projection
//   distances distances.norm
//   layer.N.query layer.N.key layer.N.value, or layer.N.qkv, one below the other
//   layer.N.query_norm layer.N.key_norm
//   layer.N.position_key layer.N.position_query layer.N.attention layer.N.attention_norm
//   layer.N.attention_branch_norm layer.N.branch_norm
//   layer.N.gate layer.N.up, or layer.N.gate_up, the gate's rows first; layer.N.down layer.N.norm
//   norm
//   pooler sequence.dense sequence.norm sequence.classifier tokens.dense tokens.norm
//   tokens.classifier questions sentence.N, layer N behind the pooling
//   lm.dense lm.norm lm.output
// each with .weight or .bias behind it. An empty Tensor: the source has none.
struct EncoderWeights {
  std::function<Tensor(const std::string&)> find;
  std::function<std::string(const std::string&)> name;  // which the source has, or would have
  // What becomes of a weight, of the source's name; empty: itself.
  std::function<Tensor(const Tensor&, const std::string& name)> stored = {};
};

// "layer.3.query" as "layer.{}.query" and "3"; other names as they are, without a number.
std::pair<std::string, std::string> SplitLayer(const std::string& name);

// How many tokens fit.
int64_t MostTokens(const EncoderConfig& config);
// The sizes that S has in a package: what --dim tokens=... says, else all that fit. Error "usage",
// "bad-name".
Symbol PackagedTokens(const ImportOptions& options, const EncoderConfig& config);
// `tokens`: the sizes that S may have, at most MostTokens. Errors "missing-tensor" and "bad-tensor" name
// what the source calls it; "bad-file" where numbers do not go together.
Program BuildEncoder(const EncoderConfig& config, const EncoderWeights& weights,
                     const Symbol& tokens, Diagnostics& diagnostics);

}  // namespace mlc
