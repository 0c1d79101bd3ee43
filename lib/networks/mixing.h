// lib/networks/mixing.h - what a layer of a decoder has that mixes tokens by what it remembers of the past,
// however long that is, in place of the keys and values of all tokens.
#pragma once

#include "lib/networks/decoder_weights.h"

namespace mlc {

// The part of a state [layers, ...] that belongs to one layer.
class LayerMemory {
 public:
  LayerMemory() = default;
  LayerMemory(Value* state, int64_t layer) : state_(state), layer_(layer) {}
  // [1, ...] in fp32.
  Value* Read(Builder& b) const;
  void Write(Builder& b, Value* data) const;

 private:
  struct Place {
    Value* all;
    Tensor begin, end;
    bool whole;  // there is one layer
  };
  Place In(Builder& b) const;
  Value* state_ = nullptr;
  int64_t layer_ = 0;
};

struct Mixing {
  Builder& b;
  DecoderTensors& tensors;
  const DecoderConfig& config;
  int64_t layer;
  LayerMemory before;   // [1, taps - 1, channels]: what was convolved last
  LayerMemory current;  // [1, batch, heads, rows, columns]: the state of linear_attention.h

  Value* Projected(Role role, Value* x, int64_t out, bool needs_bias = false) const;
  Value* Weight(Role role, const Dims& dims) const { return tensors.Weight(role, layer, dims); }
};

// x [1, S, channels] with each channel convolved by taps of its own, of which the last is for the token
// itself, and the others for those before it, of earlier calls too.
Value* Convolved(const Mixing& with, Value* x, bool needs_bias);

}  // namespace mlc
