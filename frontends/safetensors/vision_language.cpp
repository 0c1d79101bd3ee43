#include "frontends/safetensors/vision_language.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/config_defaults.h"
#include "frontends/safetensors/decoder_rows.h"
#include "frontends/safetensors/decoders.h"
#include "frontends/safetensors/folder_weights.h"
#include "frontends/safetensors/image_processor.h"
#include "frontends/safetensors/picture_nets.h"
#include "frontends/safetensors/vision_language_rows.h"
#include "frontends/safetensors/vision_rows.h"
#include "lib/networks/check_weights.h"
#include "lib/networks/vision_language.h"

namespace mlc::safetensors {

namespace fs = std::filesystem;

namespace {

using networks::GridSize;
using Projector = networks::VisionLanguageConfig::Projector;

class PictureImporter {
 public:
  PictureImporter(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                  std::vector<fs::path>* read)
      : folder_(folder),
        row_(*FindVisionLanguageRow(folder.model_type())),
        json_(folder.config().WithDefaults(row_.defaults)),
        text_(TextConfig()),
        vision_(VisionConfigOf()),
        tower_(TowerOf()),
        options_(options),
        diagnostics_(diagnostics),
        read_(read),
        weights_(folder, {row_.prefixes.begin(), row_.prefixes.end()}, Names()) {}

  Program Run() {
    Program program = ImportText();
    ReadTower();
    ReadProjector();
    const std::optional<ImageProcessor> processor = ReadImageProcessor(folder_.path(), read_);
    if (tower_.qwen) config_.vision.picture = UsualSize();
    const int64_t unit = config_.square * config_.vision.patch.height;
    const bool follows = tower_.qwen && options_.picture &&
                         !options_.shapes.contains("pixel_values") && unit > 0 &&
                         unit <= kLargestUnit;
    if (follows) {
      const auto [height, width] = *options_.picture;
      constexpr std::pair<int64_t, int64_t> kPixels = {56 * 56, 28 * 28 * 1280};
      config_.vision.picture = KeptProportions(
          {height, width}, unit, processor && processor->pixels ? *processor->pixels : kPixels);
    }
    if (tower_.qwen && !config_.vision.position_table)
      config_.vision.trained = config_.vision.picture;
    config_.picture =
        PictureInputOf(processor, config_.vision.picture, config_.vision.channels, options_);
    config_.vision.picture = config_.picture.size;
    if (tower_.qwen && !config_.vision.position_table)
      config_.vision.trained = config_.vision.picture;
    networks::CheckVisionLanguage(config_);
    const networks::NetworkWeights weights = weights_.ForNetwork();
    networks::AddVision(program, config_, weights, diagnostics_);
    UseLeftOvers();
    weights_.CheckAllUsed();
    Describe(program);
    if (follows) program.interface.metadata.emplace_back("mlc.image_size", "of the picture");
    DescribePictures(program, config_.picture);
    return program;
  }

 private:
  static constexpr int64_t kLargestUnit = 1 << 12;

  std::string TextType(const Config& text) const {
    const std::string own = std::string(row_.text_type);
    const std::string type = text.Text("model_type", own);
    return type == row_.model_type || type == fmt::format("{}_text", row_.model_type) ? own : type;
  }

  // Qwen's first versions have the members of the language model at the top.
  Config TextConfig() const {
    const bool nested = json_.kind("text_config") == Config::Kind::kObject;
    Config text = nested ? json_.Object("text_config") : json_;
    const std::string type = TextType(text);
    // A language model with places in three directions is otherwise one that has a row.
    const std::string like = type == "qwen2_vl" ? "qwen2" : type == "qwen3_vl" ? "qwen3" : type;
    if (!FindDecoderRow(like))
      text.Refuse("model_type", fmt::format("{}", fmt::join(DecoderModelTypes(), ", ")));
    return text.WithDefaults(TextDefaults(type))
        .With(fmt::format(R"({{"model_type": "{}"}})", like));
  }

  Config VisionConfigOf() const {
    if (json_.kind("vision_config") == Config::Kind::kNone)
      throw Error("bad-file", "the model has no vision_config")
          .At({json_.file(), ""})
          .Expected("the members of the vision tower");
    return json_.Object("vision_config");
  }

  const TowerRow& TowerOf() {
    const std::string type = vision_.Text("model_type", std::string(row_.vision_type));
    const TowerRow* tower = FindTower(type);
    // Newer versions name the class of the tower after the model.
    if (!tower && type.starts_with(row_.model_type)) tower = FindTower(row_.vision_type);
    if (!tower) vision_.Refuse("model_type", fmt::format("{}", fmt::join(TowerTypes(), ", ")));
    vision_ = vision_.WithDefaults(tower->defaults);
    return *tower;
  }

  std::vector<TensorName> Names() const {
    std::vector<TensorName> names(tower_.names.begin(), tower_.names.end());
    if (!tower_.like.empty()) names = TensorNames(*FindVisionRow(tower_.like));
    if (tower_.timm) names = row_.published_tower ? PublishedFastVit() : FastVitTensors();
    names.insert(names.end(), row_.names.begin(), row_.names.end());
    return names;
  }

  // The names of apple/ml-fastvlm, whose stages and halvings are one list (transformers'
  // convert_fastvlm_weights_to_hf.py).
  static const std::vector<TensorName>& PublishedFastVit() {
    static const TensorNameList names = [] {
      constexpr int kBlocks[] = {0, 2, 4, 7, 10}, kHalves[] = {0, 1, 3, 5, 8},
                    kPositions[] = {0, 0, 0, 6, 9};
      constexpr std::pair<std::string_view, std::string_view> kParts[] = {
          {"stem.", "patch_embed."},
          {"final_conv", "conv_exp"},
          {"se.fc1", "se.reduce"},
          {"se.fc2", "se.expand"},
          {".mlp.", ".convffn."},
          {".gamma", ""},
          {"proj.0.reparam_conv", "proj.0.lkb_reparam"}};
      auto replaced = [](std::string text, std::string_view part, std::string_view by) {
        if (const size_t at = text.find(part); at != std::string::npos)
          text.replace(at, part.size(), by);
        return text;
      };
      TensorNameList made;
      for (const TensorName& name : FastVitTensors()) {
        std::string theirs(name.theirs);
        for (const auto& [part, by] : kParts) theirs = replaced(theirs, part, by);
        if (!theirs.starts_with("stages.{}.")) {
          made.Add(std::string(name.ours), theirs);
          continue;
        }
        for (size_t stage = 0; stage < std::size(kBlocks); ++stage) {
          std::string own =
              replaced(theirs, "stages.{}.blocks.", fmt::format("network.{}.", kBlocks[stage]));
          own = replaced(own, "stages.{}.downsample.", fmt::format("network.{}.", kHalves[stage]));
          own = replaced(own, "stages.{}.pos_emb", fmt::format("network.{}", kPositions[stage]));
          made.Add(replaced(std::string(name.ours), "stage.{}", fmt::format("stage.{}", stage)),
                   own);
        }
      }
      return made;
    }();
    return names.rows();
  }

  // Returns the name that a decoder's folder has for a tensor of the language model, or nothing.
  std::optional<std::string> TextName(const std::string& name) const {
    for (std::string_view prefix : row_.head)
      if (name.starts_with(prefix)) return "lm_head." + name.substr(prefix.size());
    for (std::string_view prefix : row_.prefixes)
      if (name.starts_with(prefix)) return std::nullopt;
    for (std::string_view prefix : row_.text)
      if (name.starts_with(prefix)) return "model." + name.substr(prefix.size());
    return std::nullopt;
  }

  Program ImportText() {
    std::map<std::string, Tensor> tensors;
    bool head = false;
    for (const std::string& name : folder_.names())
      if (const std::optional<std::string> own = TextName(name)) {
        tensors[*own] = folder_.tensor(name);
        weights_.Use(name);
        head |= own->starts_with("lm_head.");
      }
    // Newer versions also say in the text's own configuration that a prompt sees itself both ways; the
    // mask is an input here.
    const Config config = text_.With(
        fmt::format(R"({{"tie_word_embeddings": {}{}}})", head ? "false" : "true",
                    row_.sees_both_ways ? R"(, "use_bidirectional_attention": false)" : ""));
    DecoderForm form{
        .embeds = true, .scales_embeds = ScalesInputs(), .masks_given = row_.sees_both_ways};
    if (tower_.qwen) form.rotary_sections = Sections();
    if (third()) {
      form.alternating_sections = true;
      form.deepstack_layers = std::ssize(vision_.Ints("deepstack_visual_indexes"));
    }
    ImportOptions options = options_;
    std::erase_if(options.shapes, [](const auto& shape) { return shape.first == "pixel_values"; });
    return ImportDecoder(folder_.Part(config, tensors), options, diagnostics_, form);
  }

  // Gemma and Gemma 2 scale what they read by the root of the width, features of pictures included;
  // Gemma 3 scales the embeddings of tokens alone.
  bool ScalesInputs() const {
    const std::string type = text_.Text("model_type");
    return type == "gemma" || type == "gemma2";
  }

  std::vector<int64_t> Sections() const {
    for (const char* key : {"rope_scaling", "rope_parameters"})
      if (text_.kind(key) == Config::Kind::kObject)
        if (const Config rope = text_.Object(key); rope.has("mrope_section"))
          return rope.Ints("mrope_section");
    if (third()) return {24, 20, 20};
    return {16, 24, 24};
  }
  bool third() const { return tower_.model_type == "qwen3_vl"; }

  GridSize SizeIn(const std::string& key) const {
    if (vision_.kind(key) != Config::Kind::kList) return {vision_.Int(key), vision_.Int(key)};
    const std::vector<int64_t> both = vision_.Ints(key);
    if (both.size() != 2) vision_.Refuse(key, "a number, or [height, width]");
    return {both[0], both[1]};
  }

  void ReadTower() {
    networks::VisionConfig& vision = config_.vision;
    networks::TransformerLayer& layer = vision.layer;
    if (!tower_.like.empty()) {
      vision = ReadVision(vision_, *FindVisionRow(tower_.like));
      return;
    }
    if (tower_.timm) return ReadFastVit();
    vision.patch = SizeIn("patch_size");
    layer.activation = ActivationOf(vision_, "hidden_act");
    if (tower_.qwen) return ReadQwenTower();
    layer.width = vision_.Int("hidden_size");
    layer.heads = vision_.Int("num_attention_heads");
    layer.feed_forward = vision_.Int("intermediate_size");
    layer.epsilon = vision_.Number("layer_norm_eps");
    vision.layers = vision_.Int("num_hidden_layers");
    vision.channels = vision_.Int("num_channels");
    vision.picture = vision.trained = SizeIn("image_size");
    vision.class_token = true;
    layer.query_bias = layer.key_bias = layer.value_bias = vision_.Bool("attention_bias", false);
    if (vision_.Bool("use_qk_norm", false)) vision_.Refuse("use_qk_norm", "false");
    if (vision_.Text("norm_type", "layer_norm") != "layer_norm")
      vision_.Refuse("norm_type", "\"layer_norm\"");
    config_.normed = !vision_.Bool("use_mean_pooling", true);
  }

  void ReadFastVit() {
    const std::string name = vision_.Text("architecture");
    if (json_.has("mm_vision_tower")) {
      if (json_.Text("mm_projector_type") != "mlp2x_gelu")
        json_.Refuse("mm_projector_type", "\"mlp2x_gelu\"");
      if (!json_.Text("mm_vision_tower").starts_with("mobileclip_l"))
        json_.Refuse("mm_vision_tower", "\"mobileclip_l_1024\"");
    }
    const std::string_view usual = FastVitArguments(name);
    if (usual.empty()) vision_.Refuse("architecture", "a FastViT, such as fastvit_mci3");
    const bool given = vision_.kind("model_args") == Config::Kind::kObject;
    const Config arguments =
        (given ? vision_.Object("model_args") : Config::Parse("{}", vision_.file()))
            .WithDefaults(usual);
    networks::FastVitConfig tower = safetensors::ReadFastVit(arguments);
    networks::CheckFastVit(tower);
    networks::VisionConfig& vision = config_.vision;
    vision.patch = {tower.reduction(), tower.reduction()};
    // FastVLM's processor; timm's default is smaller.
    vision.picture = vision.trained = {1024, 1024};
    vision.layer.width = vision.layer.feed_forward = tower.channels();
    vision.layer.heads = vision.layers = 1;
    config_.fast_vit = std::move(tower);
  }

  void ReadQwenTower() {
    networks::VisionConfig& vision = config_.vision;
    networks::TransformerLayer& layer = vision.layer;
    config_.qwen = true;
    vision.layers = vision_.Int("depth");
    layer.heads = vision_.Int("num_heads");
    vision.channels = vision_.Int(vision_.has("in_chans") ? "in_chans" : "in_channels");
    vision.position_table = vision.class_token = vision.patch_bias = false;
    layer.epsilon = config_.epsilon = 1e-6;
    config_.square = vision_.Int("spatial_merge_size");
    if (vision_.Int("temporal_patch_size") != 2) vision_.Refuse("temporal_patch_size", "2");
    if (third()) return ReadThirdQwenTower();
    if (row_.vision_type == "qwen2_5_vl") {
      layer.width = vision_.Int("hidden_size");
      layer.feed_forward = vision_.Int("intermediate_size");
      layer.gated = config_.rms_norms = true;
      config_.global_layers = vision_.Ints("fullatt_block_indexes");
      // Windows cover whole squares.
      const int64_t unit = std::max<int64_t>(1, config_.square) *
                           std::max<int64_t>(1, vision.patch.height),
                    side = vision_.Int("window_size") / unit * config_.square;
      if (side < 1) vision_.Refuse("window_size", fmt::format("at least {}", unit));
      config_.window = {side, side};
      return;
    }
    layer.width = vision_.Int("embed_dim");
    const double ratio = vision_.Number("mlp_ratio");
    layer.feed_forward = Truncated(static_cast<double>(layer.width) * ratio);
  }

  void ReadThirdQwenTower() {
    networks::VisionConfig& vision = config_.vision;
    vision.layer.width = vision_.Int("hidden_size");
    vision.layer.feed_forward = vision_.Int("intermediate_size");
    vision.position_table = vision.patch_bias = true;
    vision.resizing = networks::Resizing::kBilinearCorners;
    const int64_t rows = vision_.Int("num_position_embeddings");
    const auto side = Truncated(std::sqrt(static_cast<double>(rows)));
    constexpr int64_t kMost = 1 << 15;
    if (side * side != rows) vision_.Refuse("num_position_embeddings", "the square of a number");
    vision.trained = {side * std::clamp<int64_t>(vision.patch.height, 0, kMost),
                      side * std::clamp<int64_t>(vision.patch.width, 0, kMost)};
    for (int64_t layer : vision_.Ints("deepstack_visual_indexes"))
      config_.deepstack.push_back(std::clamp<int64_t>(layer, -1, vision.layers) + 1);
  }

  // A square that the processor allows, and that is not slow: pictures have any size.
  GridSize UsualSize() const {
    constexpr int64_t kUsual = 448;
    const int64_t unit = config_.square * config_.vision.patch.height;
    if (unit < 1 || unit > kUsual) return config_.vision.patch;
    const int64_t side = kUsual / unit * unit;
    return {side, side};
  }

  void ReadProjector() {
    config_.text_width = text_.Int("hidden_size");
    config_.projector = row_.projector;
    config_.normed = config_.normed || row_.normed;
    config_.normed_before = row_.normed_before;
    config_.normed_joined = row_.normed_joined;
    if (json_.has("projector_hidden_act"))
      config_.activation = ActivationOf(json_, "projector_hidden_act");
    if (row_.divided_by_root)
      config_.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, config_.text_width)));
    ReadStates();
    if (json_.has("downsample_factor")) {
      config_.square = json_.Int("downsample_factor");
      config_.inner_width = json_.Int("projector_hidden_size");
      config_.normed_joined = json_.Bool("projector_use_layernorm");
      config_.epsilon = 1e-5;  // of torch's LayerNorm
      if (config_.inner_width < 1) json_.Refuse("projector_hidden_size", "a positive number");
    }
    if (json_.has("scale_factor")) config_.square = json_.Int("scale_factor");
    if (json_.has("downsample_ratio")) {
      const double ratio = json_.Number("downsample_ratio");
      config_.square = ratio > 0.01 ? std::lround(1 / ratio) : 0;
      config_.epsilon = 1e-5;  // of torch's LayerNorm
    }
    if (config_.projector == Projector::kPooled) {
      const auto side = Truncated(std::sqrt(static_cast<double>(json_.Int("mm_tokens_per_image"))));
      const int64_t patches = config_.vision.patch.height > 0
                                  ? config_.vision.picture.height / config_.vision.patch.height
                                  : 0;
      config_.square = side > 0 ? patches / side : 0;
      config_.epsilon = config_.vision.layer.epsilon;
    }
  }

  void ReadStates() {
    const int64_t layers = config_.vision.layers;
    std::vector<int64_t> chosen = {layers};
    if (config_.fast_vit) {
      if (json_.Int("vision_feature_layer") != -1) json_.Refuse("vision_feature_layer", "-1");
      if (json_.Text("vision_feature_select_strategy") != "full")
        json_.Refuse("vision_feature_select_strategy", "\"full\"");
    }
    if (row_.feature_layer) {
      chosen = json_.kind("vision_feature_layer") == Config::Kind::kList
                   ? json_.Ints("vision_feature_layer")
                   : std::vector{json_.Int("vision_feature_layer")};
      if (chosen.empty()) json_.Refuse("vision_feature_layer", "at least one hidden state");
      for (int64_t& state : chosen)
        if (state < 0) state += layers + 1;
      const std::string select = json_.Text("vision_feature_select_strategy");
      if (select != "default" && select != "full")
        json_.Refuse("vision_feature_select_strategy", "\"default\" or \"full\"");
      config_.class_token = select == "full";
    }
    config_.states = chosen;
  }

  // Layers behind the last hidden state that is read, norms that are not applied, and heads of the
  // tower for other purposes.
  void UseLeftOvers() {
    const int64_t used = *std::ranges::max_element(config_.states);
    for (const std::string& name : folder_.names()) {
      const bool layer = LayerIn(name) >= used && LayerIn(name) < config_.vision.layers;
      if (TextName(name)) continue;
      if (layer ||
          (!config_.normed &&
           (name.ends_with("post_layernorm.weight") || name.ends_with("post_layernorm.bias") ||
            name.ends_with("vision_tower.layernorm.weight") ||
            name.ends_with("vision_tower.layernorm.bias"))) ||
          name.find("vision_model.head.") != std::string::npos ||
          name.find("vision_tower.head.") != std::string::npos || name.ends_with("mask_token") ||
          name.ends_with("inv_freq") || name.find("timm_model.head.") != std::string::npos)
        weights_.Use(name);
    }
  }
  // Returns the number in "encoder.layers.3.", or -1.
  static int64_t LayerIn(const std::string& name) {
    int64_t layer = -1;
    for (std::string_view before : {"encoder.layers.", "encoder.layer."})
      if (const size_t at = name.find(before); at != std::string::npos)
        std::from_chars(name.data() + at + before.size(), name.data() + name.size(), layer);
    return layer;
  }

  int64_t ImageToken() const {
    for (std::string_view key : {row_.image_token, row_.other_image_token})
      if (json_.has(std::string(key))) return json_.Int(std::string(key));
    // The first row behind the tokens of Qwen 2, which FastVLM's converter gives to pictures; the model
    // itself has none.
    constexpr int64_t kBehindQwen2 = 151646;
    return std::min(kBehindQwen2, text_.Int("vocab_size") - 1);
  }

  void Describe(Program& program) const {
    auto& metadata = program.interface.metadata;
    metadata.emplace_back("mlc.image_token", std::to_string(ImageToken()));
    if (!row_.picture_text.empty())
      metadata.emplace_back("mlc.image_text", std::string(row_.picture_text));
    const GridSize grid = config_.token_grid();
    if (tower_.qwen)
      metadata.emplace_back("mlc.image_grid", fmt::format("{},{}", grid.height, grid.width));
    if (row_.sees_both_ways && WithFamilyDefaults(text_).has("sliding_window"))
      metadata.emplace_back("mlc.image_window",
                            std::to_string(WithFamilyDefaults(text_).Int("sliding_window")));
    if (row_.sees_both_ways)
      metadata.emplace_back("mlc.image_mask", row_.divided_by_root ? "prompt" : "picture");
    std::ranges::sort(metadata);
  }

  const Folder& folder_;
  const VisionLanguageRow& row_;
  const Config json_, text_;
  Config vision_;
  const TowerRow& tower_;
  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<fs::path>* read_;
  FolderWeights weights_;
  networks::VisionLanguageConfig config_;
};

}  // namespace

bool IsVisionLanguage(const Config& config) {
  return FindVisionLanguageRow(config.Text("model_type", "")) != nullptr;
}

Program ImportVisionLanguage(const Folder& folder, const ImportOptions& options,
                             Diagnostics& diagnostics, std::vector<fs::path>* read) {
  return PictureImporter(folder, options, diagnostics, read).Run();
}

}  // namespace mlc::safetensors
