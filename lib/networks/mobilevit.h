// lib/networks/mobilevit.h - MobileViT (Mehta and Rastegari 2021), also with the head of DeepLabV3
// for segmentation.
#pragma once

#include "lib/networks/inverted_residual_network.h"

namespace mlc::networks {

struct MobileVitConfig {
  // V2 (Mehta and Rastegari 2022): one query scores all pixels of a place, the local convolution is
  // depthwise, and there is no last convolution.
  bool separable = false;
  // Widths: of the stem, of the output of the five stages, and of the last convolution.
  std::vector<int64_t> widths;
  std::vector<int64_t> layers = {2, 4, 3};  // of these transformers
  std::vector<int64_t> token_widths;        // of the transformers of stages 2 to 4
  int64_t heads = 4, patch = 2, kernel = 3;
  double expansion = 4, feed_forward = 2;  // ratios
  // Stages after which maps would be smaller are dilated instead.
  int64_t output_stride = 32;
  double epsilon = 1e-5;
  Activation activation = Activation::kSilu;
  enum class Head : uint8_t { kNone, kClasses, kSegments } head = Head::kNone;
  std::vector<int64_t> rates;  // kSegments: dilations of the pyramid's convolutions
  int64_t pyramid = 0;         // kSegments: its width
  PictureInput picture;
  int64_t labels = 0;
};

// Tensors: stem; stage.S.block.B.expand, .depthwise and .project (inverted_residual_network.h);
// stage.S.local, .embed, .layer.N.{norm, attention.{query, key, value, output} or
// attention.{qkv, attention} (transformer_layer.h), up, down,
// second_norm}, .norm, .unembed and .fusion; V2 has attention.{joined, output}, and .conv follows
// these, up and down; head; pyramid.N, pyramid.pool, pyramid.project;
// classifier. Convolutions have .conv and .norm, but stage.S.embed and the classifier of kSegments
// only .conv.
// Outputs: kNone last_hidden_state [1, C, h, w], pooler_output [1, C]; kClasses logits [1, L];
// kSegments logits [1, L, h, w].
Program BuildMobileVit(const MobileVitConfig& config, const NetworkWeights& weights,
                       Diagnostics& diagnostics);

}  // namespace mlc::networks
