// lib/networks/short_convolution.h - the gated short convolution of LFM2.
#pragma once

#include "lib/networks/token_mixer.h"

namespace mlc {

// x [1, S, width] and the result likewise.
Value* ShortConvolution(const TokenMixerContext& context, Value* x);

}  // namespace mlc
