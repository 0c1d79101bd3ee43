// lib/networks/vision_transformer.h - vision transformers: a tower that turns pictures into tokens,
// from flags, sizes and weights.
//
// Letters of shapes: W the width, N patches, T tokens: a class token, a distillation token, registers
// (each if the model has them), the patches row by row, and detection tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/networks/layers.h"
#include "lib/networks/position_grid.h"
#include "lib/networks/transformer_layer.h"

namespace mlc::networks {

// The flags of an architecture and the hyperparameters of one model.
struct VisionConfig {
  TransformerLayer layer;
  int64_t layers = 0;
  // In pixels; the trained size is that of the position table.
  GridSize patch = {16, 16}, picture, trained;
  int64_t channels = 3;
  bool class_token = false, distillation_token = false;
  int64_t registers = 0, detection_tokens = 0;
  bool patch_bias = true;
  bool flat_patches = false;     // the patches' weight is [W, height * width * channels]
  bool embeddings_norm = false;  // before the layers (CLIP)
  // A table of positions, added to the embeddings; resized to the picture.
  bool position_table = true;
  enum class Positioned : uint8_t {
    kAllButRegisters,
    kAll,
    kPatches
  } positioned = Positioned::kAllButRegisters;  // the tokens that have positions
  Resizing resizing = Resizing::kBicubic;
  bool mid_positions = false;  // such tables also after each layer but the last (YOLOS)
  bool rotary = false;         // of the patches, by two coordinates (DINOv3)
  double rotary_base = 100;
  // EVA-02: positions count patches, scaled to a grid of this size, and rotate pairs of neighbours.
  GridSize rotary_reference;
  enum class Relative : uint8_t { kNone, kPerLayer, kShared } relative = Relative::kNone;  // BEiT

  GridSize grid() const { return {picture.height / patch.height, picture.width / patch.width}; }
  GridSize trained_grid() const {
    return {trained.height / patch.height, trained.width / patch.width};
  }
  int64_t first_patch() const { return class_token + distillation_token + registers; }
  int64_t tokens() const { return first_patch() + grid().count() + detection_tokens; }
};

// The tensors of a tower (NetworkWeights, layers.h) have these names:
//
//   vision.patches   .weight [W, channels, height, width], .bias
//   vision.class_token vision.distillation_token vision.registers vision.detection_tokens
//   vision.positions vision.mid_positions   as in transformers; leading dimensions of 1 may differ
//   vision.embeddings_norm vision.norm
//   vision.layer.N.*   transformer_layer.h
//   vision.layer.N.relative_positions, or vision.relative_positions   BEiT's tables
//
// Throws Error "bad-file" for sizes that are not positive or do not fit together, "resource-limit"
// for too many tokens. Must precede the functions below.
void CheckVision(const VisionConfig& config);

// Returns the hidden states [1, T, W], which are not normalised by vision.norm: after the embeddings,
// then after each layer. `pixels` is [1, channels, height, width] as the model expects them.
std::vector<Value*> VisionTower(Builder& b, Layers& layers, const VisionConfig& config,
                                Value* pixels);
Value* VisionNorm(Layers& layers, const VisionConfig& config, Value* x);  // vision.norm
// The patches [1, N, W] of tokens [1, T, W], and as an image [1, W, rows, columns].
Value* PatchTokens(Builder& b, const VisionConfig& config, Value* x);
Value* PatchImage(Builder& b, const VisionConfig& config, Value* patches);

}  // namespace mlc::networks
