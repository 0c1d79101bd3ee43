// lib/networks/mixers.h - the mixers of mixing.h, a row each.
#pragma once

#include "lib/networks/mixing.h"

namespace mlc {

struct MixerRow {
  Mixer mixer;
  Value* (*mix)(const Mixing& with, Value* x);       // x [1, S, width] and the result likewise
  int64_t (*channels)(const DecoderConfig& config);  // that the convolution takes
  Dims (*state)(const MixerSizes& sizes);  // as linear_attention.h has it, without 1 in front;
                                           // empty: there is none
};

// Not for attention.
const MixerRow& RowOf(Mixer mixer);

// Error "bad-file" where sizes of the config's mixer cannot be, or do not go together.
void CheckMixer(const DecoderConfig& config);

}  // namespace mlc
