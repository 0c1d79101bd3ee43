// lib/networks/efficientformer.h - EfficientFormer (Li et al. 2022) and EfficientFormerV2 (Li et al.
// 2023): convolutions, with attention in the last stages.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct EfficientFormerConfig {
  bool second = false;                            // V2
  int64_t heads = 8, key = 32, key_between = 16;  // dimensions of a key; of V2 between stages
  Activation activation = Activation::kGelu;
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: stem.{conv1, norm1, conv2, norm2}; stages.S.downsample.{conv, norm}; stages.S.blocks.B.{ls1,
// ls2}.gamma and .mlp.{fc1, norm1, fc2, norm2}, in the last stage also .norm1, .norm2 and
// .token_mixer.{qkv, proj, attention_biases}; norm; head and head_dist. Convolutions of V2 have .conv
// and .bn, and are also stages.S.downsample.attn.{q.local, q.proj, k, v, v_local, proj} and
// .token_mixer.{stride_conv, q, k, v, v_local, talking_head1, talking_head2, proj}. The sizes of layers,
// and how many there are, are those of the tensors.
// Outputs without a classifier: last_hidden_state [1, N, C], or [1, C, h, w] of V2, pooler_output [1, C].
Program BuildEfficientFormer(const EfficientFormerConfig& config, const NetworkWeights& weights,
                             Diagnostics& diagnostics);

}  // namespace mlc::networks
