// frontends/safetensors/vision_rows.h - the vision transformers of Hugging Face folders by
// model_type, the names of their tensors, and the defaults of their classes. Other importers read
// towers with it:
//
//   const VisionRow* row = FindVisionRow(config.Text("model_type"));
//   networks::VisionConfig tower = ReadVision(config.Object("vision_config"), *row);
//   FolderWeights weights(folder, {"vision_tower.vision_model."}, TensorNames(*row));
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/safetensors/config.h"
#include "frontends/safetensors/folder_weights.h"
#include "lib/networks/vision_model.h"

namespace mlc::safetensors {

// Rows follow transformers' models/*/modeling_*.py and configuration_*.py.
struct VisionRow {
  std::string_view model_type;  // of the tower's own configuration
  std::string_view prefix;      // of the tower's tensors in models with a head
  std::span<const TensorName> names;
  std::string_view defaults;     // members of its configuration, as a JSON object
  networks::VisionConfig flags;  // without sizes
  bool normed = true;            // vision.norm makes the last hidden state
  networks::VisionModelConfig::Pooler pooler = networks::VisionModelConfig::Pooler::kNone;
  networks::VisionModelConfig::Features features = networks::VisionModelConfig::Features::kFirst;
};
struct TextRow {
  std::string_view model_type;
  std::span<const TensorName> names;
  std::string_view defaults;
  bool causal = false, has_head = false;
};
// Pairs of towers: config.json has a text_config and a vision_config.
struct PairRow {
  std::string_view model_type, vision, text;  // the rows of the towers
  std::string_view defaults;
  bool logit_bias = false;
};

// These return null if there is no such row.
const VisionRow* FindVisionRow(std::string_view model_type);
const TextRow* FindTextRow(std::string_view model_type);
const PairRow* FindPairRow(std::string_view model_type);
std::set<std::string> VisionModelTypes();

// Returns the names of a row for FolderWeights.
std::vector<TensorName> TensorNames(const VisionRow& row);

// Reads a tower's own configuration, which may leave out what is at the defaults of its class. The
// picture has the trained size. Errors "bad-file", "unsupported-architecture"; the sizes are checked
// by CheckVision.
networks::VisionConfig ReadVision(const Config& config, const VisionRow& row);
// Returns whether vision.norm makes the last hidden state; that of BEiT's pooled models is not normed.
bool LastNormed(const Config& config, const VisionRow& row);
networks::TextConfig ReadText(const Config& config, const TextRow& row);

}  // namespace mlc::safetensors
