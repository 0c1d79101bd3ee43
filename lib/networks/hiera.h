// lib/networks/hiera.h - Hiera (Ryali et al. 2023), a transformer whose stages halve the map by maxima of
// the queries, as the tower of Segment Anything 2.
#pragma once

#include <vector>

#include "lib/networks/activation.h"
#include "lib/networks/layers.h"
#include "lib/networks/position_grid.h"

namespace mlc::networks {

struct HieraConfig {
  int64_t kernel = 7, stride = 4;  // of the convolution of pixels
  // One for each stage. The first block of a stage attends in the windows of the stage before it.
  std::vector<int64_t> depths, widths, heads, windows;
  std::vector<int64_t> global;  // blocks that attend to the whole map, counted over all stages
  int64_t pooled_stages = 3;    // behind the first one
  GridSize background{7, 7};    // size of the table of positions
  double feed_forward = 4;      // hidden channels per channel
  Activation activation = Activation::kGelu;
  double epsilon = 1e-6;  // of norms
};

// Returns a map [1, C, h, w] for each stage.
//
// Tensors: patches; positions [1, C, background], which is resized, and window_positions [1, C, w, w],
// which is repeated; layer.N.attention_norm, .qkv, .attention, .norm, .up, .down, and .shortcut where the
// number of channels changes.
std::vector<Value*> HieraMaps(Builder& b, Layers& layers, const HieraConfig& config, Value* pixels);

// Throws Error "bad-file" or "resource-limit" for numbers that no network has.
void CheckHiera(const HieraConfig& config);

}  // namespace mlc::networks
