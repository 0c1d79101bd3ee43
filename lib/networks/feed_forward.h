// lib/networks/feed_forward.h - feed-forward networks of a decoder, dense or a mixture of experts.
#pragma once

#include "lib/networks/decoder_weights.h"

namespace mlc::networks {

// Maps x [1, S, width] to a result of the same shape.
Value* FeedForward(Builder& b, DecoderTensors& tensors, const DecoderConfig& config, int64_t layer,
                   Value* x);

// Returns x times the matrix of a role [out, in], plus its bias.
Value* Projected(Builder& b, DecoderTensors& tensors, Role role, int64_t layer, Value* x,
                 int64_t out, bool needs_bias = false);

}  // namespace mlc::networks
