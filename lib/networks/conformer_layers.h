// lib/networks/conformer_layers.h - the layers of conformers (Gulati et al. 2020): half a feed-forward
// layer, attention, a convolution over time, and half a feed-forward layer.
#pragma once

#include <cstdint>
#include <string>

#include "lib/networks/activation.h"
#include "lib/networks/layers.h"

namespace mlc {
struct ImportOptions;
}  // namespace mlc

namespace mlc::networks {

struct ConformerLayersConfig {
  Activation activation = Activation::kSilu;
  int64_t width = 0, heads = 0, feed_forward = 0;
  int64_t taps = 9;  // of the convolution over time
  enum class Positions : uint8_t {
    kNone,
    kSines,   // scores of the distance, from projected sines and cosines (arXiv 1901.02860, 3.3)
    kRows,    // scores of the distance, from a table with a row for each
    kRotary,  // the inputs of queries and keys are rotated
  } positions = Positions::kSines;
  int64_t left = 0, right = 0;  // kRows: the largest distances to earlier and to later frames
  double rotary_base = 10000;
  // The convolution sees no later frame, and a LayerNorm follows it instead of running statistics.
  bool causal = false;
  double epsilon = 1e-5;
};

// The tensors of layer N have these names after "layer.N.", followed by .weight or .bias:
//
//   norm1 up1 down1 attention_norm query key value attention conv_norm conv_in depthwise conv_out
//   norm2 up2 down2 norm; batch_norm, or depthwise_norm if causal
//   kSines: relative_key, and bias_u and bias_v without a suffix; kRows: distances
class ConformerLayers {
 public:
  // The arguments must outlive the object. Throws Error "bad-file" for numbers that do not fit together.
  ConformerLayers(Builder& b, Layers& layers, const ConformerLayersConfig& config);

  // Makes what all layers read of the positions of x [1, F, W]. Must precede Layer.
  void MakePositions(Value* x);
  Value* Layer(int64_t layer, Value* x);

 private:
  Value* Norm(const std::string& name, Value* x);
  Value* Attention(const std::string& own, Value* x);
  Value* Convolved(const std::string& own, Value* x);
  Value* RotatedInput(Value* x);
  void MakeRows(Value* x, int64_t left, int64_t right);

  Builder& b_;
  Layers& layers_;
  const ConformerLayersConfig& config_;
  Value* distances_ = nullptr;                   // kSines: [1, distances, W]
  Value* rows_ = nullptr;                        // kSines, kRows: int32 [1, heads, F, F]
  Value *cosines_ = nullptr, *sines_ = nullptr;  // kRotary: [1, F, half a head]
};

// A convolution of one tap over x [1, F, C].
Value* Pointwise(Builder& b, Layers& layers, const std::string& name, Value* x, int64_t out);
// The first half of x [1, F, 2 W], or [1, 2 W, F], times the sigmoid of the second.
Value* GatedHalf(Builder& b, Value* x, int64_t width, int64_t axis);

// The sizes of frames in a package: those of --dim frames=..., or else up to `usual`. Errors "usage",
// "bad-name".
Symbol PackagedFrames(const ImportOptions& options, int64_t least, int64_t usual, int64_t most);

}  // namespace mlc::networks
