// lib/networks/token_mixer_table.h - the token mixers other than attention, one row each.
#pragma once

#include "lib/networks/token_mixer.h"

namespace mlc::networks {

struct TokenMixerRow {
  TokenMixer token_mixer;
  Value* (*mix)(const TokenMixerContext& context,
                Value* x);  // maps x [1, S, width] to a result of the same shape
  int64_t (*channels)(const DecoderConfig& config);  // number of channels of the convolution
  // Dims of the state in linear_attention.h, without the first 1; empty: no state.
  Dims (*state)(const TokenMixerSizes& sizes);
};

// Returns the row of a token mixer other than attention.
const TokenMixerRow& RowOf(TokenMixer token_mixer);

// Throws the error "bad-file" for invalid or inconsistent sizes of the config's token mixer.
void CheckTokenMixer(const DecoderConfig& config);

}  // namespace mlc::networks
