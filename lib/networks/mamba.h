// lib/networks/mamba.h - selective state spaces.
#pragma once

#include "lib/networks/token_mixer.h"

namespace mlc::networks {

// Maps x [1, S, width] to a result of the same shape. Each inner channel has a separate state.
Value* Mamba(const TokenMixerContext& context, Value* x);
// Channels are grouped into heads; all channels of a head decay at the same rate.
Value* Mamba2(const TokenMixerContext& context, Value* x);

}  // namespace mlc::networks
