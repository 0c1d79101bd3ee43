// lib/networks/fast_vit.h - FastViT (Vasu et al. 2023, "FastViT: A fast hybrid vision transformer using
// structural reparameterization"), the towers of MobileCLIP and FastVLM. Follows timm/models/fastvit.py.
//
// Tensors have timm's names. Where training had several branches, a file has them all, or the one
// convolution that computes the same, `reparam_conv`; branches are joined to it while compiling.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/networks/activation.h"
#include "lib/networks/layers.h"
#include "lib/networks/position_grid.h"

namespace mlc::networks {

struct FastVitConfig {
  struct Stage {
    int64_t depth = 0, width = 0;
    double feed_forward = 4;  // ratio
    bool attention = false;   // otherwise convolutions mix the places
    bool halves = true;       // in both directions, before the blocks
    bool squeezes = false;    // squeeze and excitation in halving
    bool positions = false;   // a convolution of 7 x 7 that is added
  };
  std::vector<Stage> stages;
  int64_t kernel = 3;               // of the convolutions that mix places
  bool activation_between = false;  // of the two convolutions that halve
  bool channel_norm = false;        // LayerNorm of channels before attention, not BatchNorm
  Activation activation = Activation::kGelu;

  // The channels of the result, and the pixels of a picture in each direction for one of its places.
  int64_t channels() const { return stages.empty() ? 0 : 2 * stages.back().width; }
  int64_t reduction() const;
};

// Throws Error "bad-file" for numbers that are not positive, "resource-limit".
void CheckFastVit(const FastVitConfig& config);
// Returns the map [1, channels(), H / reduction, W / reduction] of pixels [1, 3, H, W].
Value* FastVit(Builder& b, Layers& layers, const FastVitConfig& config, Value* pixels);

}  // namespace mlc::networks
