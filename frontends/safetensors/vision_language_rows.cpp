#include "frontends/safetensors/vision_language_rows.h"

namespace mlc::safetensors {

namespace {

using Projector = networks::VisionLanguageConfig::Projector;

constexpr ClassDefaults kTextClasses[] = {
    {"gemma", R"({"hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
      "num_attention_heads": 16, "vocab_size": 256000})"},
    {"gemma2", R"({"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
      "num_attention_heads": 8, "vocab_size": 256000})"},
    {"gemma3_text", R"({"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
      "num_attention_heads": 8, "vocab_size": 262208})"},
    {"llama", R"({"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 32000})"},
    {"mistral", R"({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 32000})"},
    {"qwen2", R"({"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 151936})"},
    {"qwen2_vl", R"({"hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80,
      "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 152064,
      "rms_norm_eps": 1e-5, "rope_theta": 1000000, "max_window_layers": 80})"},
    {"lfm2", R"({"hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 65536})"},
    {"qwen3", R"({"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 151936})"},
    {"qwen3_vl", R"({"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "vocab_size": 151936,
      "rms_norm_eps": 1e-6, "rope_theta": 5000000, "max_position_embeddings": 128000})"},
};

constexpr TensorName kInternTower[] = {
    {"vision.patches", "embeddings.patch_embeddings.projection"},
    {"vision.class_token", "embeddings.cls_token"},
    {"vision.positions", "embeddings.position_embeddings"},
    {"vision.norm", "layernorm"},
    {"vision.layer.{}.attention_norm", "encoder.layer.{}.layernorm_before"},
    {"vision.layer.{}.query", "encoder.layer.{}.attention.q_proj"},
    {"vision.layer.{}.key", "encoder.layer.{}.attention.k_proj"},
    {"vision.layer.{}.value", "encoder.layer.{}.attention.v_proj"},
    {"vision.layer.{}.attention", "encoder.layer.{}.attention.projection_layer"},
    {"vision.layer.{}.attention_scale", "encoder.layer.{}.lambda_1"},
    {"vision.layer.{}.norm", "encoder.layer.{}.layernorm_after"},
    {"vision.layer.{}.up", "encoder.layer.{}.mlp.fc1"},
    {"vision.layer.{}.down", "encoder.layer.{}.mlp.fc2"},
    {"vision.layer.{}.scale", "encoder.layer.{}.lambda_2"},
};
constexpr TensorName kQwenTower[] = {
    {"vision.patches", "patch_embed.proj"},
    {"vision.layer.{}.attention_norm", "blocks.{}.norm1"},
    {"vision.layer.{}.qkv", "blocks.{}.attn.qkv"},
    {"vision.layer.{}.attention", "blocks.{}.attn.proj"},
    {"vision.layer.{}.norm", "blocks.{}.norm2"},
    {"vision.layer.{}.gate", "blocks.{}.mlp.gate_proj"},
    {"vision.layer.{}.up", "blocks.{}.mlp.fc1"},
    {"vision.layer.{}.up", "blocks.{}.mlp.up_proj"},
    {"vision.layer.{}.down", "blocks.{}.mlp.fc2"},
    {"vision.layer.{}.down", "blocks.{}.mlp.down_proj"},
};
constexpr TensorName kQwen3Tower[] = {
    {"vision.patches", "patch_embed.proj"},
    {"vision.positions", "pos_embed.weight"},
    {"vision.layer.{}.attention_norm", "blocks.{}.norm1"},
    {"vision.layer.{}.qkv", "blocks.{}.attn.qkv"},
    {"vision.layer.{}.attention", "blocks.{}.attn.proj"},
    {"vision.layer.{}.norm", "blocks.{}.norm2"},
    {"vision.layer.{}.up", "blocks.{}.mlp.linear_fc1"},
    {"vision.layer.{}.down", "blocks.{}.mlp.linear_fc2"},
};

constexpr std::string_view kIdeficsMembers = R"({"hidden_size": 1152, "intermediate_size": 3072,
  "num_hidden_layers": 12, "num_attention_heads": 16, "num_channels": 3, "image_size": 224,
  "patch_size": 32, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6})";

constexpr TowerRow kTowerClasses[] = {
    {.model_type = "clip_vision_model", .like = "clip_vision_model"},
    {.model_type = "idefics3_vision", .like = "siglip_vision_model", .defaults = kIdeficsMembers},
    {.model_type = "internvl_vision",
     .defaults = R"({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
       "num_attention_heads": 16, "num_channels": 3, "image_size": [448, 448],
       "patch_size": [14, 14], "hidden_act": "gelu", "layer_norm_eps": 1e-6,
       "use_mean_pooling": true, "use_qk_norm": false, "norm_type": "layer_norm",
       "attention_bias": false})",
     .names = kInternTower},
    {.model_type = "qwen2_5_vl",
     .defaults = R"({"hidden_size": 3584, "intermediate_size": 3420, "depth": 32, "num_heads": 16,
       "in_channels": 3, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
       "window_size": 112, "out_hidden_size": 3584, "fullatt_block_indexes": [7, 15, 23, 31],
       "hidden_act": "silu"})",
     .names = kQwenTower,
     .qwen = true},
    {.model_type = "qwen2_vl",
     .defaults = R"({"embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4, "depth": 32,
       "num_heads": 16, "in_channels": 3, "patch_size": 14, "spatial_merge_size": 2,
       "temporal_patch_size": 2, "hidden_act": "quick_gelu"})",
     .names = kQwenTower,
     .qwen = true},
    {.model_type = "qwen3_vl",
     .defaults = R"({"hidden_size": 1152, "intermediate_size": 4304, "depth": 27, "num_heads": 16,
       "in_channels": 3, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
       "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24],
       "hidden_act": "gelu_pytorch_tanh"})",
     .names = kQwen3Tower,
     .qwen = true},
    {.model_type = "siglip2_vision_model", .like = "siglip2_vision_model"},
    {.model_type = "siglip_vision_model", .like = "siglip_vision_model"},
    {.model_type = "smolvlm_vision", .like = "siglip_vision_model", .defaults = kIdeficsMembers},
    {.model_type = "timm_wrapper", .defaults = R"({"architecture": "fastvit_mci3"})", .timm = true},
};

constexpr std::string_view kNestedText[] = {"language_model.model.", "model.language_model."};
constexpr std::string_view kNestedHead[] = {"language_model.lm_head.", "lm_head."};
constexpr std::string_view kIdeficsText[] = {"model.text_model."};
constexpr std::string_view kPlainHead[] = {"lm_head."};
constexpr std::string_view kQwenText[] = {"model.language_model.", "model."};
constexpr std::string_view kTowerPrefixes[] = {"vision_tower.vision_model.",
                                               "model.vision_tower.vision_model.",
                                               "vision_tower.timm_model.",
                                               "model.vision_tower.timm_model.",
                                               "vision_tower.",
                                               "model.vision_tower.",
                                               "multi_modal_projector.",
                                               "model.multi_modal_projector."};
constexpr std::string_view kIdeficsPrefixes[] = {"model.vision_model.", "model.connector."};
constexpr std::string_view kQwenPrefixes[] = {"visual.", "model.visual."};

constexpr TensorName kLlavaProjector[] = {{"projector.1", "linear_1"}, {"projector.2", "linear_2"}};
constexpr TensorName kIdeficsProjector[] = {{"projector.1", "modality_projection.proj"}};
constexpr TensorName kPaligemmaProjector[] = {{"projector.1", "linear"}};
constexpr TensorName kGemma3Projector[] = {{"projector.norm", "mm_soft_emb_norm"},
                                           {"projector.1.weight", "mm_input_projection_weight"}};
constexpr TensorName kInternProjector[] = {
    {"projector.norm", "layer_norm"}, {"projector.1", "linear_1"}, {"projector.2", "linear_2"}};
constexpr TensorName kQwenProjector[] = {{"projector.norm", "merger.ln_q"},
                                         {"projector.1", "merger.mlp.0"},
                                         {"projector.2", "merger.mlp.2"}};
constexpr TensorName kLfmProjector[] = {
    {"projector.norm", "layer_norm"}, {"projector.1", "linear_1"}, {"projector.2", "linear_2"}};
constexpr TensorName kQwen3Projector[] = {
    {"projector.norm", "merger.norm"},
    {"projector.1", "merger.linear_fc1"},
    {"projector.2", "merger.linear_fc2"},
    {"deepstack.{}.norm", "deepstack_merger_list.{}.norm"},
    {"deepstack.{}.1", "deepstack_merger_list.{}.linear_fc1"},
    {"deepstack.{}.2", "deepstack_merger_list.{}.linear_fc2"}};

constexpr TensorName kFastVlmProjector[] = {{"projector.1", "0"}, {"projector.2", "2"}};
constexpr std::string_view kFlatText[] = {"model."};
constexpr std::string_view kFastVlmPrefixes[] = {"model.vision_tower.vision_tower.model.",
                                                 "model.mm_projector."};

// Follow transformers' models/*/processing_*.py.
constexpr std::string_view kIdeficsPicture = R"({"picture":
  "<fake_token_around_image><global-img>{image}<fake_token_around_image>",
  "tiled": "{tiles}\n<fake_token_around_image><global-img>{image}<fake_token_around_image>",
  "tile": "<fake_token_around_image><row_{row}_col_{column}>{image}", "end_of_row": "\n"})";

constexpr std::string_view kQwenPicture =
    R"({"inserted": "<|vision_start|><|image_pad|><|vision_end|>",
  "placeholder": "<|image_pad|>"})";

constexpr VisionLanguageRow kVisionLanguageRows[] = {
    {.model_type = "fast_vlm",
     .text_type = "qwen2",
     .vision_type = "timm_wrapper",
     .defaults = R"({"image_token_id": 151646, "projector_hidden_act": "gelu", "vision_config": {},
       "vision_feature_layer": -1, "vision_feature_select_strategy": "full"})",
     .text = kNestedText,
     .head = kNestedHead,
     .prefixes = kTowerPrefixes,
     .names = kLlavaProjector,
     .picture_text = R"({"placeholder": "<image>", "inserted": "<image>\n"})"},
    {.model_type = "gemma3",
     .text_type = "gemma3_text",
     .vision_type = "siglip_vision_model",
     .defaults = R"({"mm_tokens_per_image": 256, "image_token_index": 262144})",
     .text = kNestedText,
     .head = kNestedHead,
     .prefixes = kTowerPrefixes,
     .projector = Projector::kPooled,
     .names = kGemma3Projector,
     .picture_text = R"({"placeholder": "<start_of_image>",
       "picture": "\n\n<start_of_image>{image}<end_of_image>\n\n"})",
     .normed = true,
     .sees_both_ways = true},
    {.model_type = "idefics3",
     .text_type = "llama",
     .vision_type = "idefics3_vision",
     .defaults = R"({"scale_factor": 2, "image_token_id": 128257})",
     .text = kIdeficsText,
     .head = kPlainHead,
     .prefixes = kIdeficsPrefixes,
     .projector = Projector::kOneLayer,
     .names = kIdeficsProjector,
     .picture_text = kIdeficsPicture,
     .normed = true},
    {.model_type = "internvl",
     .text_type = "qwen2",
     .vision_type = "internvl_vision",
     .defaults = R"({"downsample_ratio": 0.5, "image_token_id": 151667, "vision_feature_layer": -1,
       "vision_feature_select_strategy": "default", "projector_hidden_act": "gelu"})",
     .text = kNestedText,
     .head = kNestedHead,
     .prefixes = kTowerPrefixes,
     .names = kInternProjector,
     .picture_text = R"({"inserted": "<IMG_CONTEXT>\n", "picture": "<img>{image}</img>",
       "tiled": "<img>{tiles}{image}</img>", "tile": "{image}", "placeholder": "<IMG_CONTEXT>"})",
     .feature_layer = true,
     .normed_joined = true},
    {.model_type = "lfm2_vl",
     .text_type = "lfm2",
     .vision_type = "siglip2_vision_model",
     .defaults = R"({"image_token_id": 396, "projector_hidden_act": "gelu",
       "projector_hidden_size": 2560, "projector_bias": true, "projector_use_layernorm": true,
       "downsample_factor": 2})",
     .text = kNestedText,
     .head = kNestedHead,
     .prefixes = kTowerPrefixes,
     .names = kLfmProjector,
     .picture_text = R"({"picture": "<|image_start|>{image}<|image_end|>", "tiled":
       "<|image_start|>{tiles}<|img_thumbnail|>{image}<|image_end|>", "tile":
       "<|img_row_{row}_col_{column}|>{image}"})",
     .normed = true,
     .normed_joined = true},
    {.model_type = "llava",
     .text_type = "llama",
     .vision_type = "clip_vision_model",
     .defaults = R"({"vision_feature_layer": -2, "vision_feature_select_strategy": "default",
       "image_token_index": 32000, "projector_hidden_act": "gelu"})",
     .text = kNestedText,
     .head = kNestedHead,
     .prefixes = kTowerPrefixes,
     .names = kLlavaProjector,
     .picture_text = R"({"placeholder": "<image>", "inserted": "<image>\n"})",
     .feature_layer = true},
    {.model_type = "llava_qwen2",
     .text_type = "qwen2",
     .vision_type = "timm_wrapper",
     .defaults =
         R"({"vision_config": {}, "projector_hidden_act": "gelu", "vision_feature_layer": -1,
       "vision_feature_select_strategy": "full", "mm_projector_type": "mlp2x_gelu",
       "mm_vision_tower": "mobileclip_l_1024"})",
     .text = kFlatText,
     .head = kPlainHead,
     .prefixes = kFastVlmPrefixes,
     .names = kFastVlmProjector,
     .picture_text = R"({"placeholder": "<image>", "inserted": "<image>\n"})",
     .published_tower = true},
    {.model_type = "paligemma",
     .text_type = "gemma",
     .vision_type = "siglip_vision_model",
     .defaults = R"({"image_token_index": 256000})",
     .text = kNestedText,
     .head = kNestedHead,
     .prefixes = kTowerPrefixes,
     .projector = Projector::kOneLayer,
     .names = kPaligemmaProjector,
     .picture_text = R"({"behind": "\n"})",
     .normed = true,
     .divided_by_root = true,
     .sees_both_ways = true},
    {.model_type = "qwen2_5_vl",
     .text_type = "qwen2_vl",
     .vision_type = "qwen2_5_vl",
     .defaults = R"({"image_token_id": 151655})",
     .text = kQwenText,
     .head = kPlainHead,
     .prefixes = kQwenPrefixes,
     .names = kQwenProjector,
     .picture_text = kQwenPicture,
     .normed_before = true},
    {.model_type = "qwen2_vl",
     .text_type = "qwen2_vl",
     .vision_type = "qwen2_vl",
     .defaults = R"({"image_token_id": 151655})",
     .text = kQwenText,
     .head = kPlainHead,
     .prefixes = kQwenPrefixes,
     .names = kQwenProjector,
     .picture_text = kQwenPicture,
     .normed_before = true},
    {.model_type = "qwen3_vl",
     .text_type = "qwen3_vl",
     .vision_type = "qwen3_vl",
     .defaults = R"({"image_token_id": 151655})",
     .text = kQwenText,
     .head = kPlainHead,
     .prefixes = kQwenPrefixes,
     .names = kQwen3Projector,
     .picture_text = kQwenPicture,
     .normed_before = true},
    {.model_type = "smolvlm",
     .text_type = "llama",
     .vision_type = "smolvlm_vision",
     .defaults = R"({"scale_factor": 2, "image_token_id": 128257})",
     .text = kIdeficsText,
     .head = kPlainHead,
     .prefixes = kIdeficsPrefixes,
     .projector = Projector::kOneLayer,
     .names = kIdeficsProjector,
     .picture_text = kIdeficsPicture,
     .normed = true},
};

}  // namespace

std::string_view TextDefaults(std::string_view model_type) {
  for (const ClassDefaults& row : kTextClasses)
    if (row.model_type == model_type) return row.members;
  return "{}";
}

const TowerRow* FindTower(std::string_view model_type) {
  for (const TowerRow& row : kTowerClasses)
    if (row.model_type == model_type) return &row;
  return nullptr;
}

std::set<std::string> TowerTypes() {
  std::set<std::string> types;
  for (const TowerRow& row : kTowerClasses) types.emplace(row.model_type);
  return types;
}

const VisionLanguageRow* FindVisionLanguageRow(std::string_view model_type) {
  for (const VisionLanguageRow& row : kVisionLanguageRows)
    if (row.model_type == model_type) return &row;
  return nullptr;
}

std::set<std::string> VisionLanguageModelTypes() {
  std::set<std::string> types;
  for (const VisionLanguageRow& row : kVisionLanguageRows) types.emplace(row.model_type);
  return types;
}

}  // namespace mlc::safetensors
