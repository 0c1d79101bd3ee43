// lib/networks/upernet.h - the head of UPerNet (Xiao et al. 2018): classes of segments from maps of
// several sizes, the largest first.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/networks/layers.h"

namespace mlc::networks {

struct UperNetConfig {
  std::vector<int64_t> scales;  // the sides of the grids into which the smallest map is averaged
  int64_t width = 0;
  int64_t segments = 0;  // the number of classes
};

// Tensors, each with .conv and .norm: segments.pool.N for each scale; segments.bottleneck;
// segments.lateral.N and segments.output.N for all maps but the smallest; segments.fuse. And
// segments.classifier.
//
// Throws Error "bad-file" for numbers that do not fit together. Must precede UperNet.
void CheckUperNet(const UperNetConfig& config);
// Returns logits [1, segments, H, W] of maps [1, C, H, W] with sizes from the first one's on down.
Value* UperNet(Builder& b, Layers& layers, const UperNetConfig& config,
               const std::vector<Value*>& maps);

}  // namespace mlc::networks
