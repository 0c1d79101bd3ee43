// lib/networks/speech_encoder.h - a builder for encoders of speech that read samples (wav2vec 2.0 and
// its relatives HuBERT and WavLM), from flags, sizes and weights.
//
// Ports of the function `main`. Letters of shapes: N samples at 16 kHz, F frames, W the width, L labels.
//
//   inputs   input_values fp32 [1, N]
//   outputs  depend on the head, fp32:
//            kHidden    last_hidden_state [1, F, W], extract_features [1, F, channels of the last
//                       convolution]
//            kFrames    logits [1, F, L]: of CTC, or of a classifier of frames
//            kSequence  logits [1, L]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/ir/program.h"
#include "lib/networks/activation.h"
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
  enum class Head : uint8_t { kHidden, kFrames, kSequence } head = Head::kHidden;
  Activation activation = Activation::kGelu, feature_activation = Activation::kGelu;
  // Numbers.
  struct Convolution {
    int64_t channels, taps, stride;
  };
  std::vector<Convolution> convolutions;
  int64_t layers = 0, width = 0, heads = 0, feed_forward = 0;
  int64_t position_taps = 0, position_groups = 0;
  int64_t adapter = 0;          // width of the adapter after each feed-forward layer; 0: none
  int64_t output_adapters = 0;  // number of convolutions after the layers, which shorten the output
  int64_t output_taps = 3, output_stride = 2, output_width = 0;
  int64_t labels = 0;     // kFrames, kSequence
  int64_t projected = 0;  // kSequence: the width of the layer before the mean
  int64_t buckets = 0, max_distance = 0;
  double epsilon = 1e-5;
};

// The tensors of one model (NetworkWeights, layers.h) have these names, followed by .weight or .bias:
//
//   features.N.conv features.N.norm  projection.norm projection
//   positions.conv (or .weight_g and .weight_v), positions.norm with .running_mean, .running_var
//   norm masked
//   layer.N.{query,key,value,attention,attention_norm,up,down,norm}
//   layer.N.adapter.{norm,down,up}  layer.N.gate  layer.N.gate_scale (no suffix)
//   distances
//   output.projection output.norm output.N
//   layer_weights (no suffix)  head  head.projection

// Returns the sizes of N in a package: those of --dim samples=..., or else from one frame to 30
// seconds. Errors "usage", "bad-name".
Symbol PackagedSamples(const ImportOptions& options, int64_t least);
// The number of samples that gives one frame.
int64_t LeastSamples(const std::vector<SpeechEncoderConfig::Convolution>& convolutions);

// Errors "missing-tensor" and "bad-tensor" give the tensor's name in the source; "bad-file" for
// inconsistent numbers.
Program BuildSpeechEncoder(const SpeechEncoderConfig& config, const NetworkWeights& weights,
                           const ImportOptions& options, Diagnostics& diagnostics);

}  // namespace mlc::networks
