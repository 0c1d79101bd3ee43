// lib/networks/token_mixer_table.h - the token mixers other than attention, one row each.
#pragma once

#include "lib/networks/token_mixer.h"

namespace mlc {

struct TokenMixerRow {
  TokenMixer token_mixer;
  Value* (*mix)(const TokenMixerContext& context,
                Value* x);                           // x [1, S, width] and the result likewise
  int64_t (*channels)(const DecoderConfig& config);  // of the convolution
  Dims (*state)(const TokenMixerSizes& sizes);       // of linear_attention.h, without the first 1;
                                                     // empty: none
};

// Not for attention.
const TokenMixerRow& RowOf(TokenMixer token_mixer);

// Error "bad-file" for invalid or inconsistent sizes of the config's token mixer.
void CheckTokenMixer(const DecoderConfig& config);

}  // namespace mlc
