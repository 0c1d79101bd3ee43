// lib/networks/repvgg.h - RepVGG (Ding et al. 2021) and MobileOne (Vasu et al. 2022): chains of
// convolutions that were trained as sums of several.
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

struct RepVggConfig {
  PictureInput picture;
  int64_t labels = 0;  // 0: no classifier
};

// Tensors: stem and stage.S.B are sums (branches.h), which squeeze.fc1 and .fc2 may follow; classifier.
// The sizes of layers, and how many there are, are those of the tensors.
// Outputs without a classifier: last_hidden_state [1, C, h, w], pooler_output [1, C].
Program BuildRepVgg(const RepVggConfig& config, const NetworkWeights& weights,
                    Diagnostics& diagnostics);

}  // namespace mlc::networks
