// lib/networks/sam.h - Segment Anything (Kirillov et al. 2023): masks of what points in a picture show.
//
// Functions and their ports. Letters of shapes: P points, M masks, C channels of embeddings, h x w
// patches. Points are x and y in pixels of the picture that the model gets; labels say what they
// show: 1 the object, 0 the background, -1 nothing.
//
//   main     pixel_values [1, channels, H, W], input_points fp32 [1, 1, P, 2], input_labels int32
//            [1, 1, P] -> iou_scores [1, 1, M], pred_masks [1, 1, M, 4 h, 4 w]; on request
//            image_embeddings
//   encode   pixel_values -> image_embeddings [1, C, h, w]
//   decode   image_embeddings, input_points, input_labels -> iou_scores, pred_masks
//
// An app encodes a picture once, and decodes for each prompt. A tower alone has the function main:
// pixel_values -> last_hidden_state.
#pragma once

#include <string>
#include <vector>

#include "lib/ir/program.h"
#include "lib/networks/layers.h"
#include "lib/networks/model_ports.h"
#include "lib/networks/transformer_layer.h"

namespace mlc::networks {

struct SamConfig {
  TransformerLayer layer;  // of the tower
  int64_t layers = 0, patch = 16, channels = 256;
  int64_t window = 14;          // of attention, in patches
  std::vector<int64_t> global;  // layers that attend to the whole picture
  bool position_table = true, relative = true;
  bool tower_only = false;
  int64_t features = 128;  // frequencies of positions
  // The decoder: layers that attend from prompts to the picture and back.
  int64_t decoder_layers = 2, decoder_heads = 8, decoder_feed_forward = 2048, reduction = 2;
  double decoder_epsilon = 1e-6;
  Activation activation = Activation::kRelu;
  int64_t masks = 3;  // besides the one that is not ambiguous
  int64_t score_layers = 3, score_width = 256;
  Symbol points{1, 64, {}};
  PictureInput picture;
  std::vector<std::string> outputs;  // of main; empty: iou_scores, pred_masks
};

// Tensors of the tower: patches; positions [1, h, w, W]; layer.N.* (transformer_layer.h, with qkv);
// layer.N.rows and .columns, which have a row for each distance of patches [2 size - 1, head]; neck.0,
// neck.norm.0, neck.1, neck.norm.1. Of prompts: frequencies [2, features]; no_mask, no_point, point.0
// and .1 [1, C]. Of the decoder: score_token [1, C], mask_tokens [1 + M, C]; block.N.self,
// .to_picture, .to_prompt, each with .query, .key, .value and .output; block.N.norm.0 to .3,
// block.N.up, block.N.down; final.*, final.norm; upscale.0, upscale.norm, upscale.1; mask.N.0 to .2,
// score.0 to .K.
Program BuildSam(const SamConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics);

}  // namespace mlc::networks
