// lib/networks/conformer.h - a builder for conformers, encoders of speech that read spectrograms
// (Parakeet), from sizes and weights.
//
// Ports of the function `main`. Letters of shapes: N frames of the spectrogram, F frames after
// subsampling, V the vocabulary.
//
//   inputs   input_features fp32 [1, N, bands]
//   outputs  logits fp32 [1, F, V] of CTC, or last_hidden_state fp32 [1, F, width] without a head
//
// The function `features`, if there is a spectrogram: input_values fp32 [1, samples] -> input_features
// [1, samples / hop, bands].
#pragma once

#include <cstdint>
#include <optional>

#include "lib/ir/program.h"
#include "lib/networks/activation.h"
#include "lib/networks/layers.h"
#include "lib/networks/mel_spectrogram.h"
#include "lib/support/error.h"

namespace mlc {
struct ImportOptions;
}  // namespace mlc

namespace mlc::networks {

struct ConformerConfig {
  bool root_width_scale =
      true;  // subsampled features are multiplied by the square root of the width
  Activation activation = Activation::kSilu;
  int64_t layers = 0, width = 0, heads = 0, feed_forward = 0;
  int64_t bands = 80, taps = 9;  // taps of the convolutions of layers
  // The stem halves both dimensions `halvings` times.
  int64_t halvings = 3, channels = 0, stem_taps = 3;
  int64_t most = 5000;                     // the most frames after subsampling
  int64_t vocabulary = 0;                  // 0: no head
  std::optional<MelSpectrogram> mel = {};  // the function `features`
};

// The tensors of one model (NetworkWeights, layers.h) have these names, followed by .weight or .bias:
//
//   stem.0, then stem.N.depthwise stem.N.pointwise of N from 1; stem.linear
//   those of the layers (conformer_layers.h); head

// The sizes of N are those of --dim frames=..., or else up to 30 seconds. Errors as for
// BuildSpeechEncoder.
Program BuildConformer(const ConformerConfig& config, const NetworkWeights& weights,
                       const ImportOptions& options, Diagnostics& diagnostics);

}  // namespace mlc::networks
