// lib/networks/residual_network.h - ResNet (He et al. 2015) and what followed from it: ResNet-D and
// ResNeXt, squeeze and excitation, RegNet (Radosavovic et al. 2020).
#pragma once

#include <optional>

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct ResidualConfig {
  enum class Stem : uint8_t {
    kSeven,  // a convolution of 7 x 7 with stride 2, and maximum pooling (ResNet)
    kDeep,   // three convolutions of 3 x 3 and maximum pooling (ResNet-D)
    kThree,  // a convolution of 3 x 3 with stride 2 (RegNet)
  } stem = Stem::kSeven;
  std::vector<int64_t> stem_widths;  // of its convolutions
  enum class Block : uint8_t {
    kBasic,       // two convolutions of 3 x 3
    kBottleneck,  // 1 x 1, 3 x 3 in groups, 1 x 1
  } block = Block::kBottleneck;
  std::vector<int64_t> depths, widths, inner_widths, groups;  // of stages
  bool downsample_in_first_stage = false;
  bool stride_in_first_unit = false;     // kBottleneck: in the first convolution, not the second
  bool average_shortcut = false;         // a shortcut with a stride averages before its convolution
  bool shortcut_in_first_stage = false;  // in its first block, even between equal shapes
  // A convolution with stride 2 takes the place of maximum pooling behind the stem (ResNet-RS).
  bool stem_convolves = false;
  // Squeeze and excitation: before the last convolution of a bottleneck, or behind the convolutions;
  // or a convolution along the means of the channels (ECA-Net, Wang et al. 2020).
  enum class Squeeze : uint8_t { kNone, kInside, kEnd, kAlong } squeeze = Squeeze::kNone;
  Activation activation = Activation::kRelu;
  std::optional<Activation> inner_activation;  // within blocks; without it, `activation`
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: stem.N and stage.S.block.B.unit.N, each with .conv and .norm (PictureNetwork::ConvNorm);
// stage.S.block.B.shortcut.conv and .norm; stage.S.block.B.squeeze.reduce and .expand, or
// .along [1, 1, size]; stem.pool.conv and .norm if the stem convolves; classifier.
// Outputs without a classifier: last_hidden_state [1, C, h, w], pooler_output [1, C, 1, 1].
Program BuildResidualNetwork(const ResidualConfig& config, const NetworkWeights& weights,
                             Diagnostics& diagnostics);
// Returns the maps of all stages. The names of tensors have this prefix.
std::vector<Value*> ResidualStages(PictureNetwork& net, const ResidualConfig& config,
                                   const std::string& prefix = "");

}  // namespace mlc::networks
