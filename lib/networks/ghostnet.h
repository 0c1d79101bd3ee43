// lib/networks/ghostnet.h - GhostNet (Han et al. 2020) and GhostNetV2 (Tang et al. 2022): half of the
// channels of a layer are cheap functions of the other half.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct GhostNetConfig {
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: conv_stem bn1; blocks.S.B.{ghost1, ghost2}.{primary_conv, cheap_operation, short_conv}.N,
// .conv_dw .bn_dw .se.{conv_reduce, conv_expand} .shortcut.N, or .conv and .bn1 in the last stage;
// conv_head; classifier. The sizes of layers, and how many there are, are those of the tensors.
// Outputs without a classifier: last_hidden_state [1, C, h, w], pooler_output [1, C].
Program BuildGhostNet(const GhostNetConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics);

}  // namespace mlc::networks
