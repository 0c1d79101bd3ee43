// lib/networks/rt_detr.h - RT-DETR (Zhao et al. 2023), RT-DETRv2 and D-FINE (Peng et al. 2024): objects
// from maps of three sizes, of which the likeliest places become the queries of a decoder with
// deformable attention.
#pragma once

#include <optional>

#include "lib/networks/hgnet.h"
#include "lib/networks/residual_network.h"

namespace mlc::networks {

// D-FINE: the sides of boxes are distributions over bins, which the layers of the decoder refine.
struct FineBoxes {
  HgNetConfig backbone;  // in the place of a residual network
  int64_t bins = 32;     // and one more
  double scale = 4, reach = 0.5;
  int64_t blocks = 3;          // RepVGG blocks of a cross-stage block
  bool projects_maps = false;  // before the decoder
  // The likelihoods of a box's sides that correct its scores, and the network that reads them.
  int64_t likeliest = 4, quality_width = 64, quality_layers = 2;
};

struct RtDetrConfig {
  ResidualConfig backbone;  // its size is that of the picture
  std::optional<FineBoxes> fine;
  int64_t levels = 3;  // its last maps, which the encoder reads
  int64_t encoder_width = 256, width = 256, queries = 300;
  std::vector<int64_t> points = {4, 4, 4};    // that attention reads on each of these maps
  std::vector<int64_t> encoded_levels = {2};  // which have a transformer
  int64_t encoder_layers = 1, decoder_layers = 6, encoder_heads = 8, decoder_heads = 8;
  int64_t encoder_feed_forward = 1024, decoder_feed_forward = 1024;
  double temperature = 10000, expansion = 1;
  bool positions_by_rows = false;  // of the encoder, whose tokens are by rows
  double offset_scale = 0.5;       // of the points of deformable attention, in shares of a box
  bool pre_norms = false;          // in the encoder
  Activation encoder_activation = Activation::kGelu, activation = Activation::kSilu,
             decoder_activation = Activation::kRelu;
  double epsilon = 1e-5, batch_epsilon = 1e-5;
  int64_t labels = 0;
};

// Tensors: backbone.* (residual_network.h); project.L, lateral.N, fpn.N.*, reduce.N, pan.N.*, level.L,
// with .conv and .norm; fpn.N and pan.N have .conv1, .conv2, .conv3 and .bottlenecks.M.conv1 and
// .conv2; encoder.E.N and decoder.N as in detr.h, but decoder.N.cross.{offsets, point_scales, weights,
// value, output}; memory.dense, .norm, .classes, .boxes.N; places.N;
// classes.N and boxes.N.M of decoder layer N.
// D-FINE has hgnet.h's tensors under backbone; fpn.N and pan.N have .conv1 to .conv4 and .csp1 and .csp2,
// which are as above; reduce.N has .0 and .1; decoder.N.gate, .gate.norm; first.M, quality.N.M, up and
// scale [1].
// Outputs: logits [1, queries, labels], pred_boxes [1, queries, 4] (centre, width and height, from 0 to
// 1).
Program BuildRtDetr(const RtDetrConfig& config, const NetworkWeights& weights,
                    Diagnostics& diagnostics);

}  // namespace mlc::networks
