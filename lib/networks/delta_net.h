// lib/networks/delta_net.h - the gated delta net.
#pragma once

#include "lib/networks/token_mixer.h"

namespace mlc {

// x [1, S, width] and the result likewise.
Value* DeltaNet(const TokenMixerContext& context, Value* x);

}  // namespace mlc
