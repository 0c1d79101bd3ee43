// lib/networks/feed_forward.h - feed-forward layers of a decoder, dense or a mixture of experts.
#pragma once

#include "lib/networks/decoder_weights.h"

namespace mlc {

// x [1, S, width] and the result likewise.
Value* FeedForward(Builder& b, DecoderTensors& tensors, const DecoderConfig& config, int64_t layer,
                   Value* x);

// x times the matrix of a role [out, in], plus its bias.
Value* Projected(Builder& b, DecoderTensors& tensors, Role role, int64_t layer, Value* x,
                 int64_t out, bool needs_bias = false);

}  // namespace mlc
