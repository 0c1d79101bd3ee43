// lib/networks/hgnet.h - HGNetV2 (PaddlePaddle): blocks that join the outputs of all their layers.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct HgNetStage {
  int64_t in = 0, inner = 0, out = 0, blocks = 1, layers = 6, kernel = 3;
  bool downsample = true;
  bool light = false;  // layers are a convolution of 1 x 1 and one of each channel
};

struct HgNetConfig {
  int64_t stem = 32, stem_out = 48;
  std::vector<HgNetStage> stages;
  Activation activation = Activation::kRelu;  // of the stem; that of blocks is relu
  bool affine = false;                        // a scale and a bias follow each activation
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: stem.1, .2a, .2b, .3, .4; stage.S.downsample; stage.S.block.B.layer.L, or .0 and .1 of it if
// light; stage.S.block.B.join.0 and .1: each with .conv and .norm, and .affine.scale and .affine.bias
// [1] behind an activation; classifier.
// Outputs without a classifier: last_hidden_state [1, C, h, w], pooler_output [1, C, 1, 1].
Program BuildHgNet(const HgNetConfig& config, const NetworkWeights& weights,
                   Diagnostics& diagnostics);
// Returns the maps of all stages. The names of tensors have this prefix.
std::vector<Value*> HgNetStages(PictureNetwork& net, const HgNetConfig& config,
                                const std::string& prefix = "");
void CheckHgNet(const HgNetConfig& config);

}  // namespace mlc::networks
