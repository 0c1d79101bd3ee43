// lib/networks/sized_networks.h - convolutional networks whose sizes are those of their tensors
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

}  // namespace mlc::networks
