// lib/networks/sam.h - Segment Anything (Kirillov et al. 2023), its second version (Ravi et al. 2024) for
// pictures, and EdgeTAM (Zhou et al. 2025): masks of what prompts show in a picture.
//
// Functions and their ports. Letters of shapes: P points, M masks, C channels of embeddings, h x w
// their size. Points are x and y in pixels of the picture that the model gets; labels say what they
// show: 1 the object, 0 the background, -1 nothing.
//
//   main         pixel_values [1, channels, H, W], input_points fp32 [1, 1, P, 2], input_labels int32
//                [1, 1, P] -> iou_scores [1, 1, M], pred_masks [1, 1, M, 4 h, 4 w]; of the second version
//                object_score_logits [1, 1, 1]; on request the embeddings
//   encode       pixel_values -> embeddings
//   decode       embeddings, input_points, input_labels -> the outputs of main
//   decode_box   embeddings, input_boxes fp32 [1, 1, 4] (left, top, right, bottom) -> the same
//
// Embeddings are image_embeddings [1, C, h, w], in the second version image_embeddings.0 [1, C / 8, 4 h,
// 4 w], .1 [1, C / 4, 2 h, 2 w] and .2 [1, C, h, w]. An app encodes a picture once, and decodes for each
// prompt. A tower alone has the function main: pixel_values -> last_hidden_state, which is the embeddings
// of the first version; of the second one the tower's last map [1, h, w, C], and fpn_hidden_states.N, the
// maps that embeddings are made of.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lib/ir/program.h"
#include "lib/networks/hiera.h"
#include "lib/networks/layers.h"
#include "lib/networks/model_ports.h"
#include "lib/networks/repvit.h"
#include "lib/networks/sam_decoder.h"
#include "lib/networks/sam_encoder.h"

namespace mlc::networks {

// Maps of one number of channels, that of the decoder, from those of a tower's stages.
struct SamPyramid {
  int64_t kernel = 1;                   // of the convolution of each map
  std::vector<int64_t> top_down{2, 3};  // stages to whose map the next coarser one is added
  int64_t levels = 3;                   // how many maps remain, the finest ones
};

struct SamConfig {
  std::variant<SamEncoderConfig, HieraConfig, RepVitConfig> tower;
  SamPyramid pyramid;        // of the second version
  SamDecoderConfig decoder;  // of a tower alone: channels, and whether it is of the second version
  int64_t patch = 16;        // pixels of an embedding in each direction
  bool tower_only = false;
  Symbol points{1, 64, {}};
  PictureInput picture;
  std::vector<std::string> outputs;  // of main; empty: all but the embeddings
};

// Tensors: those of the tower and of the decoder; of the second version also pyramid.N from the coarsest
// map on, detail.0 and .1, which reduce the channels of the finer maps, and no_memory [1, 1, C].
Program BuildSam(const SamConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics);

}  // namespace mlc::networks
