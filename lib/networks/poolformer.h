// lib/networks/poolformer.h - PoolFormer (Yu et al. 2021): blocks whose mixer of positions is a mean of
// neighbours.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct PoolFormerConfig {
  std::vector<int64_t> depths, widths, patches, strides, padding;  // of stages
  int64_t pool = 3;                                                // the side of a neighbourhood
  double feed_forward = 4;                                         // ratio
  bool scales = true;                                              // of both branches of each block
  Activation activation = Activation::kGelu;
  double epsilon = 1e-5;
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: stage.S.patches; stage.S.block.B.norm, .scale [C], .second_norm, .up, .down, .second_scale [C];
// norm; classifier.
// Outputs: last_hidden_state [1, C, h, w], or logits [1, labels].
Program BuildPoolFormer(const PoolFormerConfig& config, const NetworkWeights& weights,
                        Diagnostics& diagnostics);

}  // namespace mlc::networks
