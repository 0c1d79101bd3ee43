// lib/networks/pvt.h - Pyramid Vision Transformer v2 (Wang et al. 2022): attention whose keys and
// values are those of a smaller map.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct PvtConfig {
  std::vector<int64_t> heads = {1, 2, 5, 8};  // of stages
  bool pooled = false;                        // keys and values are those of a map of 7 x 7
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: patch_embed.{proj, norm}; stages.S.downsample.{proj, norm}; stages.S.blocks.B.{norm1,
// attn.{q, kv, sr, norm, proj}, norm2, mlp.{fc1, dwconv, fc2}}; stages.S.norm; head. The sizes of layers,
// and how many there are, are those of the tensors.
// Outputs without a classifier: last_hidden_state [1, C, h, w], pooler_output [1, C].
Program BuildPvt(const PvtConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics);

}  // namespace mlc::networks
