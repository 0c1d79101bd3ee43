// lib/networks/depth.h - the neck and head of dense prediction transformers (DPT, Depth Anything),
// which make a picture of depths, or of classes (DPT), from hidden states of a vision transformer.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/networks/vision_transformer.h"

namespace mlc::networks {

struct DepthConfig {
  std::vector<int64_t>
      states;           // the hidden states that are used: 0 the embeddings, 1 the first layer
  bool normed = false;  // they are normalised by vision.norm
  enum class Readout : uint8_t {
    kIgnore,   // the class token is dropped
    kAdd,      // it is added to the patches
    kProject,  // it is joined to the patches, which are then projected
  } readout = Readout::kIgnore;
  Activation readout_activation = Activation::kGelu;
  std::vector<int64_t> widths;  // of each level of the neck
  std::vector<double> factors;  // by which each level is enlarged
  int64_t fusion_width = 0;
  bool fusion_norms = false, fusion_bias = true;  // of the convolutions of fusion
  int64_t head_level = -1;       // the level that the head takes; negative: counted from the last
  bool head_projection = false;  // a convolution before the head (DPT)
  // Depth Anything: levels are resized to the next one, and the head to whole patches; DPT: both are
  // doubled.
  bool to_size = false;
  int64_t head_width = 32;
  bool sigmoid = false;  // instead of relu at the end
  double max_depth = 1;  // a factor of the result
  int64_t segments = 0;  // the number of classes; 0: depths
};

// The tensors have these names, for levels N from 0 on (from the deepest on for fusion):
//
//   depth.readout.N depth.reassemble.N depth.resize.N depth.neck.N
//   depth.fusion.N.skip1 depth.fusion.N.skip2 depth.fusion.N.own1 depth.fusion.N.own2
//   with .norm1 and .norm2 for fusion_norms: depth.fusion.N.skip.norm1
//   depth.fusion.N.projection depth.projection depth.head1 depth.head2 depth.head3
//   segments.head segments.norm segments.classifier
//
// Throws Error "bad-file" for numbers that do not fit together. Must precede Depth.
void CheckDepth(const DepthConfig& config, const VisionConfig& vision);

// Returns the depths [1, height, width], or logits [1, segments, h, w], from the hidden states of VisionTower.
Value* Depth(Builder& b, Layers& layers, const DepthConfig& config, const VisionConfig& vision,
             const std::vector<Value*>& states);

}  // namespace mlc::networks
