// lib/networks/davit.h - DaViT (Ding et al. 2022): blocks that attend between the places of windows, then
// between channels; and the projector that makes tokens of its map in Florence-2 (Xiao et al. 2023).
#pragma once

#include <vector>

#include "lib/networks/activation.h"
#include "lib/networks/layers.h"

namespace mlc::networks {

struct DaVitConfig {
  struct Stage {
    int64_t depth = 1, width = 0;
    int64_t heads = 1;   // of attention between places
    int64_t groups = 1;  // of channels that attend to each other
    int64_t kernel = 3, stride = 2;
    bool norm_first = true;  // of the convolution before the blocks
  };
  std::vector<Stage> stages;
  int64_t window = 12;
  double feed_forward = 4;  // hidden channels per channel
  bool query_bias = true;   // of queries, keys and values
  Activation activation = Activation::kGelu;
};

// Returns the last map [1, C, h, w] of pixels.
//
// Tensors: stage.S.patches, stage.S.norm; in stage.S.block.N, of both .places and .channels:
// .first, .attention_norm, .qkv, .attention, .second, .norm, .up, .down.
Value* DaVitMap(Builder& b, Layers& layers, const DaVitConfig& config, Value* pixels);

// Returns tokens [1, 1 + h w, width] of a map: the mean of its places first.
//
// Tensors: rows [positions, C / 2], columns [positions, C - C / 2], projector [width, C], projector_norm.
Value* FlorenceTokens(Builder& b, Layers& layers, Value* map, int64_t positions, int64_t width);

// Throws Error "bad-file" or "resource-limit" for numbers that no network has.
void CheckDaVit(const DaVitConfig& config);

}  // namespace mlc::networks
