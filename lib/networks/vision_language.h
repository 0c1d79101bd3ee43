// lib/networks/vision_language.h - the function `vision` of models that read pictures and texts: a
// tower and a projector, which turn a picture into embeddings that take the place of tokens.
//
// Ports of `vision`. I tokens for a picture, D the width of the language model.
//
//   inputs   pixel_values fp32 [1, channels, height, width], or an image
//   outputs  image_features fp32 [1, I, D]
//            deepstack_features fp32 [N, I, D], if the model has N `deepstack` states
//
// The functions of the language model, `main`, `embeds` and `embed_tokens`, are those of decoder.h. An
// app replaces rows of the outputs of embed_tokens, one for each token that stands for a part of a
// picture, and passes the result to `embeds`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/ir/program.h"
#include "lib/networks/fastvit.h"
#include "lib/networks/layers.h"
#include "lib/networks/model_ports.h"
#include "lib/networks/vision_transformer.h"
#include "lib/support/error.h"

namespace mlc::networks {

struct VisionLanguageConfig {
  VisionConfig vision;
  // The tower of Qwen: rotary embedding by the row and the column of a patch, with frequencies
  // 10000^(-4k / head dimension) in halves; a still picture is two equal frames.
  bool qwen = false;
  bool rms_norms = false;              // of the tower of Qwen, and before its projector
  GridSize window;                     // patches that see each other; 0 x 0: all do (Qwen 2.5)
  std::vector<int64_t> global_layers;  // that have no window
  // Further hidden states, each with a projector of its own, whose result is added in the first layers
  // of the language model (Qwen 3).
  std::vector<int64_t> deepstack;
  // The tower is FastViT, whose map is projected; `vision` has the size of pictures and of the part of
  // one that becomes a token.
  std::optional<FastVitConfig> fast_vit;

  // Hidden states of the tower that are projected, side by side: 0 is that after the embeddings.
  std::vector<int64_t> states;
  bool normed = false;       // by vision.norm
  bool class_token = false;  // the tokens before the patches are projected, too
  enum class Projector : uint8_t {
    kOneLayer,   // PaliGemma, Idefics 3
    kTwoLayers,  // LLaVA, InternVL, Qwen
    kPooled,     // averages of squares, normalised, and a matrix [in, out] (Gemma 3)
  } projector = Projector::kTwoLayers;
  bool norm_adds_one = true;   // kPooled: the scale of the norm is stored minus 1
  bool normed_before = false;  // the parts of a square are normalised: projector.norm (Qwen)
  bool normed_joined = false;  // squares are normalised (InternVL)
  Activation activation = Activation::kGelu;
  double epsilon = 1e-6;     // of the norm of the projector
  int64_t square = 1;        // sides of squares of patches that become one token
  int64_t text_width = 0;    // D
  int64_t inner_width = -1;  // between the two layers of a projector; -1: that of the weight
  double scale = 1;          // of the result
  PictureInput picture;      // `size` and `channels` are those of `vision`

  GridSize token_grid() const {
    return {vision.grid().height / square, vision.grid().width / square};
  }
};

// The tensors have the names of vision_transformer.h, and
//
//   projector.norm projector.1 projector.2, each followed by .weight or .bias
//   deepstack.N.norm deepstack.N.1 deepstack.N.2, likewise
//
// Those of FastViT are in fastvit.h. The patches of Qwen's tower are vision.patches.weight [W, channels, frames, height, width].
//
// Throws Error "bad-file" for inconsistent numbers, "resource-limit". Must precede AddVision.
void CheckVisionLanguage(const VisionLanguageConfig& config);
// Adds the function. The errors "missing-tensor" and "bad-tensor" give the tensor's name in the source.
void AddVision(Program& program, const VisionLanguageConfig& config, const NetworkWeights& weights,
               Diagnostics& diagnostics);

}  // namespace mlc::networks
