// lib/networks/segformer.h - transformers on maps of decreasing size: SegFormer (Xie et al. 2021), with
// a head for segmentation, and the Pyramid Vision Transformers (Wang et al. 2021 and 2022).
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct SegformerConfig {
  // The sizes of each stage. Keys and values come from a map that is `reductions` times smaller in
  // each direction.
  std::vector<int64_t> depths, widths, heads, patches, strides, reductions;
  std::vector<double> feed_forward;  // ratios
  Activation activation = Activation::kGelu;
  double epsilon = 1e-5;
  // The first PVT: patches do not overlap, each stage has a table of positions, the last one begins
  // with a class token, feed-forward layers do not convolve, and only the last stage is normed.
  bool first = false;
  enum class Head : uint8_t { kNone, kClasses, kSegments } head = Head::kNone;
  int64_t decoder = 256;  // kSegments: width of the head
  PictureInput picture;
  int64_t labels = 0;
};

// Tensors: stage.S.patches, .patches.norm, .norm; stage.S.block.B.norm, .attention.{query, key, value,
// output, reduction, norm}, .second_norm, .up, .depthwise, .down; decoder.S, decoder.fuse.conv and
// .norm; classifier. `first`: stage.S.positions, and .class_token of the last.
// Outputs: kNone last_hidden_state [1, C, h, w], or tokens [1, 1 + h w, C]; kClasses logits [1, L]; kSegments logits [1, L, h,
// w] of the size of the first map.
Program BuildSegformer(const SegformerConfig& config, const NetworkWeights& weights,
                       Diagnostics& diagnostics);

}  // namespace mlc::networks
