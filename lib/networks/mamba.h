// lib/networks/mamba.h - selective state spaces.
#pragma once

#include "lib/networks/mixing.h"

namespace mlc {

// x [1, S, width] and the result likewise. Each of the inner channels has a state of its own.
Value* Mamba(const Mixing& with, Value* x);
// Channels are in heads, of which each decays as a whole.
Value* Mamba2(const Mixing& with, Value* x);

}  // namespace mlc
