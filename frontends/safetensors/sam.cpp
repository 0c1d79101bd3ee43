// Segment Anything (transformers' models/sam): the whole model, and its tower alone.

#include "lib/networks/sam.h"

#include <algorithm>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/picture_nets.h"

namespace mlc::safetensors {

namespace {

constexpr TensorName kSamNames[] = {
    {"patches", "vision_encoder.patch_embed.projection"},
    {"positions", "vision_encoder.pos_embed"},
    {"layer.{}.attention_norm", "vision_encoder.layers.{}.layer_norm1"},
    {"layer.{}.qkv", "vision_encoder.layers.{}.attn.qkv"},
    {"layer.{}.attention", "vision_encoder.layers.{}.attn.proj"},
    {"layer.{}.rows", "vision_encoder.layers.{}.attn.rel_pos_h"},
    {"layer.{}.columns", "vision_encoder.layers.{}.attn.rel_pos_w"},
    {"layer.{}.norm", "vision_encoder.layers.{}.layer_norm2"},
    {"layer.{}.up", "vision_encoder.layers.{}.mlp.lin1"},
    {"layer.{}.down", "vision_encoder.layers.{}.mlp.lin2"},
    {"neck.0", "vision_encoder.neck.conv1"},
    {"neck.norm.0", "vision_encoder.neck.layer_norm1"},
    {"neck.1", "vision_encoder.neck.conv2"},
    {"neck.norm.1", "vision_encoder.neck.layer_norm2"},
    {"frequencies", "shared_image_embedding.positional_embedding"},
    {"frequencies", "prompt_encoder.shared_embedding.positional_embedding"},
    {"no_mask", "prompt_encoder.no_mask_embed.weight"},
    {"no_point", "prompt_encoder.not_a_point_embed.weight"},
    {"point.{}", "prompt_encoder.point_embed.{}.weight"},
    {"score_token", "mask_decoder.iou_token.weight"},
    {"mask_tokens", "mask_decoder.mask_tokens.weight"},
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
constexpr std::pair<std::string_view, std::string_view> kProjections[] = {
    {"query", "q_proj"}, {"key", "k_proj"}, {"value", "v_proj"}, {"output", "out_proj"}};

TensorNameList SamNames(const networks::SamConfig& config) {
  TensorNameList names;
  for (const TensorName& row : kSamNames) {
    names.Add(std::string(row.ours), std::string(row.theirs));
    constexpr std::string_view kTower = "vision_encoder.";
    if (row.theirs.starts_with(kTower))  // of a tower alone
      names.Add(std::string(row.ours), std::string(row.theirs.substr(kTower.size())));
  }
  const std::string transformer = "mask_decoder.transformer.", block = transformer + "layers.{}.";
  for (auto [ours, theirs] : kAttentions)
    for (auto [part, projection] : kProjections)
      names.Add(fmt::format("{}.{}", ours, part),
                fmt::format("{}{}.{}", transformer, theirs, projection));
  names.Add("block.{}.norm.{}", block + "layer_norm{+1}");
  names.Add("block.{}.up", block + "mlp.lin1");
  names.Add("block.{}.down", block + "mlp.lin2");
  names.Add("final.norm", transformer + "layer_norm_final_attn");
  auto add = [&](const std::string& ours, const std::string& theirs, int64_t count) {
    names.Add(ours + "0", theirs + "proj_in");
    for (int64_t i = 1; i + 1 < std::min(count, networks::kMaxLayers); ++i)
      names.Add(fmt::format("{}{}", ours, i), fmt::format("{}layers.{}", theirs, i - 1));
    names.Add(fmt::format("{}{}", ours, count - 1), theirs + "proj_out");
  };
  constexpr int64_t kMaskLayers = 3;
  add("mask.{}.", "mask_decoder.output_hypernetworks_mlps.{}.", kMaskLayers);
  add("score.", "mask_decoder.iou_prediction_head.", config.score_layers);
  return names;
}

// Returns whether only masks as prompts, boxes or a single mask need the tensor.
bool IsSamLeftOver(std::string_view name) {
  for (std::string_view part :
       {"prompt_encoder.mask_embed.", "prompt_encoder.point_embed.2.",
        "prompt_encoder.point_embed.3.", "mask_decoder.output_hypernetworks_mlps.0.",
        "shared_embedding.positional_embedding"})
    if (name.find(part) != name.npos) return true;
  return false;
}

// Returns whether the tensor belongs to what reads embeddings of pictures.
bool IsOfDecoder(std::string_view name) {
  for (std::string_view part : {"prompt_encoder.", "mask_decoder.", "shared_image_embedding."})
    if (name.starts_with(part)) return true;
  return false;
}

constexpr std::string_view kTowerDefaults = R"({"hidden_size": 768, "output_channels": 256,
    "num_hidden_layers": 12, "num_attention_heads": 12, "num_channels": 3, "image_size": 1024,
    "patch_size": 16, "hidden_act": "gelu", "layer_norm_eps": 1e-6, "qkv_bias": true,
    "mlp_ratio": 4.0, "use_abs_pos": true, "use_rel_pos": true, "window_size": 14,
    "global_attn_indexes": [2, 5, 8, 11], "num_pos_feats": 128})",
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

void ReadTower(const PictureFolder& from, const Config& json, networks::SamConfig& config) {
  networks::TransformerLayer& layer = config.layer;
  layer.width = json.Int("hidden_size");
  layer.heads = json.Int("num_attention_heads");
  layer.activation = ActivationOf(json, "hidden_act");
  layer.epsilon = json.Number("layer_norm_eps");
  layer.query_bias = layer.key_bias = layer.value_bias = json.Bool("qkv_bias");
  const double inner = static_cast<double>(layer.width) * json.Number("mlp_ratio");
  if (!json.has("mlp_dim") && !(inner >= 1 && inner <= INT32_MAX))
    from.Refuse(json, "mlp_ratio", "a small positive number");
  layer.feed_forward = json.has("mlp_dim") ? json.Int("mlp_dim") : static_cast<int64_t>(inner);
  config.layers = json.Int("num_hidden_layers");
  config.patch = json.Int("patch_size");
  config.channels = json.Int("output_channels");
  config.window = json.Int("window_size");
  config.global = json.Ints("global_attn_indexes");
  config.position_table = json.Bool("use_abs_pos");
  config.relative = json.Bool("use_rel_pos");
  config.features = json.Int("num_pos_feats");
  const int64_t side = json.Int("image_size");
  // The size is the model's, whatever the image processor pads pictures to.
  std::optional<ImageProcessor> processor = from.Processor();
  if (processor) processor->size = networks::GridSize{side, side};
  config.picture = from.Picture(processor, {side, side}, json.Int("num_channels"));
  if (config.picture.size != networks::GridSize{side, side})
    throw Error("usage", "pictures have {} x {} pixels, and the model takes {} x {} only",
                config.picture.size.height, config.picture.size.width, side, side);
}

Program ImportSam(const PictureFolder& from) {
  const Config& json = from.json();
  networks::SamConfig config;
  config.outputs = from.outputs();
  config.tower_only = from.folder().model_type() == "sam_vision_model" ||
                      from.folder().architecture().ends_with("VisionModel");
  const bool nested = from.folder().model_type() == "sam";
  const Config tower =
      nested ? Nested(json, "vision_config", kTowerDefaults) : json.WithDefaults(kTowerDefaults);
  ReadTower(from, tower, config);
  if (!config.tower_only) {
    const Config prompt = Nested(json, "prompt_encoder_config", kPromptDefaults),
                 decoder = Nested(json, "mask_decoder_config", kDecoderDefaults);
    for (const auto& [of, key, wanted] :
         {std::tuple{&prompt, "image_size", config.picture.size.height},
          {&prompt, "patch_size", config.patch},
          {&prompt, "hidden_size", config.channels},
          {&decoder, "hidden_size", config.channels}})
      if (of->Int(key) != wanted)
        from.Refuse(*of, key, fmt::format("{}, as in vision_config", wanted));
    config.decoder_layers = decoder.Int("num_hidden_layers");
    config.decoder_heads = decoder.Int("num_attention_heads");
    config.decoder_feed_forward = decoder.Int("mlp_dim");
    config.reduction = decoder.Int("attention_downsample_rate");
    config.decoder_epsilon = decoder.Number("layer_norm_eps");
    config.activation = ActivationOf(decoder, "hidden_act");
    config.masks = decoder.Int("num_multimask_outputs");
    config.score_layers = decoder.Int("iou_head_depth");
    config.score_width = decoder.Int("iou_head_hidden_dim");
  }
  const TensorNameList names = SamNames(config);
  const bool encodes_only =
      config.tower_only || config.outputs == std::vector<std::string>{"image_embeddings"};
  const auto left_over = encodes_only ? IsOfDecoder : IsSamLeftOver;
  return BuiltFrom(from, {"", "model."}, names.rows(), config, networks::BuildSam, left_over);
}

constexpr PictureNetRow kSamRows[] = {{"sam", "{}", ImportSam},
                                      {"sam_vision_model", "{}", ImportSam}};

}  // namespace

std::span<const PictureNetRow> SamRows() { return kSamRows; }

}  // namespace mlc::safetensors
