// lib/networks/token_mixer.h - common parts of token mixers other than attention: a state of fixed
// size represents the past, instead of the keys and values of all tokens.
#pragma once

#include "lib/networks/decoder_weights.h"

namespace mlc::networks {

// The part of a state [layers, ...] that belongs to one layer.
class LayerState {
 public:
  LayerState() = default;
  LayerState(Value* state, int64_t layer) : state_(state), layer_(layer) {}
  // Returns the state as [1, ...] in fp32.
  Value* Read(Builder& b) const;
  void Write(Builder& b, Value* data) const;

 private:
  struct Place {
    Value* all;
    Tensor begin, end;
    bool whole;  // the state has one layer
  };
  Place In(Builder& b) const;
  Value* state_ = nullptr;
  int64_t layer_ = 0;
};

struct TokenMixerContext {
  Builder& b;
  DecoderTensors& tensors;
  const DecoderConfig& config;
  int64_t layer;
  LayerState conv;       // [1, taps - 1, channels]: the last inputs of the convolution
  LayerState recurrent;  // [1, batch, heads, rows, columns]: the state of linear_attention.h

  Value* Projected(Role role, Value* x, int64_t out, bool needs_bias = false) const;
  Value* Weight(Role role, const Dims& dims) const { return tensors.Weight(role, layer, dims); }
};

// The token mixers map x [1, S, width] to a result of the same shape.
//
// The gated short convolution of LFM2.
Value* ShortConvolution(const TokenMixerContext& context, Value* x);
// Selective state spaces: each inner channel has a separate state.
Value* Mamba(const TokenMixerContext& context, Value* x);
// Channels are grouped into heads; all channels of a head decay at the same rate.
Value* Mamba2(const TokenMixerContext& context, Value* x);
// The gated delta net.
Value* DeltaNet(const TokenMixerContext& context, Value* x);

// Applies a causal convolution to each channel of x [1, S, channels] with separate taps, of which
// the last is for the current token. It continues from the state of earlier calls.
Value* Convolved(const TokenMixerContext& context, Value* x, bool needs_bias);

}  // namespace mlc::networks
