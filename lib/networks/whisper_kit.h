// lib/networks/whisper_kit.h - Whisper as the models that WhisperKit runs (argmaxinc/WhisperKit,
// Sources/WhisperKit/Core). They are functions of one program, each of which becomes a package.
//
// Letters of shapes: W the width, F frames of the encoder, L layers, C the decoder's context, V the
// vocabulary. Floats are fp16.
//
//   MelSpectrogram  audio [samples] -> melspectrogram_features [1, bands, 1, 2 F]
//   AudioEncoder    melspectrogram_features -> encoder_output_embeds [1, W, 1, F]
//   TextDecoder     one token: input_ids int32 [1], cache_length int32 [1], key_cache and value_cache
//                   [1, W L, 1, C], kv_cache_update_mask [1, C], 1 at the token's position,
//                   encoder_output_embeds, decoder_key_padding_mask [1, C], 0 for positions that are
//                   attended to and -10000 for others
//                   -> logits [1, 1, V], key_cache_updates and value_cache_updates [1, W L, 1, 1],
//                   which the app writes into the caches, alignment_heads_weights [1, F] if the model
//                   has alignment heads
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/networks/encoder_decoder.h"

namespace mlc::networks {

// `alignment` lists layers and heads whose cross attention tells the time of a word. Errors of
// BuildEncoderDecoder.
Program BuildWhisperKit(const EncoderDecoderConfig& config,
                        const std::vector<std::pair<int64_t, int64_t>>& alignment,
                        const NetworkWeights& weights, Diagnostics& diagnostics);

}  // namespace mlc::networks
