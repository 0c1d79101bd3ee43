// lib/networks/window_transformer.h - transformers whose tokens attend within shifted windows: Swin
// (Liu et al. 2021) and Swin V2 (Liu et al. 2022).
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct WindowTransformerConfig {
  // V2: norms behind attention and feed-forward layers, cosines of queries and keys as scores, and
  // biases that a network computes from distances.
  bool second = false;
  int64_t patch = 4, width = 96;  // of the first stage; each further one has twice as many channels
  std::vector<int64_t> depths, heads;
  int64_t window = 7;
  std::vector<int64_t> pretrained_windows;  // V2, of stages; 0: `window`
  // The size of pictures in training, which limits the windows of small maps; without it, that of the
  // picture does.
  GridSize trained;
  double feed_forward = 4;  // ratio
  Activation activation = Activation::kGelu;
  double epsilon = 1e-5;
  double map_epsilon = 1e-5;  // of the norms of patches, and of neighbours that are joined
  bool final_norm = true;
  bool shift_first = false;  // maps are shifted before they are padded, as in timm
  bool mask_twice = false;   // the mask between regions of a shifted window is added twice
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: patches, patches.norm; stage.S.block.B.norm, .attention.{query, key, value} or
// .attention.qkv (transformer_layer.h, Projected), .attention.output, .attention.biases [(2 window - 1)^2, heads], .second_norm,
// .up, .down; V2: .attention.scale [heads, 1, 1], .attention.distance.0 and .1; stage.S.merge,
// .merge.norm; norm; classifier. Each is followed by .weight or .bias, but for biases and scale.
// Outputs without a classifier: last_hidden_state [1, tokens, C], pooler_output [1, C].
Program BuildWindowTransformer(const WindowTransformerConfig& config, const NetworkWeights& weights,
                               Diagnostics& diagnostics);

// Returns the tokens [1, N, C] of pictures [1, channels, H, W], as a part of another network. Errors as
// above.
Value* WindowTokens(Builder& b, Layers& layers, const WindowTransformerConfig& config,
                    Value* pixels);

}  // namespace mlc::networks
