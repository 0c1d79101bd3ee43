// lib/networks/sam_encoder.h - the tower of the first Segment Anything: a vision transformer that attends
// in windows (Li et al. 2022, "Exploring plain vision transformer backbones for object detection").
#pragma once

#include <vector>

#include "lib/networks/layers.h"
#include "lib/networks/transformer_layer.h"

namespace mlc::networks {

struct SamEncoderConfig {
  TransformerLayer layer;
  int64_t layers = 0, patch = 16;
  int64_t channels = 256;       // of the result
  int64_t window = 14;          // of attention, in patches; 0: the whole picture
  std::vector<int64_t> global;  // layers that attend to the whole picture
  bool position_table = true, relative = true;
};

// Returns embeddings [1, channels, h, w] of pixels [1, C, H, W], of which a patch becomes one.
//
// Tensors: patches; positions [1, h, w, width]; layer.N.* (transformer_layer.h, with qkv); layer.N.rows
// and .columns, which have a row for each distance of patches [2 size - 1, head]; neck.0, neck.norm.0,
// neck.1, neck.norm.1.
Value* SamEmbeddings(Builder& b, Layers& layers, const SamEncoderConfig& config, Value* pixels);

// Throws Error "bad-file" or "resource-limit" for numbers that no network has.
void CheckSamEncoder(const SamEncoderConfig& config);

}  // namespace mlc::networks
