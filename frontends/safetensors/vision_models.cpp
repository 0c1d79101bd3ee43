#include "frontends/safetensors/vision_models.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/folder_weights.h"
#include "frontends/safetensors/image_processor.h"
#include "frontends/safetensors/vision_rows.h"
#include "lib/support/edit_distance.h"

namespace mlc::safetensors {

namespace fs = std::filesystem;

namespace {

using networks::DepthConfig;
using networks::VisionModelConfig;
using VisionHead = VisionModelConfig::Head;
using Pooler = VisionModelConfig::Pooler;

struct VisionHeadRow {
  std::string_view suffix;  // of the architecture's name: ViTForImageClassification
  VisionHead head;
  bool vision = true, text = false;  // the towers that the model has
};
constexpr VisionHeadRow kVisionHeads[] = {
    {"ForImageClassificationWithTeacher", VisionHead::kTwoTeachers},
    {"ForImageClassification", VisionHead::kClassifier},
    {"ForObjectDetection", VisionHead::kDetection},
    {"ForDepthEstimation", VisionHead::kDepth},
    {"ForSemanticSegmentation", VisionHead::kSegments},
    {"VisionModelWithProjection", VisionHead::kEmbedding},
    {"TextModelWithProjection", VisionHead::kEmbedding, false, true},
    {"VisionModel", VisionHead::kHidden},
    {"TextModel", VisionHead::kHidden, false, true},
    {"Model", VisionHead::kHidden},
};

// The defaults of DepthAnythingConfig and DPTConfig.
constexpr std::string_view kDepthAnything = R"({"reassemble_hidden_size": 384,
  "reassemble_factors": [4, 2, 1, 0.5], "neck_hidden_sizes": [48, 96, 192, 384],
  "fusion_hidden_size": 64, "head_in_index": -1, "head_hidden_size": 32,
  "depth_estimation_type": "relative", "backbone_config": {"model_type": "dinov2",
  "image_size": 518, "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6,
  "out_indices": [9, 10, 11, 12]}})";
constexpr std::string_view kDpt = R"({"backbone_out_indices": [2, 5, 8, 11],
  "readout_type": "project", "reassemble_factors": [4, 2, 1, 0.5],
  "neck_hidden_sizes": [96, 192, 384, 768], "fusion_hidden_size": 256, "head_in_index": -1,
  "hidden_act": "gelu"})";

// Tensors that training leaves in folders, and that no head needs.
bool IsLeftOverTensor(std::string_view name) {
  for (std::string_view part : {"mask_token", "relative_position_index", "auxiliary_head.",
                                "position_ids", "neck.fusion_stage.layers.0.residual_layer1."})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

class VisionImporter {
 public:
  VisionImporter(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                 std::vector<fs::path>* read)
      : folder_(folder),
        json_(folder.config()),
        options_(options),
        diagnostics_(diagnostics),
        read_(read) {}

  Program Run() {
    ReadTowers();
    config_.outputs = options_.outputs;
    networks::PictureInput& picture = config_.picture;
    if (config_.vision) {
      networks::VisionConfig& vision = *config_.vision;
      picture = PictureInputOf(ReadImageProcessor(folder_.path(), read_), vision.picture,
                               vision.channels, options_);
      vision.picture = picture.size;
    } else if (!options_.shapes.empty() || !options_.images.empty()) {
      throw Error("usage", "options 'shape' and 'image' are for pictures; this model takes texts")
          .Help("option 'dim' tokens=... sets the number of tokens");
    }
    ReadTokens();
    FolderWeights weights(folder_, prefixes_, names_);
    // Some folders are stored without the pooler.
    if ((config_.pooler == Pooler::kDense && !weights.Has("vision.pooler.weight")) ||
        (config_.pooler == Pooler::kMean && config_.head == VisionHead::kHidden &&
         !weights.Has("vision.pooler_norm.weight")))
      config_.pooler = Pooler::kNone;
    Program program = networks::BuildVisionModel(config_, weights.ForNetwork(), diagnostics_);
    for (const std::string& name : folder_.names())
      if (IsLeftOverTensor(name) || IsOfOthers(name)) weights.Use(name);
    weights.CheckAllUsed();
    const bool has_picture = std::ranges::any_of(
        program.main()->inputs, [&](const Port& port) { return port.source_name == picture.name; });
    if (has_picture) DescribePictures(program, picture);
    return program;
  }

 private:
  // Returns whether the tensor belongs to a tower or head that the model does not have, which
  // transformers ignores.
  bool IsOfOthers(const std::string& name) const {
    const bool vision = config_.vision && networks::NeedsVision(config_.outputs),
               text = config_.text && networks::NeedsText(config_.outputs);
    auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    if (pair_ && !text && (has("text_model.") || has("text_projection"))) return true;
    if (pair_ && !vision && (has("vision_model.") || has("visual_projection"))) return true;
    if (pair_ && (!text || !vision) && name.starts_with("logit_")) return true;
    if (pair_ && config_.head != VisionHead::kEmbedding && config_.head != VisionHead::kContrast &&
        has("_projection."))
      return true;
    if (config_.head != VisionHead::kHidden && has("pooler.")) return true;
    if (config_.head == VisionHead::kHidden && (has("classifier.") || has("bbox_predictor.")))
      return true;
    if (config_.head == VisionHead::kClassifier && pair_ &&
        (has(".head.") || has("post_layernorm.")))
      return true;
    // Heads of depths and of segments take hidden states before this norm.
    return (config_.head == VisionHead::kSegments ||
            (config_.head == VisionHead::kDepth && !config_.depth.normed)) &&
           has(".layernorm.");
  }

  const VisionHeadRow& HeadRowOf(bool pair) const {
    static constexpr VisionHeadRow kPair = {"Model", VisionHead::kContrast, true, true};
    static constexpr VisionHeadRow kNone = {"", VisionHead::kHidden};
    static constexpr VisionHeadRow kTextOnly = {"", VisionHead::kHidden, false, true};
    const std::string architecture = folder_.architecture();
    const std::string type = folder_.model_type();
    std::vector<std::string> known;
    for (const VisionHeadRow& row : kVisionHeads) {
      if (!Supports(row, pair)) continue;
      if (architecture.ends_with(row.suffix)) return pair && row.suffix == "Model" ? kPair : row;
      known.push_back("..." + std::string(row.suffix));
    }
    if (architecture.empty()) {
      if (pair) return kPair;
      if (FindTextRow(type)) return kTextOnly;
      if (type == "depth_anything")
        return *std::ranges::find(kVisionHeads, VisionHead::kDepth, &VisionHeadRow::head);
      return kNone;
    }
    json_.Refuse("architectures", fmt::format("{}", fmt::join(known, ", ")));
  }
  // Returns whether models of this type have the head.
  bool Supports(const VisionHeadRow& row, bool pair) const {
    const std::string type = folder_.model_type();
    const bool depth = type == "dpt" || type == "depth_anything";
    switch (row.head) {
      case VisionHead::kTwoTeachers:
        return type == "deit";
      case VisionHead::kClassifier:
        return !depth && type != "yolos" && type != "vit_mae" && type != "dinov3_vit" &&
               type != "blip_vision_model" && !FindTextRow(type);
      case VisionHead::kDetection:
        return type == "yolos";
      case VisionHead::kDepth:
        return depth;
      case VisionHead::kSegments:
        return type == "dpt" || type == "beit" || type == "data2vec-vision";
      case VisionHead::kEmbedding:
        return type.starts_with("clip");
      default:
        if (row.text) return pair || FindTextRow(type);
        return type != "depth_anything" && !(row.suffix == "Model" && FindTextRow(type));
    }
  }

  // Returns the configuration of a tower. Old files of CLIP also have text_config_dict and
  // vision_config_dict, which replace it.
  Config TowerOf(const std::string& key) const {
    for (const std::string& name : {key + "_dict", key})
      if (json_.has(name)) return json_.Object(name);
    return Config().WithDefaults("{}");
  }

  void ReadTowers() {
    const std::string type = folder_.model_type();
    pair_ = FindPairRow(type);
    const bool nested = pair_ && (json_.has("vision_config") || json_.has("text_config") ||
                                  json_.has("vision_config_dict") || json_.has("text_config_dict"));
    const VisionHeadRow& head = HeadRowOf(pair_ != nullptr);
    config_.head = head.head;
    if (type == "dpt" || type == "depth_anything") {
      // DPT has one head for depths and for segments.
      if (config_.head == VisionHead::kSegments) config_.head = VisionHead::kDepth;
      if (config_.head == VisionHead::kDepth) return ReadDepth();
    }
    if (head.vision) {
      const VisionRow* row = FindVisionRow(pair_ ? pair_->vision : std::string_view(type));
      MLC_CHECK(row, "no row for {}", type);
      SetVision(*row, nested  ? TowerOf("vision_config")
                      : pair_ ? Config().WithDefaults("{}")
                              : json_);
    }
    if (head.text) {
      const TextRow* row = FindTextRow(pair_ ? pair_->text : std::string_view(type));
      MLC_CHECK(row, "no row for {}", type);
      config_.text = ReadText(nested  ? TowerOf("text_config")
                              : pair_ ? Config().WithDefaults("{}")
                                      : json_,
                              *row);
      names_.insert(names_.end(), row->names.begin(), row->names.end());
    }
    if (config_.head == VisionHead::kSegments) ReadSegments();
    if (prefixes_.empty()) prefixes_ = {"", "text_model."};
    config_.logit_bias = pair_ && pair_->logit_bias;
  }

  void SetVision(const VisionRow& row, const Config& config) {
    config_.vision = ReadVision(config, row);
    config_.normed = LastNormed(config, row);
    config_.pooler = row.pooler;
    if (row.pooler == Pooler::kDense && config.has("pooler_act"))
      config_.pooler_activation = ActivationOf(config, "pooler_act");
    config_.features = row.features;
    if (row.pooler == Pooler::kAttention && !config.Bool("vision_use_head", true))
      config_.pooler = Pooler::kNone;
    if (row.features == VisionModelConfig::Features::kPooled &&
        config.Bool("use_mean_pooling", true))
      config_.pooler = Pooler::kMean;
    names_ = TensorNames(row);
    prefixes_ = {std::string(row.prefix), ""};
  }

  void ReadSegments() {
    const Config config =
        json_.WithDefaults(R"({"pool_scales": [1, 2, 3, 6], "out_indices": [3, 5, 7, 11]})");
    config_.pooler = Pooler::kNone;
    config_.segments.scales = config.Ints("pool_scales");
    config_.segments.width = config_.vision->layer.width;
    config_.segments.segments = Labels(config);
    // The embeddings are number 1.
    for (int64_t state :
         config.Ints(config.has("segmentation_indices") ? "segmentation_indices" : "out_indices"))
      config_.states.push_back(std::clamp<int64_t>(state, 0, INT32_MAX) - 1);
  }
  static int64_t Labels(const Config& config) {
    return config.has("id2label") ? static_cast<int64_t>(config.TextMap("id2label").size())
                                  : config.Int("num_labels", 2);
  }

  void ReadDepth() {
    const bool anything = folder_.model_type() == "depth_anything";
    const Config config = json_.WithDefaults(anything ? kDepthAnything : kDpt);
    DepthConfig& depth = config_.depth;
    if (config.Bool("is_hybrid", false)) config.Refuse("is_hybrid", "false");
    for (const char* key : {"use_pretrained_backbone", "use_timm_backbone"})
      if (config.Bool(key, false)) config.Refuse(key, "false");
    depth.fusion_norms = config.Bool("use_batch_norm_in_fusion_residual", false);
    depth.fusion_bias = config.Bool("use_bias_in_fusion_residual", !depth.fusion_norms);
    if (folder_.architecture().ends_with("ForSemanticSegmentation"))
      depth.segments = Labels(config);
    if (config.has("neck_ignore_stages") && !config.Ints("neck_ignore_stages").empty())
      config.Refuse("neck_ignore_stages", "[]");
    const bool backbone = config.has("backbone_config");
    if (backbone) {
      const Config inner = config.Object("backbone_config");
      const std::string type = inner.Text("model_type", "");
      const VisionRow* row = FindVisionRow(type);
      const bool beit = type == "beit" && !anything;
      if (!row || !(beit || type.starts_with("dinov2")))
        (inner.has("model_type") ? inner : config)
            .Refuse(inner.has("model_type") ? "model_type" : "backbone_config",
                    anything ? "dinov2 or dinov2_with_registers"
                             : "beit, dinov2 or dinov2_with_registers");
      // The neck takes tokens, the class token included.
      if (beit && inner.Bool("reshape_hidden_states", true))
        inner.Refuse("reshape_hidden_states", "false");
      if (beit && inner.Bool("add_fpn", false)) inner.Refuse("add_fpn", "false");
      SetVision(*row, inner);
      prefixes_ = {"backbone.", ""};
      depth.normed = !beit && inner.Bool("apply_layernorm", true);
      depth.states = OutIndices(inner);
    } else {
      const VisionRow* row = FindVisionRow("dpt");
      SetVision(*row, json_);
      for (int64_t layer : config.Ints("backbone_out_indices"))
        depth.states.push_back(std::clamp<int64_t>(layer, -2, INT32_MAX) + 1);
    }
    config_.pooler = Pooler::kNone;
    depth.widths = config.Ints("neck_hidden_sizes");
    depth.factors = config.Numbers("reassemble_factors");
    depth.fusion_width = config.Int("fusion_hidden_size");
    depth.head_level = config.Int("head_in_index");
    depth.head_width = config.Int("head_hidden_size", depth.head_width);
    depth.to_size = anything;
    if (!anything) {
      const std::string readout = config.Text("readout_type");
      depth.readout = readout == "project" ? DepthConfig::Readout::kProject
                      : readout == "add"   ? DepthConfig::Readout::kAdd
                                           : DepthConfig::Readout::kIgnore;
      if (readout != "project" && readout != "add" && readout != "ignore")
        config.Refuse("readout_type", "project, add or ignore");
      depth.readout_activation = ActivationOf(config, "hidden_act");
      depth.head_projection = config.Bool("add_projection", false);
      return;
    }
    if (config.Int("reassemble_hidden_size", config_.vision->layer.width) !=
        config_.vision->layer.width)
      config.Refuse("reassemble_hidden_size", std::to_string(config_.vision->layer.width));
    const std::string kind = config.Text("depth_estimation_type");
    if (kind != "relative" && kind != "metric")
      config.Refuse("depth_estimation_type", "relative or metric");
    depth.sigmoid = kind == "metric";
    depth.max_depth = config.Number("max_depth", 1);
  }
  // Returns the hidden states that a backbone gives, 0 for the embeddings.
  std::vector<int64_t> OutIndices(const Config& config) const {
    const int64_t layers = config_.vision->layers;
    std::vector<int64_t> states;
    if (config.has("out_indices")) {
      // Negative indices count from the last layer on.
      for (int64_t index : config.Ints("out_indices"))
        states.push_back(index < 0 && index >= -layers - 1 ? index + layers + 1 : index);
      return states;
    }
    if (!config.has("out_features")) return {layers};
    for (const std::string& stage : config.Texts("out_features")) {
      if (stage == "stem") states.push_back(0);
      for (int64_t layer = 1; layer <= std::min<int64_t>(layers, 1 << 10); ++layer)
        if (stage == fmt::format("stage{}", layer)) states.push_back(layer);
    }
    return states;
  }

  void ReadTokens() {
    constexpr const char* kTokens = "tokens";
    const int64_t most = config_.text ? config_.text->positions : 0;
    config_.tokens = Symbol{1, std::max<int64_t>(most, 1), {}};
    for (const auto& [name, wanted] : options_.dims) {
      if (!config_.text || name != kTokens)
        throw Error("bad-name", "option 'dim' {}: unknown dimension{}", name,
                    DidYouMean(std::array{kTokens}, name))
            .Expected(config_.text ? "tokens, the number of tokens of a text"
                                   : "option 'shape' pixel_values=1,3,HEIGHT,WIDTH");
      if (wanted.high > most)
        throw Error("usage", "option 'dim' {}={}: the model takes at most {}", name, wanted.high,
                    most)
            .Expected("1 to {}", most);
      config_.tokens = wanted;
    }
  }

  const Folder& folder_;
  const Config json_;
  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<fs::path>* read_;
  const PairRow* pair_ = nullptr;
  VisionModelConfig config_;
  std::vector<std::string> prefixes_;
  std::vector<TensorName> names_;
};

}  // namespace

bool IsVisionModel(const Config& config) {
  return VisionModelTypes().contains(config.Text("model_type", ""));
}

Program ImportVisionModel(const Folder& folder, const ImportOptions& options,
                          Diagnostics& diagnostics, std::vector<fs::path>* read) {
  try {
    return VisionImporter(folder, options, diagnostics, read).Run();
  } catch (Error& error) {
    if (!error.has_location()) error.At({folder.path().string(), ""});
    throw;
  }
}

}  // namespace mlc::safetensors
