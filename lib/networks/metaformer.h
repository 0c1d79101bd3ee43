// lib/networks/metaformer.h - MetaFormer (Yu et al. 2022): PoolFormer, and ConvFormer and CAFormer,
// whose mixers are convolutions and attention.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct MetaFormerConfig {
  bool group_norms = false;  // norms of blocks take all channels and places at once (PoolFormer)
  int64_t head = 32;         // dimensions of a head
  Activation activation = Activation::kGelu;  // of MLPs without an act.scale (StarReLU)
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: stem.{conv, norm}; stages.S.downsample.{norm, conv}; stages.S.blocks.B.{norm1, norm2},
// .mlp.{fc1, act, fc2}, .layer_scale1.scale, .res_scale1.scale and those of 2, and of mixers
// .token_mixer.{qkv, proj} or .{pwconv1, act1, dwconv, pwconv2}, else they are pooling; head.norm;
// head.fc, or head.fc.{fc1, norm, fc2}. The sizes of layers, and how many there are, are those of the
// tensors.
// Outputs without a classifier: last_hidden_state [1, C, h, w], pooler_output [1, C].
Program BuildMetaFormer(const MetaFormerConfig& config, const NetworkWeights& weights,
                        Diagnostics& diagnostics);

}  // namespace mlc::networks
