// Segment Anything (transformers' models/sam, sam2 and edgetam): the whole model, and its tower alone. Of
// models for videos only what pictures need is read.

#include "lib/networks/sam.h"

#include <algorithm>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/picture_nets.h"

namespace mlc::safetensors {

namespace {

constexpr TensorName kTowerNames[] = {
    {"patches", "patch_embed.projection"},
    {"positions", "pos_embed"},
    {"layer.{}.attention_norm", "layers.{}.layer_norm1"},
    {"layer.{}.qkv", "layers.{}.attn.qkv"},
    {"layer.{}.attention", "layers.{}.attn.proj"},
    {"layer.{}.rows", "layers.{}.attn.rel_pos_h"},
    {"layer.{}.columns", "layers.{}.attn.rel_pos_w"},
    {"layer.{}.norm", "layers.{}.layer_norm2"},
    {"layer.{}.up", "layers.{}.mlp.lin1"},
    {"layer.{}.down", "layers.{}.mlp.lin2"},
    {"neck.0", "neck.conv1"},
    {"neck.norm.0", "neck.layer_norm1"},
    {"neck.1", "neck.conv2"},
    {"neck.norm.1", "neck.layer_norm2"},
};
constexpr TensorName kHieraNames[] = {
    {"patches", "backbone.patch_embed.projection"},
    {"positions", "backbone.pos_embed"},
    {"window_positions", "backbone.pos_embed_window"},
    {"layer.{}.attention_norm", "backbone.blocks.{}.layer_norm1"},
    {"layer.{}.qkv", "backbone.blocks.{}.attn.qkv"},
    {"layer.{}.attention", "backbone.blocks.{}.attn.proj"},
    {"layer.{}.norm", "backbone.blocks.{}.layer_norm2"},
    {"layer.{}.up", "backbone.blocks.{}.mlp.proj_in"},
    {"layer.{}.down", "backbone.blocks.{}.mlp.proj_out"},
    {"layer.{}.shortcut", "backbone.blocks.{}.proj"},
    {"pyramid.{}", "neck.convs.{}"},
};
constexpr TensorName kPromptNames[] = {
    {"frequencies", "shared_image_embedding.positional_embedding"},
    {"frequencies", "prompt_encoder.shared_embedding.positional_embedding"},
    {"no_mask", "prompt_encoder.no_mask_embed.weight"},
    {"no_point", "prompt_encoder.not_a_point_embed.weight"},
    {"point.{}", "prompt_encoder.point_embed.{}.weight"},
    {"points", "prompt_encoder.point_embed"},
    {"no_memory", "no_memory_embedding"},
    {"score_token", "mask_decoder.iou_token.weight"},
    {"mask_tokens", "mask_decoder.mask_tokens.weight"},
    {"object_token", "mask_decoder.obj_score_token.weight"},
    {"detail.{}", "mask_decoder.conv_s{}"},
    {"upscale.0", "mask_decoder.upscale_conv1"},
    {"upscale.norm", "mask_decoder.upscale_layer_norm"},
    {"upscale.1", "mask_decoder.upscale_conv2"},
};
// The decoder's attention: the network's name and transformers'.
constexpr std::pair<std::string_view, std::string_view> kAttentions[] = {
    {"block.{}.self", "layers.{}.self_attn"},
    {"block.{}.to_picture", "layers.{}.cross_attn_token_to_image"},
    {"block.{}.to_prompt", "layers.{}.cross_attn_image_to_token"},
    {"final", "final_attn_token_to_image"},
};
constexpr std::pair<std::string_view, std::string_view> kProjections[] = {{"query", "q_proj"},
                                                                          {"key", "k_proj"},
                                                                          {"value", "v_proj"},
                                                                          {"output", "out_proj"},
                                                                          {"output", "o_proj"}};

TensorNameList SamNames(const networks::SamConfig& config,
                        std::span<const TensorName> tower_names) {
  TensorNameList names;
  for (const TensorName& row : tower_names)
    for (const char* prefix : {"vision_encoder.", ""})  // the latter: of a tower alone
      names.Add(std::string(row.ours), prefix + std::string(row.theirs));
  for (const TensorName& row : kPromptNames)
    names.Add(std::string(row.ours), std::string(row.theirs));
  const std::string transformer = "mask_decoder.transformer.", block = transformer + "layers.{}.";
  for (auto [ours, theirs] : kAttentions)
    for (auto [part, projection] : kProjections)
      names.Add(fmt::format("{}.{}", ours, part),
                fmt::format("{}{}.{}", transformer, theirs, projection));
  names.Add("block.{}.norm.{}", block + "layer_norm{+1}");
  for (auto [ours, theirs] :
       {std::pair("up", "lin1"), {"up", "proj_in"}, {"down", "lin2"}, {"down", "proj_out"}})
    names.Add(fmt::format("block.{{}}.{}", ours), fmt::format("{}mlp.{}", block, theirs));
  names.Add("final.norm", transformer + "layer_norm_final_attn");
  auto add = [&](const std::string& ours, const std::string& theirs, int64_t count) {
    names.Add(ours + "0", theirs + "proj_in");
    for (int64_t i = 1; i + 1 < std::min(count, networks::kMaxLayers); ++i)
      names.Add(fmt::format("{}{}", ours, i), fmt::format("{}layers.{}", theirs, i - 1));
    names.Add(fmt::format("{}{}", ours, count - 1), theirs + "proj_out");
  };
  constexpr int64_t kMaskLayers = 3;
  add("mask.{}.", "mask_decoder.output_hypernetworks_mlps.{}.", kMaskLayers);
  add("object.", "mask_decoder.pred_obj_score_head.", kMaskLayers);
  add("score.", "mask_decoder.iou_prediction_head.", config.decoder.score_layers);
  return names;
}

bool HasAny(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts,
                             [&](std::string_view part) { return name.find(part) != name.npos; });
}

// Returns whether only masks as prompts, a single mask, or the memory of a video needs the tensor.
// transformers ignores the same ones (modeling_sam2.py, _keys_to_ignore_on_load_unexpected).
bool IsSamLeftOver(std::string_view name) {
  return HasAny(name, {"prompt_encoder.mask_embed.", "mask_decoder.output_hypernetworks_mlps.0.",
                       "shared_embedding.positional_embedding", "memory_", "mask_downsample",
                       "object_pointer", "temporal_positional", "spatial_perceiver",
                       "occlusion_spatial_embedding_parameter"});
}

// Returns whether a tower does not need the tensor: what reads embeddings of pictures does.
bool IsNotOfTower(std::string_view name) {
  return IsSamLeftOver(name) || HasAny(name, {"prompt_encoder.", "mask_decoder.",
                                              "shared_image_embedding.", "no_memory_embedding"});
}
bool IsNotOfRepVit(std::string_view name) {
  return IsSamLeftOver(name) || name.find("timm_model.head") != name.npos;
}
bool IsNotOfRepVitTower(std::string_view name) { return IsNotOfTower(name) || IsNotOfRepVit(name); }

constexpr std::string_view kTowerDefaults = R"({"hidden_size": 768, "output_channels": 256,
    "num_hidden_layers": 12, "num_attention_heads": 12, "num_channels": 3, "image_size": 1024,
    "patch_size": 16, "hidden_act": "gelu", "layer_norm_eps": 1e-6, "qkv_bias": true,
    "mlp_ratio": 4.0, "use_abs_pos": true, "use_rel_pos": true, "window_size": 14,
    "global_attn_indexes": [2, 5, 8, 11], "num_pos_feats": 128})",
                           kPyramidDefaults = R"({"fpn_hidden_size": 256, "fpn_kernel_size": 1,
    "fpn_stride": 1, "fpn_padding": 0, "fpn_top_down_levels": [2, 3], "num_feature_levels": 3})",
                           kHieraDefaults = R"({"hidden_size": 96, "num_channels": 3,
    "image_size": [1024, 1024], "patch_kernel_size": [7, 7], "patch_stride": [4, 4],
    "patch_padding": [3, 3], "query_stride": [2, 2],
    "window_positional_embedding_background_size": [7, 7], "num_query_pool_stages": 3,
    "blocks_per_stage": [1, 2, 7, 2], "embed_dim_per_stage": [96, 192, 384, 768],
    "num_attention_heads_per_stage": [1, 2, 4, 8], "window_size_per_stage": [8, 4, 14, 7],
    "global_attention_blocks": [5, 7, 9], "mlp_ratio": 4.0, "hidden_act": "gelu",
    "layer_norm_eps": 1e-6})",
                           kPromptDefaults = R"({"hidden_size": 256, "image_size": 1024,
    "patch_size": 16})",
                           kDecoderDefaults = R"({"hidden_size": 256, "hidden_act": "relu",
    "mlp_dim": 2048, "num_hidden_layers": 2, "num_attention_heads": 8,
    "attention_downsample_rate": 2, "num_multimask_outputs": 3, "iou_head_depth": 3,
    "iou_head_hidden_dim": 256, "layer_norm_eps": 1e-6})";

// Returns a nested configuration, which may be missing, with the defaults of its class.
Config Nested(const Config& json, const char* key, std::string_view defaults) {
  return (json.has(key) ? json.Object(key) : Config()).WithDefaults(defaults);
}

// The model takes pictures of this size only, whatever the image processor pads them to.
void SetPicture(const PictureFolder& from, networks::GridSize size, int64_t channels,
                networks::SamConfig& config) {
  std::optional<ImageProcessor> processor = from.Processor();
  if (processor) processor->size = size;
  config.picture = from.Picture(processor, size, channels);
  if (config.picture.size != size)
    throw Error("usage", "pictures have {} x {} pixels, and the model takes {} x {} only",
                config.picture.size.height, config.picture.size.width, size.height, size.width);
  config.decoder.picture = size;
}

int64_t Multiplied(const Config& json, int64_t width) {
  const double inner = static_cast<double>(width) * json.Number("mlp_ratio");
  if (!(inner >= 1 && inner <= INT32_MAX)) json.Refuse("mlp_ratio", "a small positive number");
  return static_cast<int64_t>(inner);
}

void ReadTower(const PictureFolder& from, const Config& json, networks::SamConfig& config) {
  networks::SamEncoderConfig tower;
  networks::TransformerLayer& layer = tower.layer;
  layer.width = json.Int("hidden_size");
  layer.heads = json.Int("num_attention_heads");
  layer.activation = ActivationOf(json, "hidden_act");
  layer.epsilon = json.Number("layer_norm_eps");
  layer.query_bias = layer.key_bias = layer.value_bias = json.Bool("qkv_bias");
  layer.feed_forward = json.has("mlp_dim") ? json.Int("mlp_dim") : Multiplied(json, layer.width);
  tower.layers = json.Int("num_hidden_layers");
  tower.patch = config.patch = json.Int("patch_size");
  tower.channels = config.decoder.channels = json.Int("output_channels");
  tower.window = json.Int("window_size");
  tower.global = json.Ints("global_attn_indexes");
  tower.position_table = json.Bool("use_abs_pos");
  tower.relative = json.Bool("use_rel_pos");
  config.tower = std::move(tower);
  config.decoder.features = json.Int("num_pos_feats");
  const int64_t side = json.Int("image_size");
  SetPicture(from, {side, side}, json.Int("num_channels"), config);
}

// Returns the number that a member has, or both of its two numbers.
int64_t Square(const Config& json, const char* key) {
  if (json.kind(key) != Config::Kind::kList) return json.Int(key);
  const std::vector<int64_t> both = json.Ints(key);
  if (both.size() != 2 || both[0] != both[1]) json.Refuse(key, "two equal numbers");
  return both[0];
}

networks::HieraConfig ReadHiera(const Config& json) {
  networks::HieraConfig config;
  config.kernel = Square(json, "patch_kernel_size");
  config.stride = Square(json, "patch_stride");
  if (Square(json, "patch_padding") != config.kernel / 2)
    json.Refuse("patch_padding", "half of \"patch_kernel_size\"");
  if (Square(json, "query_stride") != 2) json.Refuse("query_stride", "[2, 2]");
  config.depths = json.Ints("blocks_per_stage");
  config.widths = json.Ints("embed_dim_per_stage");
  config.heads = json.Ints("num_attention_heads_per_stage");
  config.windows = json.Ints("window_size_per_stage");
  config.global = json.Ints("global_attention_blocks");
  config.pooled_stages = json.Int("num_query_pool_stages");
  const char* const kBackground = "window_positional_embedding_background_size";
  const std::vector<int64_t> background = json.Ints(kBackground);
  if (background.size() != 2) json.Refuse(kBackground, "height and width");
  config.background = {background[0], background[1]};
  Multiplied(json, 1);
  config.feed_forward = json.Number("mlp_ratio");
  config.activation = ActivationOf(json, "hidden_act");
  config.epsilon = json.Number("layer_norm_eps");
  networks::CheckHiera(config);
  if (json.Int("hidden_size") != config.widths[0])
    json.Refuse("hidden_size", "the first of \"embed_dim_per_stage\"");
  return config;
}

// The tower of the second version or of EdgeTAM; the picture remains to be set.
void ReadPyramid(const Config& json, networks::SamConfig& config) {
  networks::SamPyramid& pyramid = config.pyramid;
  config.decoder.second = true;
  config.decoder.channels = json.Int("fpn_hidden_size");
  pyramid.kernel = json.Int("fpn_kernel_size");
  if (json.Int("fpn_stride") != 1) json.Refuse("fpn_stride", "1");
  if (json.Int("fpn_padding") != pyramid.kernel / 2)
    json.Refuse("fpn_padding", "half of \"fpn_kernel_size\"");
  pyramid.top_down = json.Ints("fpn_top_down_levels");
  pyramid.levels = json.Int("num_feature_levels");
}

void ReadDecoder(const Config& json, networks::SamConfig& config) {
  const Config prompt = Nested(json, "prompt_encoder_config", kPromptDefaults),
               decoder = Nested(json, "mask_decoder_config", kDecoderDefaults);
  networks::SamDecoderConfig& read = config.decoder;
  if (read.second) config.patch = prompt.Int("patch_size");
  for (const auto& [of, key, wanted] :
       {std::tuple{&prompt, "image_size", config.picture.size.height},
        {&prompt, "patch_size", config.patch},
        {&prompt, "hidden_size", read.channels},
        {&decoder, "hidden_size", read.channels}})
    if (of->Int(key) != wanted) of->Refuse(key, fmt::format("{}, as in vision_config", wanted));
  read.layers = decoder.Int("num_hidden_layers");
  read.heads = decoder.Int("num_attention_heads");
  read.feed_forward = decoder.Int("mlp_dim");
  read.reduction = decoder.Int("attention_downsample_rate");
  read.masks = decoder.Int("num_multimask_outputs");
  read.score_layers = decoder.Int("iou_head_depth");
  read.score_width = decoder.Int("iou_head_hidden_dim");
  if (!read.second) {
    read.epsilon = decoder.Number("layer_norm_eps");
    read.activation = ActivationOf(decoder, "hidden_act");
    return;
  }
  // Its configuration is not asked for the norms and the activation of these layers, and the number
  // of layers is also that of each feed-forward network.
  read.epsilon = 1e-5;
  read.activation = networks::Activation::kRelu;
  read.features = read.channels / 2;
  if (read.layers != 2) decoder.Refuse("num_hidden_layers", "2");
}

// The configuration of the tower, which may be the whole.
struct Tower {
  Config json;
  bool alone;
};
Tower TowerOf(const PictureFolder& from, std::string_view defaults) {
  const bool nested = !from.folder().model_type().ends_with("vision_model");
  return {
      nested ? Nested(from.json(), "vision_config", defaults) : from.json().WithDefaults(defaults),
      !nested || from.folder().architecture().ends_with("VisionModel")};
}

Program BuiltSam(const PictureFolder& from, networks::SamConfig& config,
                 std::span<const TensorName> tower_names) {
  if (from.folder().model_type().ends_with("_video"))
    from.diagnostics().Note(
        "the memory of earlier pictures, which only videos need, is left out: the package segments "
        "single pictures");
  if (!config.tower_only) ReadDecoder(from.json(), config);
  const TensorNameList names = SamNames(config, tower_names);
  const bool encodes_only =
      config.tower_only ||
      (!config.outputs.empty() && std::ranges::all_of(config.outputs, [](const auto& name) {
        return name.starts_with("image_embeddings");
      }));
  const bool repvit = std::holds_alternative<networks::RepVitConfig>(config.tower);
  const auto left_over = encodes_only ? (repvit ? IsNotOfRepVitTower : IsNotOfTower)
                                      : (repvit ? IsNotOfRepVit : IsSamLeftOver);
  return BuiltFrom(from, {"", "model."}, names.rows(), config, networks::BuildSam, left_over);
}

Program ImportSam(const PictureFolder& from) {
  const Tower tower = TowerOf(from, kTowerDefaults);
  networks::SamConfig config;
  config.outputs = from.outputs();
  config.tower_only = tower.alone;
  ReadTower(from, tower.json, config);
  return BuiltSam(from, config, kTowerNames);
}

Program ImportSam2(const PictureFolder& from) {
  const Tower tower = TowerOf(from, kPyramidDefaults);
  networks::SamConfig config;
  config.outputs = from.outputs();
  config.tower_only = tower.alone;
  ReadPyramid(tower.json, config);
  const Config backbone = Nested(tower.json, "backbone_config", kHieraDefaults);
  config.tower = ReadHiera(backbone);
  const std::vector<int64_t> size = backbone.kind("image_size") == Config::Kind::kList
                                        ? backbone.Ints("image_size")
                                        : std::vector<int64_t>(2, backbone.Int("image_size"));
  if (size.size() != 2) backbone.Refuse("image_size", "height and width");
  SetPicture(from, {size[0], size[1]}, backbone.Int("num_channels"), config);
  return BuiltSam(from, config, kHieraNames);
}

Program ImportEdgeTam(const PictureFolder& from) {
  const Tower tower = TowerOf(from, kPyramidDefaults);
  networks::SamConfig config;
  config.outputs = from.outputs();
  config.tower_only = tower.alone;
  ReadPyramid(tower.json, config);
  const Config backbone = Nested(
      tower.json, "backbone_config",
      R"({"architecture": "repvit_m1", "model_args": {"in_chans": 3, "out_indices": [0, 1, 2, 3]}})");
  const std::string architecture = backbone.Text("architecture");
  const std::string_view usual = RepVitArguments(architecture);
  if (usual.empty()) backbone.Refuse("architecture", "a RepViT (repvit_m1)");
  const Config args = Nested(backbone, "model_args", usual);
  const networks::RepVitConfig repvit = ReadRepVit(args);
  if (args.has("out_indices")) {
    const std::vector<int64_t> kept = args.Ints("out_indices");
    for (size_t i = 0; i < std::max(kept.size(), repvit.depths.size()); ++i)
      if (i >= kept.size() || kept[i] != static_cast<int64_t>(i))
        args.Refuse("out_indices", "the maps of all stages");
  }
  config.tower = repvit;
  // The tower has no size of its own.
  const int64_t side =
      tower.alone ? tower.json.Int("image_size", 1024)
                  : Nested(from.json(), "prompt_encoder_config", kPromptDefaults).Int("image_size");
  SetPicture(from, {side, side}, args.Int("in_chans", 3), config);
  TensorNameList names;
  for (const TensorName& row : RepVitTensors())
    names.Add(std::string(row.ours), "backbone.timm_model." + std::string(row.theirs));
  names.Add("pyramid.{}", "neck.convs.{}");
  return BuiltSam(from, config, names.rows());
}

constexpr PictureNetRow kSamRows[] = {
    {"sam", "{}", ImportSam},
    {"sam_vision_model", "{}", ImportSam},
    {"sam2", "{}", ImportSam2},
    {"sam2_video", "{}", ImportSam2},
    {"sam2_vision_model", "{}", ImportSam2},
    {"edgetam", "{}", ImportEdgeTam},
    {"edgetam_video", "{}", ImportEdgeTam},
    {"edgetam_vision_model", "{}", ImportEdgeTam},
};

}  // namespace

std::span<const PictureNetRow> SamRows() { return kSamRows; }

}  // namespace mlc::safetensors
