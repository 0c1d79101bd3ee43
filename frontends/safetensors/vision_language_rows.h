// frontends/safetensors/vision_language_rows.h - models that read pictures and texts, by model_type,
// with the defaults of the classes of their nested configs, and the names of their tensors.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "frontends/safetensors/folder_weights.h"
#include "lib/networks/vision_language.h"

namespace mlc::safetensors {

// Defaults of transformers' configuration classes, models/*/configuration_*.py.
struct ClassDefaults {
  std::string_view model_type;
  std::string_view members;  // a JSON object
};
// Returns those of a language model, beyond those of config_defaults.h: its sizes; "{}" if unknown.
std::string_view TextDefaults(std::string_view model_type);

// A vision tower by the model_type of vision_config.
struct TowerRow {
  std::string_view model_type;
  std::string_view like = {};  // the row of vision_rows.h, if there is one
  std::string_view defaults = "{}";
  std::span<const TensorName> names = {};  // without such a row
  bool qwen = false, timm = false;
};
const TowerRow* FindTower(std::string_view model_type);
std::set<std::string> TowerTypes();

struct VisionLanguageRow {
  std::string_view model_type;
  std::string_view text_type, vision_type;  // where the nested configs have no model_type
  std::string_view defaults = "{}";
  // Beginnings of the names of the language model's tensors, for "model." and for "lm_head.".
  std::span<const std::string_view> text, head;
  std::span<const std::string_view> prefixes;  // of the other tensors
  networks::VisionLanguageConfig::Projector projector =
      networks::VisionLanguageConfig::Projector::kTwoLayers;
  std::span<const TensorName> names = {};  // of the projector
  // Members of config.json.
  std::string_view image_token = "image_token_id", other_image_token = "image_token_index";
  // How the processor writes a picture in a text: a JSON object with members of PictureText
  // (tools/driver/picture_text.h); empty: its tokens alone.
  std::string_view picture_text = {};
  bool published_tower = false;  // the tensors of FastViT have its authors' names, not timm's
  bool feature_layer = false;    // vision_feature_layer and vision_feature_select_strategy
  bool normed = false;           // the tower's last norm is applied
  bool normed_before = false, normed_joined = false;
  bool divided_by_root = false;  // features are divided by the root of the text's width
  bool sees_both_ways = false;   // the tokens of a picture, or a whole prompt, see each other
};
const VisionLanguageRow* FindVisionLanguageRow(std::string_view model_type);
std::set<std::string> VisionLanguageModelTypes();

}  // namespace mlc::safetensors
