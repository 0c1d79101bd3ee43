// lib/networks/short_convolution.h - the gated short convolution of LFM2.
#pragma once

#include "lib/networks/token_mixer.h"

namespace mlc::networks {

// Maps x [1, S, width] to a result of the same shape.
Value* ShortConvolution(const TokenMixerContext& context, Value* x);

}  // namespace mlc::networks
