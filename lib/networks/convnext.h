// lib/networks/convnext.h - ConvNeXt (Liu et al. 2022) and ConvNeXt V2 (Woo et al. 2023).
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct ConvNextConfig {
  std::vector<int64_t> depths, widths;  // of stages
  int64_t patch = 4;
  // The stem: one convolution with the stride `patch`, or two of 3 x 3 with stride 2, of which the
  // first has this width.
  int64_t overlap_width = 0;
  Activation activation = Activation::kGelu;
  double epsilon = 1e-6, final_epsilon = 1e-12;
  bool response_norm = false;  // global response normalisation (V2) in the blocks
  bool norm_first = false;     // the map is normalised before the mean, not after
  // DINOv3: the mean and the map are normalised as tokens [1, 1 + h w, C].
  bool tokens = false;
  int64_t dense = 0;  // width of a layer with gelu before the classifier
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: stem, or stem.0 and stem.1, which overlap; stem.norm; stage.S.downsample.norm and .conv
// for S > 0; stage.S.block.B.depthwise, .norm, .up, .response, .down and .scale; norm; dense;
// classifier. Each is followed by .weight or .bias, but for .scale.
// Outputs without a classifier: last_hidden_state [1, C, h, w] or tokens, pooler_output [1, C].
Program BuildConvNext(const ConvNextConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics);

}  // namespace mlc::networks
