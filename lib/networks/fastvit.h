// lib/networks/fastvit.h - FastViT (Vasu et al. 2023) and the towers of MobileCLIP: convolutions that
// were trained as sums of several, which are one here, and attention in the last stages.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct FastVitStage {
  int64_t depth = 2, width = 64;
  double feed_forward = 4;  // ratio
  bool downsample = true;
  bool squeezed = false;   // its first convolution has squeeze and excitation
  bool attention = false;  // the mixers are attention, after positions from a convolution
};

struct FastVitConfig {
  std::vector<FastVitStage> stages;
  int64_t kernel = 3, down_kernel = 7, head = 32;  // `head`: dimensions of a head
  bool down_activated = false;  // an activation follows the first convolution of a stage
  bool channel_norms = false;   // attention normalises channels (LayerNorm), not batches
  double final_ratio = 2;       // channels of the last convolution per channel of the last stage
  Activation activation = Activation::kGelu;
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier

  int64_t channels() const;   // of the last convolution
  int64_t reduction() const;  // pixels of a picture in each direction for one place of the last map
};
// Throws Error "bad-file" for numbers that do not fit together, "resource-limit".
void CheckFastVit(const FastVitConfig& config);

// Tensors: stem.N; stage.S.down.large, .down.small, .down.squeeze.*, .down.fused and .down.1;
// stage.S.positions, or .positions.fused; stage.S.block.B.mixer.norm, .mixer.mixer, .mixer.scale, or
// .mixer.fused; or .attention_norm, .attention.qkv, .attention.output and .attention_scale; .spread,
// .up, .down and .scale; final; classifier.
// stem.N, down.1, mixer.norm, mixer.mixer and final are sums of branch.N.* and scale.*, each with .conv
// and .norm, and of the norm `identity`; or `fused`; squeeze.reduce and .expand may follow.
// Outputs without a classifier: last_hidden_state [1, C, h, w], pooler_output [1, C].
Program BuildFastVit(const FastVitConfig& config, const NetworkWeights& weights,
                     Diagnostics& diagnostics);

// Returns the last map [1, channels(), h, w] of pixels [1, 3, H, W], as a part of another network.
Value* FastVitMap(Builder& b, Layers& layers, const FastVitConfig& config, Value* pixels);

}  // namespace mlc::networks
