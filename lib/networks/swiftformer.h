// lib/networks/swiftformer.h - SwiftFormer (Shaker et al. 2023): convolutions, and in the last block of
// each stage attention that adds one query of the whole map.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct SwiftFormerConfig {
  std::vector<int64_t> depths, widths;  // of stages
  std::vector<bool> shrinks;            // after each stage but the last a convolution follows
  double feed_forward = 4;              // ratio
  bool scales = true;                   // of both branches of the last blocks
  int64_t kernel = 3, stride = 2, padding = 1;  // of the convolutions between stages
  Activation activation = Activation::kGelu;    // of the feed-forward layers of the last blocks
  double epsilon = 1e-5;
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifiers
};

// Tensors: stem.0 and stem.1, and shrink.S, with .conv and .norm; stage.S.block.B.{depthwise,norm,up,down} and
// .scale [C]; of the last blocks these with local. before, and attention.{query,key,projection,output},
// second_norm, up, down, first_scale [C], second_scale [C]; norm, classifier, teacher.
// Outputs: logits [1, labels], the mean of both classifiers; or last_hidden_state [1, C, h, w].
Program BuildSwiftFormer(const SwiftFormerConfig& config, const NetworkWeights& weights,
                         Diagnostics& diagnostics);

}  // namespace mlc::networks
