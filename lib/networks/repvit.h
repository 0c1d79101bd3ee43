// lib/networks/repvit.h - RepViT (Wang et al. 2023), convolutions in the order of a vision transformer's
// layers, also as the tower of EdgeTAM.
#pragma once

#include <vector>

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct RepVitConfig {
  std::vector<int64_t> widths, depths;  // of stages
  int64_t kernel = 3;
  int64_t feed_forward = 2;  // hidden channels per channel
  bool outer_norm = true;    // one norm of the sum of a mixer's branches, or one of each
  Activation activation = Activation::kGelu;
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: stem.0, stem.1, and of the blocks, block.N and, before all stages but the first one, down, in
// stage.S: mixer.large and .small, mixer.norm; squeeze.reduce and .expand of every other block; up, down;
// of `down` also spatial, channels, and wide.up and .down, and its first four begin with down.block. Each
// has .conv and .norm (PictureNetwork::ConvNorm), but for squeeze, and for mixer.small with an outer norm,
// which has .conv with a bias. Classifiers: head.0 and head.1, whose mean counts if there are both, each
// .norm and .linear.
// Outputs without a classifier: last_hidden_state [1, C, h, w], pooler_output [1, C].
Program BuildRepVit(const RepVitConfig& config, const NetworkWeights& weights,
                    Diagnostics& diagnostics);
// Returns a map [1, C, h, w] for each stage. Ignores config.picture and .labels.
std::vector<Value*> RepVitMaps(Builder& b, Layers& layers, const RepVitConfig& config,
                               Value* pixels);
// Throws Error "bad-file" or "resource-limit" for numbers that no network has.
void CheckRepVit(const RepVitConfig& config);

}  // namespace mlc::networks
