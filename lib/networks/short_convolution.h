// lib/networks/short_convolution.h - the gated short convolution of LFM2.
#pragma once

#include "lib/networks/mixing.h"

namespace mlc {

// x [1, S, width] and the result likewise.
Value* ShortConvolution(const Mixing& with, Value* x);

}  // namespace mlc
