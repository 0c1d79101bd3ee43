// lib/networks/encoder_decoder.h - a builder for encoder-decoders (T5, BART, Marian, M2M-100, Whisper,
// Moonshine, TrOCR, BLIP, Florence-2), from flags, sizes and weights.
//
// Letters of shapes: I input tokens or hidden states of the encoder, S tokens of this call, T all
// tokens of the decoder so far, C the decoder's context, W the width. The encoder's inputs are
//
//   kTokens   input_ids int32 [1, I], attention_mask int32 [1, I], 0 for padding; with `picture` also
//             what it adds
//   kMel      input_features fp32 [1, bands, 2 * I]: a log-mel spectrogram
//   kSamples  input_values fp32 [1, samples] at 16 kHz
//   kFrames   input_features fp32 [1, frames, bands], which gated convolutions halve several times
//   others    what the caller's encoder takes
//
// The functions of a program are
//
//   main    computes everything once, as transformers' forward does.
//             inputs   those of the encoder, decoder_input_ids int32 [1, S]
//             outputs  logits fp32 [1, S, vocabulary], encoder_last_hidden_state fp32 [1, I, W];
//                      the names are those of the model's class
//   encode  prepares the keys and values of cross attention.
//             inputs   those of the encoder
//             outputs  last_hidden_state fp32 [1, I, W], cross_keys and cross_values fp16 [layers,
//                      heads, I, head dimension]
//   decode  continues the output. Its tokens have the positions T - S to T - 1.
//             inputs   input_ids int32 [1, S], causal_mask fp16 [1, 1, S, T], which is added to
//                      scores and may be all zeros, attention_mask of the encoder's tokens,
//                      cross_keys, cross_values
//             states   keyCache, valueCache fp16 [layers, 1, key/value heads, C, head dimension]
//             outputs  logits fp32 [1, S, vocabulary]
//   features  for kMel: input_values fp32 [1, samples] -> input_features
//
// Without a head that predicts tokens there are only `main` and `features`; the outputs of main are
//
//   kHidden    last_hidden_state fp32 [1, S, W], encoder_last_hidden_state
//   kSequence  logits fp32 [1, labels], encoder_last_hidden_state. The decoder reads the encoder's
//              tokens after `start`; the hidden state at the last `end` is classified.
//   kSpans     start_logits and end_logits fp32 [1, I], encoder_last_hidden_state; as kSequence
//   kSound     logits fp32 [1, labels], from the mean of the encoder's hidden states
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/ir/program.h"
#include "lib/networks/activation.h"
#include "lib/networks/layers.h"
#include "lib/networks/mel_spectrogram.h"
#include "lib/networks/norms.h"
#include "lib/support/error.h"

namespace mlc {
struct ImportOptions;
}  // namespace mlc

namespace mlc::networks {

struct EncoderDecoderConfig {
  enum class Input : uint8_t { kTokens, kMel, kSamples, kFrames, kOther } input = Input::kTokens;
  enum class Positions : uint8_t {
    kTable,   // rows of a table are added to the embeddings
    kHalves,  // sines, then cosines, of frequencies 10000^(-2j/W) (Marian), unless a table is stored
    kFairseq,    // the same with 10000^(-j/(W/2 - 1)) (M2M-100)
    kDistances,  // a bias of scores by buckets of distances, shared by all layers (T5)
    kRotary,     // the first dimensions of queries and keys are rotated, adjacent ones in pairs
  } positions = Positions::kTable;
  int64_t position_offset = 0;  // the row of the first token
  bool own_distances = false;   // kDistances: each layer has its own table (UMT5)
  enum class Head : uint8_t { kTokens, kHidden, kSequence, kSpans, kSound } head = Head::kTokens;
  NormKind norm = NormKind::kLayer;
  bool pre_norms = false;    // norms of inputs of the branches; otherwise of their outputs' sum
  bool final_norms = false;  // of encoder and decoder
  bool normed_embeddings = false;
  bool positions_after_norm = false;  // those of the decoder, if its embeddings are normed
  bool weighted_layers = false;       // kSound: a weighted sum of all hidden states is read
  double embedding_scale = 1;
  double attention_scale = 0;  // 0: 1 / sqrt(head dimension)
  double logit_scale = 1;
  bool dense_logits = false;  // a dense layer and a norm precede the logits (BLIP)
  double epsilon = 1e-5;
  struct Side {
    int64_t layers = 0, width = 0, heads = 0, kv_heads = 0;
    int64_t head_dim = 0;  // 0: width / heads
    int64_t feed_forward = 0, vocabulary = 0;
    int64_t most = 0;  // the most tokens; kMel: I; rows of a table less the offset
    Activation activation = Activation::kGelu;
    bool gated = false;
  } encoder, decoder;
  int32_t start = 0, end = 0;           // kSequence, kSpans: tokens
  bool wraps = false;                   // kSequence, kSpans: the last token takes `start`'s place
  int32_t padding = 0;                  // wraps: the token that is none
  int64_t projected = 0;                // kSound: the width of the layer before the mean
  int64_t bands = 0;                    // kMel, kFrames
  std::vector<int64_t> stem_taps = {};  // kFrames: of the convolutions
  int64_t stem_channels = 0;            // kFrames: of all but the last, before their gates
  std::optional<MelSpectrogram> mel = {};  // kMel: the function `features`
  int64_t buckets = 0, max_distance = 0;   // kDistances
  // kRotary: the rotated dimensions have the frequencies theta^(-2j / rotary_base_size).
  int64_t rotary_size = 0, rotary_base_size = 0;
  double rotary_theta = 10000;
  // kOther: adds the inputs of the encoder to a function, and returns its hidden states [1, I, width].
  std::function<Value*(Function&, Builder&)> other = {};
  // kTokens: adds the input of a picture to a function, and returns embeddings [1, P, width], of which
  // one after the other takes the place of a `picture_token` in the encoder's input (Florence-2).
  std::function<Value*(Function&, Builder&)> picture = {};
  int32_t picture_token = 0;
  // Names in the function main.
  std::string output_ids = "decoder_input_ids", states = "encoder_last_hidden_state";
};

// The tensors of one model (NetworkWeights, layers.h) have these names, followed by .weight or .bias;
// SIDE is encoder or decoder.
//
//   SIDE.tokens SIDE.positions SIDE.embedding_norm SIDE.distances SIDE.norm
//   SIDE.layer.N.{query,key,value,attention,attention_norm}
//   decoder.layer.N.{cross_query,cross_key,cross_value,cross,cross_norm}
//   SIDE.layer.N.{up,gate,down,norm}, or up_gate, the rows of the gate last
//   encoder.stem.N with kFrames
//   encoder.conv1 encoder.conv2 encoder.conv3 encoder.conv_norm
//   projection  of the encoder's hidden states, if widths differ
//   lm.dense lm.norm output
//   head.dense head.output  head.projection  layer_weights (no suffix)
//   SIDE.layer.N.distances with own_distances

// Returns the configuration with the sizes that follow from others. Error "bad-file" for inconsistent
// numbers.
EncoderDecoderConfig CheckedEncoderDecoder(const EncoderDecoderConfig& config);

// Builds the functions; `main` is the first. The sizes of I and C are those of --dim tokens=...
// (samples=...) and --context, or else up to the model's maxima. Errors "missing-tensor" and
// "bad-tensor" give the tensor's name in the source; "bad-file" for inconsistent numbers, "usage" for
// sizes that the model does not support.
Program BuildEncoderDecoder(const EncoderDecoderConfig& config, const NetworkWeights& weights,
                            const ImportOptions& options, Diagnostics& diagnostics);

}  // namespace mlc::networks
