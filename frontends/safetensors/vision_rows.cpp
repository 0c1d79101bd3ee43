#include "frontends/safetensors/vision_rows.h"

#include <algorithm>
#include <cmath>

#include "frontends/safetensors/activation_names.h"
#include "lib/support/error.h"

namespace mlc::safetensors {

namespace {

using networks::GridSize;
using networks::Resizing;
using networks::VisionConfig;
using Pooler = networks::VisionModelConfig::Pooler;
using Features = networks::VisionModelConfig::Features;

constexpr TensorName kVitNames[] = {
    {"vision.patches", "embeddings.patch_embeddings.projection"},
    {"vision.class_token", "embeddings.cls_token"},
    {"vision.distillation_token", "embeddings.distillation_token"},
    {"vision.registers", "embeddings.register_tokens"},
    {"vision.detection_tokens", "embeddings.detection_tokens"},
    {"vision.positions", "embeddings.position_embeddings"},
    {"vision.mid_positions", "encoder.mid_position_embeddings"},
    {"vision.relative_positions", "encoder.relative_position_bias.relative_position_bias_table"},
    {"vision.layer.{}.relative_positions",
     "encoder.layer.{}.attention.attention.relative_position_bias.relative_position_bias_table"},
    {"vision.layer.{}.query", "encoder.layer.{}.attention.attention.query"},
    {"vision.layer.{}.key", "encoder.layer.{}.attention.attention.key"},
    {"vision.layer.{}.value", "encoder.layer.{}.attention.attention.value"},
    {"vision.layer.{}.attention", "encoder.layer.{}.attention.output.dense"},
    {"vision.layer.{}.attention_norm", "encoder.layer.{}.layernorm_before"},
    {"vision.layer.{}.up", "encoder.layer.{}.intermediate.dense"},
    {"vision.layer.{}.down", "encoder.layer.{}.output.dense"},
    {"vision.layer.{}.norm", "encoder.layer.{}.layernorm_after"},
    {"vision.layer.{}.attention_scale", "encoder.layer.{}.lambda_1"},
    {"vision.layer.{}.scale", "encoder.layer.{}.lambda_2"},
    {"vision.norm", "layernorm"},
    {"vision.pooler", "pooler.dense"},
    {"vision.pooler_norm", "pooler.layernorm"},
    {"teacher", "distillation_classifier"},
    {"detection.class.{}", "class_labels_classifier.layers.{}"},
    {"detection.box.{}", "bbox_predictor.layers.{}"},
    {"pyramid.0.second", "fpn1.3"},
    {"pyramid.0.norm", "fpn1.1"},
    {"pyramid.0", "fpn1.0"},
    {"pyramid.1", "fpn2.0"},
    {"segments.pool.{}.conv", "decode_head.psp_modules.{}.1.conv"},
    {"segments.pool.{}.norm", "decode_head.psp_modules.{}.1.bn"},
    {"segments.bottleneck.conv", "decode_head.bottleneck.conv"},
    {"segments.bottleneck.norm", "decode_head.bottleneck.bn"},
    {"segments.lateral.{}.conv", "decode_head.lateral_convs.{}.conv"},
    {"segments.lateral.{}.norm", "decode_head.lateral_convs.{}.bn"},
    {"segments.output.{}.conv", "decode_head.fpn_convs.{}.conv"},
    {"segments.output.{}.norm", "decode_head.fpn_convs.{}.bn"},
    {"segments.fuse.conv", "decode_head.fpn_bottleneck.conv"},
    {"segments.fuse.norm", "decode_head.fpn_bottleneck.bn"},
    {"segments.classifier", "decode_head.classifier"},
    {"depth.readout.{}", "neck.reassemble_stage.readout_projects.{}.0"},
    {"depth.reassemble.{}", "neck.reassemble_stage.layers.{}.projection"},
    {"depth.resize.{}", "neck.reassemble_stage.layers.{}.resize"},
    {"depth.neck.{}", "neck.convs.{}"},
    {"depth.fusion.{}.skip1", "neck.fusion_stage.layers.{}.residual_layer1.convolution1"},
    {"depth.fusion.{}.skip2", "neck.fusion_stage.layers.{}.residual_layer1.convolution2"},
    {"depth.fusion.{}.own1", "neck.fusion_stage.layers.{}.residual_layer2.convolution1"},
    {"depth.fusion.{}.own2", "neck.fusion_stage.layers.{}.residual_layer2.convolution2"},
    {"depth.fusion.{}.skip.norm1", "neck.fusion_stage.layers.{}.residual_layer1.batch_norm1"},
    {"depth.fusion.{}.skip.norm2", "neck.fusion_stage.layers.{}.residual_layer1.batch_norm2"},
    {"depth.fusion.{}.own.norm1", "neck.fusion_stage.layers.{}.residual_layer2.batch_norm1"},
    {"depth.fusion.{}.own.norm2", "neck.fusion_stage.layers.{}.residual_layer2.batch_norm2"},
    {"segments.head", "head.head.0"},
    {"segments.norm", "head.head.1"},
    {"segments.classifier", "head.head.4"},
    {"depth.fusion.{}.projection", "neck.fusion_stage.layers.{}.projection"},
    {"depth.projection", "head.projection"},
    {"depth.head1", "head.conv1"},
    {"depth.head2", "head.conv2"},
    {"depth.head3", "head.conv3"},
    {"depth.head1", "head.head.0"},
    {"depth.head2", "head.head.2"},
    {"depth.head3", "head.head.4"},
};
constexpr TensorName kDeitNames[] = {
    {"classifier", "classifier"},
    {"classifier", "cls_classifier"},
};
constexpr TensorName kDinoNames[] = {
    {"vision.layer.{}.attention_norm", "encoder.layer.{}.norm1"},
    {"vision.layer.{}.norm", "encoder.layer.{}.norm2"},
    {"vision.layer.{}.up", "encoder.layer.{}.mlp.fc1"},
    {"vision.layer.{}.gate_up", "encoder.layer.{}.mlp.weights_in"},
    {"vision.layer.{}.down", "encoder.layer.{}.mlp.fc2"},
    {"vision.layer.{}.down", "encoder.layer.{}.mlp.weights_out"},
    {"vision.layer.{}.attention_scale", "encoder.layer.{}.layer_scale1.lambda1"},
    {"vision.layer.{}.scale", "encoder.layer.{}.layer_scale2.lambda1"},
};
constexpr TensorName kDino3Names[] = {
    {"vision.patches", "embeddings.patch_embeddings"},
    {"vision.layer.{}.query", "layer.{}.attention.q_proj"},
    {"vision.layer.{}.key", "layer.{}.attention.k_proj"},
    {"vision.layer.{}.value", "layer.{}.attention.v_proj"},
    {"vision.layer.{}.attention", "layer.{}.attention.o_proj"},
    {"vision.layer.{}.attention_norm", "layer.{}.norm1"},
    {"vision.layer.{}.norm", "layer.{}.norm2"},
    {"vision.layer.{}.gate", "layer.{}.mlp.gate_proj"},
    {"vision.layer.{}.up", "layer.{}.mlp.up_proj"},
    {"vision.layer.{}.down", "layer.{}.mlp.down_proj"},
    {"vision.layer.{}.attention_scale", "layer.{}.layer_scale1.lambda1"},
    {"vision.layer.{}.scale", "layer.{}.layer_scale2.lambda1"},
    {"vision.norm", "norm"},
};
// CLIP's relatives. Names of towers for pictures are without the prefix vision_model, which some
// folders leave out.
constexpr TensorName kClipNames[] = {
    {"vision.patches", "embeddings.patch_embedding"},
    {"vision.class_token", "embeddings.class_embedding"},
    {"vision.positions", "embeddings.position_embedding.weight"},
    {"vision.positions", "embeddings.position_embedding"},  // BLIP
    {"vision.embeddings_norm", "pre_layrnorm"},
    {"vision.layer.{}.query", "encoder.layers.{}.self_attn.q_proj"},
    {"vision.layer.{}.key", "encoder.layers.{}.self_attn.k_proj"},
    {"vision.layer.{}.value", "encoder.layers.{}.self_attn.v_proj"},
    {"vision.layer.{}.qkv", "encoder.layers.{}.self_attn.qkv"},
    {"vision.layer.{}.attention", "encoder.layers.{}.self_attn.out_proj"},
    {"vision.layer.{}.attention", "encoder.layers.{}.self_attn.projection"},
    {"vision.layer.{}.attention_norm", "encoder.layers.{}.layer_norm1"},
    {"vision.layer.{}.up", "encoder.layers.{}.mlp.fc1"},
    {"vision.layer.{}.down", "encoder.layers.{}.mlp.fc2"},
    {"vision.layer.{}.norm", "encoder.layers.{}.layer_norm2"},
    {"vision.norm", "post_layernorm"},
    {"vision.head.probe", "head.probe"},
    {"vision.head.qkv.weight", "head.attention.in_proj_weight"},
    {"vision.head.qkv.bias", "head.attention.in_proj_bias"},
    {"vision.head.attention", "head.attention.out_proj"},
    {"vision.head.norm", "head.layernorm"},
    {"vision.head.up", "head.mlp.fc1"},
    {"vision.head.down", "head.mlp.fc2"},
    {"vision.projection", "visual_projection"},
};
constexpr TensorName kTextNames[] = {
    {"text.tokens", "text_model.embeddings.token_embedding"},
    {"text.positions", "text_model.embeddings.position_embedding"},
    {"text.layer.{}.query", "text_model.encoder.layers.{}.self_attn.q_proj"},
    {"text.layer.{}.key", "text_model.encoder.layers.{}.self_attn.k_proj"},
    {"text.layer.{}.value", "text_model.encoder.layers.{}.self_attn.v_proj"},
    {"text.layer.{}.attention", "text_model.encoder.layers.{}.self_attn.out_proj"},
    {"text.layer.{}.attention_norm", "text_model.encoder.layers.{}.layer_norm1"},
    {"text.layer.{}.up", "text_model.encoder.layers.{}.mlp.fc1"},
    {"text.layer.{}.down", "text_model.encoder.layers.{}.mlp.fc2"},
    {"text.layer.{}.norm", "text_model.encoder.layers.{}.layer_norm2"},
    {"text.norm", "text_model.final_layer_norm"},
    {"text.head", "text_model.head"},
    {"text.projection", "text_projection"},
};

constexpr VisionRow kVision[] = {
    {.model_type = "beit",
     .prefix = "beit.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "image_size": 224,
       "patch_size": 16, "use_absolute_position_embeddings": false, "use_mean_pooling": true})",
     .flags = {.layer = {.key_bias = false}, .class_token = true, .position_table = false},
     .pooler = Pooler::kFirst,
     .features = Features::kPooled},
    {.model_type = "blip_vision_model",
     .prefix = "vision_model.",
     .names = kClipNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-5, "image_size": 384,
       "patch_size": 16})",
     .flags = {.class_token = true},
     .pooler = Pooler::kNormedFirst},
    {.model_type = "clip_vision_model",
     .prefix = "vision_model.",
     .names = kClipNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5,
       "image_size": 224, "patch_size": 32})",
     .flags = {.class_token = true, .patch_bias = false, .embeddings_norm = true},
     .normed = false,
     .pooler = Pooler::kNormedFirst,
     .features = Features::kMean},
    {.model_type = "data2vec-vision",
     .prefix = "data2vec_vision.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "image_size": 224,
       "patch_size": 16, "use_absolute_position_embeddings": false, "use_mean_pooling": true})",
     .flags = {.layer = {.key_bias = false}, .class_token = true, .position_table = false},
     .pooler = Pooler::kFirst,
     .features = Features::kPooled},
    {.model_type = "deit",
     .prefix = "deit.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "image_size": 224,
       "patch_size": 16})",
     .flags = {.class_token = true, .distillation_token = true},
     .pooler = Pooler::kDense},
    {.model_type = "dinov2",
     .prefix = "dinov2.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "mlp_ratio": 4, "hidden_act": "gelu", "layer_norm_eps": 1e-6, "image_size": 224,
       "patch_size": 14})",
     .flags = {.class_token = true},
     .pooler = Pooler::kFirst,
     .features = Features::kFirstAndMean},
    {.model_type = "dinov2_with_registers",
     .prefix = "dinov2_with_registers.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "mlp_ratio": 4, "hidden_act": "gelu", "layer_norm_eps": 1e-6, "image_size": 224,
       "patch_size": 16, "num_register_tokens": 4})",
     .flags = {.class_token = true, .resizing = Resizing::kBicubicAntialias},
     .pooler = Pooler::kFirst,
     .features = Features::kFirstAndMean},
    {.model_type = "dinov3_vit",
     .prefix = "dinov3_vit.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6,
       "intermediate_size": 1536, "hidden_act": "gelu", "layer_norm_eps": 1e-5, "image_size": 224,
       "patch_size": 16, "num_register_tokens": 0, "rope_theta": 100, "query_bias": true,
       "key_bias": false, "value_bias": true, "proj_bias": true, "mlp_bias": true})",
     .flags = {.class_token = true, .position_table = false, .rotary = true},
     .pooler = Pooler::kFirst},
    {.model_type = "dpt",
     .prefix = "dpt.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "image_size": 384,
       "patch_size": 16})",
     .flags = {.class_token = true, .resizing = Resizing::kBilinear},
     .pooler = Pooler::kDense},
    {.model_type = "ijepa",
     .prefix = "ijepa.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "image_size": 224,
       "patch_size": 16})",
     .features = Features::kMean},
    {.model_type = "siglip2_vision_model",
     .prefix = "vision_model.",
     .names = kClipNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6,
       "patch_size": 16, "num_patches": 256})",
     .flags = {.flat_patches = true, .resizing = Resizing::kBilinearAntialias},
     .pooler = Pooler::kAttention,
     .features = Features::kMean},
    {.model_type = "siglip_vision_model",
     .prefix = "vision_model.",
     .names = kClipNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6,
       "image_size": 224, "patch_size": 16})",
     .pooler = Pooler::kAttention,
     .features = Features::kMean},
    {.model_type = "vit",
     .prefix = "vit.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "image_size": 224,
       "patch_size": 16})",
     .flags = {.class_token = true},
     .pooler = Pooler::kDense},
    {.model_type = "vit_mae",  // all patches are read, none is masked
     .prefix = "vit.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "image_size": 224,
       "patch_size": 16})",
     .flags = {.class_token = true}},
    {.model_type = "vit_msn",
     .prefix = "vit.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-6, "image_size": 224,
       "patch_size": 16})",
     .flags = {.class_token = true}},
    {.model_type = "yolos",
     .prefix = "vit.",
     .names = kVitNames,
     .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
       "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
       "image_size": [512, 864], "patch_size": 16, "num_detection_tokens": 100,
       "use_mid_position_embeddings": true})",
     .flags = {.class_token = true},
     .pooler = Pooler::kDense},
};

constexpr std::string_view kSiglipText = R"({"vocab_size": 32000, "hidden_size": 768,
  "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
  "max_position_embeddings": 64, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6})";
constexpr TextRow kTexts[] = {
    {.model_type = "clip_text_model",
     .names = kTextNames,
     .defaults = R"({"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048,
       "num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77,
       "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "eos_token_id": 49407})",
     .causal = true},
    {.model_type = "siglip2_text_model",
     .names = kTextNames,
     .defaults = kSiglipText,
     .has_head = true},
    {.model_type = "siglip_text_model",
     .names = kTextNames,
     .defaults = kSiglipText,
     .has_head = true},
};
constexpr PairRow kPairs[] = {
    {"clip", "clip_vision_model", "clip_text_model", R"({"projection_dim": 512})"},
    {"siglip", "siglip_vision_model", "siglip_text_model", "{}", true},
    {"siglip2", "siglip2_vision_model", "siglip2_text_model", "{}", true},
};

// Reads a number for both directions, or a list of two.
GridSize SizeAt(const Config& config, const std::string& key) {
  if (config.kind(key) != Config::Kind::kList) {
    const int64_t side = config.Int(key);
    return {side, side};
  }
  const std::vector<int64_t> both = config.Ints(key);
  if (both.size() != 2) config.Refuse(key, "a number, or [height, width]");
  return {both[0], both[1]};
}

networks::TransformerLayer ReadLayer(const Config& config, networks::TransformerLayer layer) {
  layer.width = config.Int("hidden_size");
  layer.heads = config.Int("num_attention_heads");
  layer.activation = ActivationOf(config, "hidden_act");
  layer.epsilon = config.Number("layer_norm_eps");
  return layer;
}

// Returns the size of DINOv2's feed-forward layers (transformers' modeling_dinov2.py).
int64_t DinoFeedForward(const Config& config, int64_t width, bool gated) {
  const double size = static_cast<double>(width) * config.Number("mlp_ratio");
  constexpr double kMost = 1 << 30;
  if (!(size >= 1 && size < kMost)) config.Refuse("mlp_ratio", "a small positive number");
  const auto whole = static_cast<int64_t>(size);
  return gated ? (whole * 2 / 3 + 7) / 8 * 8 : whole;
}

int64_t WholeRoot(const Config& config, const std::string& key) {
  const int64_t number = config.Int(key);
  const auto root = static_cast<int64_t>(
      std::llround(std::sqrt(static_cast<double>(std::clamp<int64_t>(number, 0, INT32_MAX)))));
  if (root * root != number) config.Refuse(key, "a square number");
  return root;
}

void ReadRelative(const Config& config, VisionConfig& vision) {
  if (config.Bool("use_shared_relative_position_bias", false))
    vision.relative = VisionConfig::Relative::kShared;
  if (config.Bool("use_relative_position_bias", false)) {
    if (vision.relative == VisionConfig::Relative::kShared)
      config.Refuse("use_relative_position_bias",
                    "false, as use_shared_relative_position_bias is true");
    vision.relative = VisionConfig::Relative::kPerLayer;
  }
}

}  // namespace

const VisionRow* FindVisionRow(std::string_view model_type) {
  const auto* row = std::ranges::find(kVision, model_type, &VisionRow::model_type);
  return row == std::end(kVision) ? nullptr : row;
}
const TextRow* FindTextRow(std::string_view model_type) {
  const auto* row = std::ranges::find(kTexts, model_type, &TextRow::model_type);
  return row == std::end(kTexts) ? nullptr : row;
}
const PairRow* FindPairRow(std::string_view model_type) {
  const auto* row = std::ranges::find(kPairs, model_type, &PairRow::model_type);
  return row == std::end(kPairs) ? nullptr : row;
}

std::set<std::string> VisionModelTypes() {
  std::set<std::string> types = {"depth_anything"};
  for (const VisionRow& row : kVision) types.emplace(row.model_type);
  for (const TextRow& row : kTexts) types.emplace(row.model_type);
  for (const PairRow& row : kPairs) types.emplace(row.model_type);
  return types;
}

std::vector<TensorName> TensorNames(const VisionRow& row) {
  std::vector<TensorName> names(row.names.begin(), row.names.end());
  auto add = [&](std::span<const TensorName> more) {
    // Names of the family come first; the others remain for models that mix them.
    names.insert(names.begin(), more.begin(), more.end());
  };
  if (row.model_type == "deit") add(kDeitNames);
  if (row.model_type.starts_with("dinov2")) add(kDinoNames);
  if (row.model_type == "dinov3_vit") add(kDino3Names);
  return names;
}

VisionConfig ReadVision(const Config& given, const VisionRow& row) {
  const Config config = given.WithDefaults(row.defaults);
  VisionConfig vision = row.flags;
  vision.layer = ReadLayer(config, vision.layer);
  vision.layers = config.Int("num_hidden_layers");
  vision.channels = config.Int("num_channels", 3);
  vision.patch = SizeAt(config, "patch_size");
  if (vision.flat_patches) {
    const int64_t side = WholeRoot(config, "num_patches");
    vision.trained = {side * std::clamp<int64_t>(vision.patch.height, 0, 1 << 15),
                      side * std::clamp<int64_t>(vision.patch.width, 0, 1 << 15)};
  } else {
    vision.trained = SizeAt(config, "image_size");
  }
  vision.picture = vision.trained;
  vision.registers = config.Int("num_register_tokens", 0);
  vision.detection_tokens = config.Int("num_detection_tokens", 0);
  vision.mid_positions = config.Bool("use_mid_position_embeddings", false);
  vision.position_table =
      vision.position_table || config.Bool("use_absolute_position_embeddings", false);
  networks::TransformerLayer& layer = vision.layer;
  const bool bias = config.Bool("qkv_bias", true);
  layer.query_bias = config.Bool("query_bias", layer.query_bias && bias);
  layer.key_bias = config.Bool("key_bias", layer.key_bias && bias);
  layer.value_bias = config.Bool("value_bias", layer.value_bias && bias);
  layer.output_bias = config.Bool("proj_bias", true);
  layer.up_bias = config.Bool("mlp_bias", true);
  layer.gated = config.Bool("use_gated_mlp", config.Bool("use_swiglu_ffn", false));
  if (config.Bool("use_swiglu_ffn", false)) layer.activation = networks::Activation::kSilu;
  layer.feed_forward = config.has("mlp_ratio") ? DinoFeedForward(config, layer.width, layer.gated)
                                               : config.Int("intermediate_size");
  vision.rotary_base = config.Number("rope_theta", vision.rotary_base);
  ReadRelative(config, vision);
  return vision;
}

bool LastNormed(const Config& config, const VisionRow& row) {
  return row.normed &&
         !(row.features == Features::kPooled && config.Bool("use_mean_pooling", true));
}

networks::TextConfig ReadText(const Config& given, const TextRow& row) {
  const Config config = given.WithDefaults(row.defaults);
  networks::TextConfig text{.layer = ReadLayer(config, {})};
  text.layer.feed_forward = config.Int("intermediate_size");
  text.layers = config.Int("num_hidden_layers");
  text.vocabulary = config.Int("vocab_size");
  text.positions = config.Int("max_position_embeddings");
  text.causal = row.causal;
  text.head = row.has_head;
  if (!row.causal) return text;
  // Files from before transformers 4.31 say 2, and mean the largest id (modeling_clip.py).
  constexpr int64_t kMeansLargest = 2;
  text.end_token = config.Int("eos_token_id");
  text.pooled = text.end_token == kMeansLargest ? networks::TextConfig::Pooled::kLargest
                                                : networks::TextConfig::Pooled::kFirstOf;
  return text;
}

}  // namespace mlc::safetensors
