// lib/networks/detr.h - DETR (Carion et al. 2020): objects in a picture from a convolutional network
// and a transformer whose decoder has one query per object.
#pragma once

#include "lib/networks/residual_network.h"

namespace mlc::networks {

struct DetrConfig {
  ResidualConfig backbone;  // its size is that of the picture
  int64_t width = 256, queries = 100;
  int64_t encoder_layers = 6, decoder_layers = 6, encoder_heads = 8, decoder_heads = 8;
  int64_t encoder_feed_forward = 2048, decoder_feed_forward = 2048;
  Activation activation = Activation::kRelu;
  double epsilon = 1e-5;
  bool norms_each = false;  // decoder.norm also follows each layer
  int64_t labels = 0;       // without that for no object; 0: no heads
};

// Tensors: backbone.* (residual_network.h); projection; encoder.N and decoder.N with
// .attention.{query, key, value, output}, .norm, .up, .down, .last_norm; decoder.N.cross.* and
// .cross_norm; decoder.norm; queries.weight [queries, width]; classes; boxes.0 to boxes.2.
// Outputs: logits [1, queries, labels + 1], pred_boxes [1, queries, 4] (centre, width and height, from
// 0 to 1), or without heads last_hidden_state [1, queries, width]; encoder_last_hidden_state [1, h w,
// width].
Program BuildDetr(const DetrConfig& config, const NetworkWeights& weights,
                  Diagnostics& diagnostics);

}  // namespace mlc::networks
