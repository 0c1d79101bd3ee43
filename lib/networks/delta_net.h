// lib/networks/delta_net.h - the gated delta net.
#pragma once

#include "lib/networks/mixing.h"

namespace mlc {

// x [1, S, width] and the result likewise.
Value* DeltaNet(const Mixing& with, Value* x);

}  // namespace mlc
