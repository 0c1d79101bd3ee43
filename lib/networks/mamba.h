// lib/networks/mamba.h - selective state spaces.
#pragma once

#include "lib/networks/token_mixer.h"

namespace mlc {

// x [1, S, width] and the result likewise. Each of the inner channels has a state of its own.
Value* Mamba(const TokenMixerContext& context, Value* x);
// Channels are in heads, of which each decays as a whole.
Value* Mamba2(const TokenMixerContext& context, Value* x);

}  // namespace mlc
