// lib/networks/speech_encoder.h - a builder for encoders of speech that read samples (wav2vec 2.0 and
// its relatives HuBERT, WavLM, data2vec and SEW, also with the layers of a conformer) or spectrograms
// (Wav2Vec2-BERT), from flags, sizes and weights.
//
// Ports of the function `main`. Letters of shapes: N samples at 16 kHz, F frames, W the width, L labels.
//
//   inputs   input_values fp32 [1, N], or input_features fp32 [1, F, bands]
//   outputs  depend on the head, fp32:
//            kHidden    last_hidden_state [1, F, W], extract_features [1, F, channels of the last
//                       convolution]
//            kFrames    logits [1, F, L]: of CTC, or of a classifier of frames
//            kSequence  logits [1, L]
//            kSpeaker   logits and embeddings [1, L], of a speaker
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/ir/program.h"
#include "lib/networks/activation.h"
#include "lib/networks/conformer_layers.h"
#include "lib/networks/layers.h"
#include "lib/support/error.h"

namespace mlc {
struct ImportOptions;
}  // namespace mlc

namespace mlc::networks {

struct SpeechEncoderConfig {
  // Flags.
  bool group_norm = true;  // GroupNorm after the first convolution; otherwise LayerNorms after all
  bool normed_features = true;  // a norm before the projection of the features
  bool pre_norms = false;   // norms of the inputs of attention and feed-forward, and a final norm
  bool weight_norm = true;  // the convolution of positions is normalised per tap
  // Its input is normalised by running statistics instead.
  bool batch_norm = false;
  // Scores have a bias by buckets of distances, which a gate per query scales (WavLM).
  bool gated_distances = false;
  bool weighted_layers = false;  // the head reads a weighted sum of all hidden states
  enum class Head : uint8_t { kHidden, kFrames, kSequence, kSpeaker } head = Head::kHidden;
  Activation activation = Activation::kGelu, feature_activation = Activation::kGelu;
  // Numbers.
  struct Convolution {
    int64_t channels, taps, stride;
  };
  std::vector<Convolution> convolutions;
  int64_t layers = 0, width = 0, heads = 0, feed_forward = 0;
  int64_t position_taps = 0, position_groups = 0;
  // As many convolutions of positions, each with a norm without weights (data2vec); 0: one.
  int64_t position_layers = 0;
  // The layers see the mean of so many frames, and the output has all frames again (SEW).
  int64_t squeeze = 1;
  int64_t adapter = 0;          // width of the adapter after each feed-forward layer; 0: none
  int64_t output_adapters = 0;  // number of convolutions after the layers, which shorten the output
  int64_t output_taps = 3, output_stride = 2, output_width = 0;
  int64_t labels = 0;     // kFrames, kSequence
  int64_t projected = 0;  // kSequence: the width of the layer before the mean
  // kSpeaker: convolutions of frames before their mean and deviation, and the size of an embedding.
  std::vector<Convolution> delays;  // the strides are dilations
  int64_t embedding = 0;
  int64_t buckets = 0, max_distance = 0;
  // The layers are those of a conformer, whose sizes are those above; the frames have no convolution of
  // positions.
  std::optional<ConformerLayersConfig> conformer = {};
  // The input is a spectrogram of so many bands, with at most so many frames; 0: samples.
  int64_t bands = 0, most_frames = 0;
  // Wav2Vec2-BERT: half a feed-forward layer precedes the output adapters, and these are layers of a
  // transformer whose inputs are shortened.
  bool half_feed_forward = false, attending_adapters = false;
  Activation adapter_activation = Activation::kRelu;  // attending_adapters
  double epsilon = 1e-5;
};

// The tensors of one model (NetworkWeights, layers.h) have these names, followed by .weight or .bias:
//
//   features.N.conv features.N.norm  projection.norm projection
//   positions.conv (or .weight_g and .weight_v), positions.norm with .running_mean, .running_var
//   positions.N.conv with position_layers; upsample
//   norm masked
//   layer.N.{query,key,value,attention,attention_norm,up,down,norm}
//   layer.N.adapter.{norm,down,up}  layer.N.gate  layer.N.gate_scale (no suffix)
//   distances
//   output.projection output.norm output.N; attending_adapters: output.N.{residual_norm,residual,
//   attention_norm,shortened,query,key,value,attention,norm,up,down}; half.up half.down
//   those of the layers of a conformer (conformer_layers.h)
//   layer_weights (no suffix)  head  head.projection  head.delays.N  head.embedding

// Returns the sizes of N in a package: those of --dim samples=..., or else from one frame to 30
// seconds. Errors "usage", "bad-name".
Symbol PackagedSamples(const ImportOptions& options, int64_t least);
// The number of samples that gives so many frames.
int64_t LeastSamples(const std::vector<SpeechEncoderConfig::Convolution>& convolutions,
                     int64_t frames = 1);

// Returns the sum of hidden states, weighted by the softmax of the tensor `name` [states].
Value* WeightedSum(Builder& b, Layers& layers, const std::string& name,
                   const std::vector<Value*>& states);

// Errors "missing-tensor" and "bad-tensor" give the tensor's name in the source; "bad-file" for
// inconsistent numbers.
Program BuildSpeechEncoder(const SpeechEncoderConfig& config, const NetworkWeights& weights,
                           const ImportOptions& options, Diagnostics& diagnostics);

}  // namespace mlc::networks
