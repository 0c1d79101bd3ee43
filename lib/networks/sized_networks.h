// lib/networks/sized_networks.h - networks whose sizes are those of their tensors
// (sized_layers.h), and which ask for these by the names of the modules of torchvision and timm.
//
// Outputs without a classifier: last_hidden_state [1, C, h, w], pooler_output [1, C].
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct SizedConfig {
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Inception-v3 (Szegedy et al. 2015) and Inception-v4 (Szegedy et al. 2016).
Program BuildInceptionV3(const SizedConfig& config, const NetworkWeights& weights,
                         Diagnostics& diagnostics);
Program BuildInceptionV4(const SizedConfig& config, const NetworkWeights& weights,
                         Diagnostics& diagnostics);
// Xception (Chollet 2017).
Program BuildXception(const SizedConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics);

struct DlaConfig {
  bool residual_roots = false;  // the first input of a root is added to its output
  PictureInput picture;
  int64_t labels = 0;
};
// Deep layer aggregation (Yu et al. 2018).
Program BuildDla(const DlaConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics);

// HRNet (Wang et al. 2019): maps of several sizes side by side.
Program BuildHrNet(const SizedConfig& config, const NetworkWeights& weights,
                   Diagnostics& diagnostics);

struct VovNetConfig {
  bool residual = false;  // blocks behind the first one of a stage add their input
  PictureInput picture;
  int64_t labels = 0;
};
// VoVNet (Lee et al. 2019): blocks join the outputs of all their layers.
Program BuildVovNet(const VovNetConfig& config, const NetworkWeights& weights,
                    Diagnostics& diagnostics);

struct SizedResNetConfig {
  // The operation that halves maps in the place of strided convolutions, and behind the stem: averages of
  // 2 x 2, or a binomial filter (Zhang 2019).
  enum class Antialias : uint8_t { kNone, kAverage, kBlur } antialias = Antialias::kNone;
  PictureInput picture;
  int64_t labels = 0;
};
// ResNet and relatives (residual_network.h) with any mixture of blocks.
Program BuildSizedResNet(const SizedResNetConfig& config, const NetworkWeights& weights,
                         Diagnostics& diagnostics);

struct ResNetV2Config {
  bool standardised = false;  // BiT (Kolesnikov et al. 2020): weights are standardised
  PictureInput picture;
  int64_t labels = 0;
};
// ResNet whose norms come before the convolutions (He et al. 2016); they are group norms of 32 groups
// unless there are statistics.
Program BuildResNetV2(const ResNetV2Config& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics);

struct BlockNetConfig {
  std::vector<int64_t> strides = {2, 2, 2, 2};  // of stages
  bool stem_pools = false;                      // maximum pooling follows the stem
  bool linear_blocks = false;                   // no activation behind blocks
  Activation activation = Activation::kRelu;
  PictureInput picture;
  int64_t labels = 0;
};
// Networks of residual blocks of two to four convolutions: GENet (Lin et al. 2020), RegNetZ (Dollar
// et al. 2021).
Program BuildBlockNet(const BlockNetConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics);

struct NormFreeConfig {
  Activation activation = Activation::kGelu;
  double gamma = 1;                  // factor of activations, by the activation
  bool gamma_in_activation = false;  // it is applied to them, not to the weights
  PictureWindow::Padding padding = PictureWindow::Padding::kHalf;
  double alpha = 0.2;  // factor of branches
  PictureInput picture;
  int64_t labels = 0;
};
// Networks without norms (Brock et al. 2021): their weights are standardised.
Program BuildNormFreeNet(const NormFreeConfig& config, const NetworkWeights& weights,
                         Diagnostics& diagnostics);

struct EfficientVitConfig {
  int64_t head = 16;  // dimensions of a head
  Activation activation = Activation::kHardSwish;
  double epsilon = 1e-5;
  PictureInput picture;
  int64_t labels = 0;
};
// EfficientViT (Cai et al. 2023): linear attention on maps, at several scales.
Program BuildEfficientVit(const EfficientVitConfig& config, const NetworkWeights& weights,
                          Diagnostics& diagnostics);

struct TinyVitConfig {
  std::vector<int64_t> heads = {2, 4, 5, 10}, windows = {7, 7, 14, 7};  // of stages
  PictureInput picture;
  int64_t labels = 0;
};
// TinyViT (Wu et al. 2022): attention within windows, and convolutions.
Program BuildTinyVit(const TinyVitConfig& config, const NetworkWeights& weights,
                     Diagnostics& diagnostics);

// HGNetV2 (hgnet.h) with timm's names, and with its last convolution.
Program BuildSizedHgNet(const SizedConfig& config, const NetworkWeights& weights,
                        Diagnostics& diagnostics);

struct MambaOutConfig {
  bool norm_first = false;  // the norm between stages comes before the convolution
  Activation activation = Activation::kGelu;
  PictureInput picture;
  int64_t labels = 0;
};
// MambaOut (Yu and Wang 2024): gated convolutions.
Program BuildMambaOut(const MambaOutConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics);

}  // namespace mlc::networks
