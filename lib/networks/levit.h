// lib/networks/levit.h - LeViT (Graham et al. 2021): attention between places whose number shrinks from
// stage to stage, with biases by distance.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct LevitConfig {
  std::vector<int64_t> heads;      // of stages
  int64_t key = 16;                // dimensions of a key between stages
  std::vector<int64_t> keys = {};  // those of stages; empty: `key`
  Activation activation = Activation::kHardSwish, attention_activation = Activation::kHardSwish;
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
  // As transformers gives them: hidden states are tokens [1, h w, C], and the logits of two classifiers
  // are outputs beside their mean.
  bool tokens = false, both_logits = false;
};

// Tensors: stem.convN; stages.S.blocks.B.attn.{qkv, proj.ln, attention_biases}, .mlp.{ln1, ln2};
// stages.S.downsample.attn_downsample.{q.ln, kv, proj.ln, attention_biases}, .mlp; each layer has
// .linear and .bn; head and, if there are two, head_dist have .bn and .linear. The sizes of layers, and
// how many there are, are those of the tensors.
// Outputs without a classifier: last_hidden_state [1, C, h, w], or tokens, pooler_output [1, C]; with
// both_logits also cls_logits, distillation_logits [1, labels].
Program BuildLevit(const LevitConfig& config, const NetworkWeights& weights,
                   Diagnostics& diagnostics);

}  // namespace mlc::networks
