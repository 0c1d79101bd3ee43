// lib/networks/vgg.h - VGG (Simonyan and Zisserman 2014): plain stacks of convolutions.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct VggConfig {
  std::vector<int64_t> depths, widths;  // of stages, each of which ends with maximum pooling
  bool normed = false;                  // batch norms behind the convolutions
  // The head: a convolution over 7 x 7 places of the map to `inner` channels, and one of 1 x 1.
  int64_t inner = 4096, hidden = 4096;
  Activation activation = Activation::kRelu;
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: conv.N with N counted through all stages, each with norm.N if `normed`; head.0, head.1;
// classifier. Maps smaller than 7 x 7 are enlarged by adaptive pooling, as torch does.
// Outputs without a classifier: last_hidden_state [1, C, h, w], pooler_output [1, hidden].
Program BuildVgg(const VggConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics);

}  // namespace mlc::networks
