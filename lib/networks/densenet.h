// lib/networks/densenet.h - DenseNet (Huang et al. 2016): each layer reads all layers before it.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct DenseNetConfig {
  int64_t growth = 32;          // channels that a layer adds
  int64_t bottleneck = 4;       // of a layer's first convolution, times `growth`
  std::vector<int64_t> depths;  // of blocks
  bool deep = false;            // a stem of three convolutions of 3 x 3
  Activation activation = Activation::kRelu;
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: stem.N; block.B.layer.L.0 and .1; transition.B: each has .conv and .norm, and the norm
// comes first but for the stem; norm; classifier.
// Outputs without a classifier: last_hidden_state [1, C, h, w], pooler_output [1, C].
Program BuildDenseNet(const DenseNetConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics);

}  // namespace mlc::networks
