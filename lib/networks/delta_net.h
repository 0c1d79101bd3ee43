// lib/networks/delta_net.h - the gated delta net.
#pragma once

#include "lib/networks/token_mixer.h"

namespace mlc::networks {

// Maps x [1, S, width] to a result of the same shape.
Value* DeltaNet(const TokenMixerContext& context, Value* x);

}  // namespace mlc::networks
