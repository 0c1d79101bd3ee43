// lib/networks/sam_decoder.h - the decoder of Segment Anything (Kirillov et al. 2023; Ravi et al. 2024):
// masks of what prompts show in a picture, from embeddings of both.
#pragma once

#include "lib/networks/activation.h"
#include "lib/networks/layers.h"
#include "lib/networks/position_grid.h"

namespace mlc::networks {

struct SamDecoderConfig {
  int64_t channels = 256, features = 128;  // features: frequencies of positions
  // Layers that attend from prompts to the picture and back.
  int64_t layers = 2, heads = 8, feed_forward = 2048, reduction = 2;
  double epsilon = 1e-6;
  Activation activation = Activation::kRelu;
  int64_t masks = 3;  // besides the one that is not ambiguous
  int64_t score_layers = 3, score_width = 256;
  GridSize picture;  // in pixels
  // The second version: masks use finer maps of the picture, scores are between 0 and 1, and another one
  // says whether the picture shows the object at all.
  bool second = false;
};

// Each prompt is null if it is not used; one is needed. Coordinates are x and y in pixels.
struct SamPrompt {
  Value* points = nullptr;  // fp32 [1, 1, P, 2]
  Value* labels = nullptr;  // int32 [1, 1, P]
  Value* boxes = nullptr;   // fp32 [1, 1, 4]: left, top, right, bottom
};

struct SamMasks {
  Value* scores;            // [1, 1, M]
  Value* masks;             // [1, 1, M, 4 h, 4 w]
  Value* object = nullptr;  // [1, 1, 1]; of the second version
};

// `maps` are embeddings of the picture from the finest to the coarsest one, [1, C, h, w]; those before
// it, which the second version has, are [1, C / 8, 4 h, 4 w] and [1, C / 4, 2 h, 2 w].
//
// Tensors of prompts: frequencies [2, features]; no_mask, no_point [1, C]; point.0 to .3 [1, C], or
// points [4, C]. Of the decoder: score_token [1, C], mask_tokens [1 + M, C], object_token [1, C];
// block.N.self, .to_picture, .to_prompt, each with .query, .key, .value and .output; block.N.norm.0 to .3,
// block.N.up, block.N.down; final.*, final.norm; upscale.0, upscale.norm, upscale.1; mask.N.0 to .2,
// score.0 to .K, object.0 to .2.
SamMasks DecodeMasks(Builder& b, Layers& layers, const SamDecoderConfig& config,
                     const std::vector<Value*>& maps, const SamPrompt& prompt);

// Throws Error "bad-file" or "resource-limit" for numbers that no network has.
void CheckSamDecoder(const SamDecoderConfig& config);

}  // namespace mlc::networks
