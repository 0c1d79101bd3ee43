// lib/networks/vision_model.h - complete models of vision transformers: classifiers, features,
// detectors, depths, and pairs of towers for pictures and texts.
//
// Ports of the function `main`. Letters of shapes: T tokens of a picture, S of a text, W the width, D
// the width of embeddings, L labels.
//
//   inputs   pixel_values fp32 [1, channels, height, width], or an image
//            input_ids int32 [1, S]
//   outputs  depend on the head, fp32:
//            kHidden       last_hidden_state [1, T or S, W], and pooler_output [1, W] of models with a
//                          pooler
//            kEmbedding    image_embeds or text_embeds [1, D]; last_hidden_state
//            kClassifier   logits [1, L]
//            kTwoTeachers  logits, their mean; cls_logits, distillation_logits [1, L]
//            kDetection    logits [1, detection tokens, L], pred_boxes [1, detection tokens, 4];
//                          last_hidden_state
//            kContrast     logits_per_image, logits_per_text [1, 1]; image_embeds, text_embeds [1, D]
//                          of length 1. On request: vision_last_hidden_state,
//                          vision_pooler_output, text_last_hidden_state, text_pooler_output
//            kSegments     logits [1, L, height, width] of segments (upernet.h)
//            kDepth        predicted_depth [1, height, width], or logits of segments (depth.h)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/ir/program.h"
#include "lib/networks/depth.h"
#include "lib/networks/layers.h"
#include "lib/networks/model_ports.h"
#include "lib/networks/text_tower.h"
#include "lib/networks/upernet.h"
#include "lib/networks/vision_transformer.h"
#include "lib/support/error.h"

namespace mlc::networks {

struct VisionModelConfig {
  std::optional<VisionConfig> vision;
  std::optional<TextConfig> text;
  enum class Head : uint8_t {
    kHidden,
    kEmbedding,
    kClassifier,
    kTwoTeachers,
    kDetection,
    kContrast,
    kDepth,
    kSegments,
  } head = Head::kHidden;
  bool normed = true;  // vision.norm makes the last hidden state
  enum class Pooler : uint8_t {
    kNone,
    kFirst,        // the first token of the last hidden state
    kFirstTwo,     // the mean of the first two tokens
    kNormedFirst,  // that token, normalised by vision.norm
    kDense,        // an activation of a linear layer of that token: vision.pooler
    kMean,         // the mean of the patches, normalised: vision.pooler_norm
    kPatches,      // that mean, not normalised
    kAttention,    // a query that attends to all patches: vision.head (SigLIP)
  } pooler = Pooler::kNone;
  Activation pooler_activation = Activation::kTanh;  // kDense
  bool pools_all = false;  // kAttention: to tokens before the patches, too
  enum class Features : uint8_t {
    kFirst,         // the first token
    kFirstAndMean,  // the first token, then the mean of the patches
    kMean,          // the mean of the patches
    kPooled,
  } features = Features::kFirst;     // that `classifier` takes
  bool logit_bias = false;           // kContrast
  DepthConfig depth;                 // kDepth
  UperNetConfig segments;            // kSegments
  std::vector<int64_t> states;       // kSegments: four hidden states, 0 the embeddings
  PictureInput picture;              // `size` and `channels` are those of `vision`
  Symbol tokens;                     // the sizes of S
  std::vector<std::string> outputs;  // names; empty: those above
};

// The tensors have the names of the towers (vision_transformer.h, text_tower.h), of depth.h, and
//
//   vision.pooler vision.pooler_norm vision.projection text.projection
//   vision.head.probe; vision.head.qkv, or .query and .key_value; vision.head.attention vision.head.norm vision.head.up
//   vision.head.down
//   classifier teacher   (deit's cls_classifier and distillation_classifier)
//   pyramid.0 pyramid.0.norm pyramid.0.second pyramid.1   (kSegments, which double the sizes of maps)
//   detection.class.N detection.box.N   for layers N = 0 to 2
//   logit_scale logit_bias
//
// A tower that no output needs is left out, and so is its input. The errors "missing-tensor" and
// "bad-tensor" give the tensor's name in the source; "bad-file" for inconsistent numbers, "bad-name"
// for unknown outputs.
Program BuildVisionModel(VisionModelConfig config, const NetworkWeights& weights,
                         Diagnostics& diagnostics);

// Returns whether outputs of these names need the tower; no names stand for all outputs.
bool NeedsVision(const std::vector<std::string>& outputs);
bool NeedsText(const std::vector<std::string>& outputs);

}  // namespace mlc::networks
