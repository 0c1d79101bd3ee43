// Transformers of timm: vision transformers and their relatives, Swin and Swin V2.

#include <algorithm>
#include <charconv>

#include "frontends/safetensors/timm.h"
#include "lib/networks/mobilevit.h"
#include "lib/networks/vision_model.h"
#include "lib/networks/window_transformer.h"

namespace mlc::safetensors {

namespace {

using networks::Activation;

constexpr TensorName kSwinTensors[] = {
    {"patches.norm", "patch_embed.norm"},
    {"patches", "patch_embed.proj"},
    {"stage.{}.block.{}.norm", "layers.{}.blocks.{}.norm1"},
    {"stage.{}.block.{}.attention.qkv", "layers.{}.blocks.{}.attn.qkv"},
    {"stage.{}.block.{}.attention.output", "layers.{}.blocks.{}.attn.proj"},
    {"stage.{}.block.{}.attention.query.bias", "layers.{}.blocks.{}.attn.q_bias"},
    {"stage.{}.block.{}.attention.value.bias", "layers.{}.blocks.{}.attn.v_bias"},
    {"stage.{}.block.{}.attention.scale", "layers.{}.blocks.{}.attn.logit_scale"},
    {"stage.{}.block.{}.attention.distance.0", "layers.{}.blocks.{}.attn.cpb_mlp.0"},
    {"stage.{}.block.{}.attention.distance.1", "layers.{}.blocks.{}.attn.cpb_mlp.2"},
    {"stage.{}.block.{}.attention.biases", "layers.{}.blocks.{}.attn.relative_position_bias_table"},
    {"stage.{}.block.{}.second_norm", "layers.{}.blocks.{}.norm2"},
    {"stage.{}.block.{}.up", "layers.{}.blocks.{}.mlp.fc1"},
    {"stage.{}.block.{}.down", "layers.{}.blocks.{}.mlp.fc2"},
    {"norm", "norm"},
    {"classifier", "head.fc"},
    {"classifier", "head"},
};
// Merging belongs to the following stage, but to the one before in files of timm before 0.9.
constexpr TensorName kSwinMerging[] = {
    {"stage.{}.merge.norm", "layers.{+1}.downsample.norm"},
    {"stage.{}.merge", "layers.{+1}.downsample.reduction"},
};
constexpr TensorName kOldSwinMerging[] = {
    {"stage.{}.merge.norm", "layers.{}.downsample.norm"},
    {"stage.{}.merge", "layers.{}.downsample.reduction"},
};
constexpr TensorName kVitTensors[] = {
    {"vision.patches", "patch_embed.proj"},
    {"vision.class_token", "cls_token"},
    {"vision.distillation_token", "dist_token"},
    {"vision.registers", "reg_token"},
    {"vision.positions", "pos_embed"},
    {"vision.embeddings_norm", "norm_pre"},
    {"vision.relative_positions", "rel_pos_bias.relative_position_bias_table"},
    {"vision.layer.{}.relative_positions", "blocks.{}.attn.relative_position_bias_table"},
    {"vision.layer.{}.qkv", "blocks.{}.attn.qkv"},
    {"vision.layer.{}.query.bias", "blocks.{}.attn.q_bias"},
    {"vision.layer.{}.value.bias", "blocks.{}.attn.v_bias"},
    {"vision.layer.{}.query", "blocks.{}.attn.q_proj"},
    {"vision.layer.{}.key", "blocks.{}.attn.k_proj"},
    {"vision.layer.{}.value", "blocks.{}.attn.v_proj"},
    {"vision.layer.{}.joined_norm", "blocks.{}.attn.norm"},
    {"vision.layer.{}.attention", "blocks.{}.attn.proj"},
    {"vision.layer.{}.attention_norm", "blocks.{}.norm1"},
    {"vision.layer.{}.attention_scale", "blocks.{}.ls1.gamma"},
    {"vision.layer.{}.attention_scale", "blocks.{}.gamma_1"},
    {"vision.layer.{}.norm", "blocks.{}.norm2"},
    {"vision.layer.{}.up", "blocks.{}.mlp.fc1"},
    {"vision.layer.{}.gate_up", "blocks.{}.mlp.fc1"},
    {"vision.layer.{}.gate", "blocks.{}.mlp.fc1_g"},
    {"vision.layer.{}.up", "blocks.{}.mlp.fc1_x"},
    {"vision.layer.{}.inner_norm", "blocks.{}.mlp.norm"},
    {"vision.layer.{}.down", "blocks.{}.mlp.fc2"},
    {"vision.layer.{}.scale", "blocks.{}.ls2.gamma"},
    {"vision.layer.{}.scale", "blocks.{}.gamma_2"},
    {"vision.norm", "norm"},
    {"vision.norm", "fc_norm"},
    {"vision.pooler_norm", "fc_norm"},
    {"vision.head.probe", "attn_pool.latent"},
    {"vision.head.query", "attn_pool.q"},
    {"vision.head.key_value", "attn_pool.kv"},
    {"vision.head.attention", "attn_pool.proj"},
    {"vision.head.norm", "attn_pool.norm"},
    {"vision.head.up", "attn_pool.mlp.fc1"},
    {"vision.head.down", "attn_pool.mlp.fc2"},
    {"classifier", "head"},
    {"teacher", "head_dist"},
};

bool IsBuffer(std::string_view name) {
  return name.ends_with("relative_position_index") || name.ends_with("attn_mask") ||
         name.ends_with("relative_coords_table") || name.ends_with("attn.k_bias");
}

Program BuildSwin(const TimmFolder& timm) {
  const Config& args = timm.arguments;
  CheckArguments(timm, {"depths", "embed_dim", "mlp_ratio", "num_heads", "patch_size",
                        "pretrained_window_sizes", "window_size"});
  networks::WindowTransformerConfig config{.patch = args.Int("patch_size", 4),
                                           .width = args.Int("embed_dim"),
                                           .depths = args.Ints("depths"),
                                           .heads = args.Ints("num_heads"),
                                           .window = args.Int("window_size"),
                                           .trained = timm.trained,
                                           .feed_forward = args.Number("mlp_ratio", 4),
                                           .shift_first = true,
                                           .picture = timm.picture,
                                           .labels = timm.labels};
  config.second = timm.architecture.starts_with("swinv2_");
  if (args.has("pretrained_window_sizes"))
    config.pretrained_windows = args.Ints("pretrained_window_sizes");
  std::vector<TensorName> names(std::begin(kSwinTensors), std::end(kSwinTensors));
  const bool old = timm.from.folder().has("layers.0.downsample.reduction.weight");
  const auto merging = old ? std::span<const TensorName>(kOldSwinMerging)
                           : std::span<const TensorName>(kSwinMerging);
  names.insert(names.end(), merging.begin(), merging.end());
  return BuiltTimm(timm, std::move(names), config, networks::BuildWindowTransformer, IsBuffer);
}

// Sizes by a word of the architecture's name.
struct VitSize {
  std::string_view word;
  int64_t width, layers, heads;
  double feed_forward = 4;  // ratio
};
constexpr VitSize kVitSizes[] = {
    {"tiny", 192, 12, 3},           {"wee", 256, 14, 4, 5},
    {"xsmall", 256, 10, 4},         {"little", 320, 14, 5, 5.6},
    {"small", 384, 12, 6},          {"medium", 512, 12, 8},
    {"mediumd", 512, 20, 8},        {"betwixt", 640, 12, 10},
    {"base", 768, 12, 12},          {"so150m2", 832, 21, 13, 34.0 / 13},
    {"so150m", 896, 18, 14, 2.572}, {"large", 1024, 24, 16},
    {"intern300m", 1024, 24, 16},   {"so400m", 1152, 27, 16, 3.7362},
    {"huge", 1280, 32, 16},         {"giant", 1408, 40, 16, 48.0 / 11},
    {"giantopt", 1536, 40, 16},     {"gigantic", 1664, 48, 16, 64.0 / 13},
};

// Reads the network from the arguments, and from what the name says: the size, and the side of patches
// ("patch16").
networks::VisionConfig ReadVit(const TimmFolder& timm) {
  const Config& args = timm.arguments;
  VitSize size{};
  int64_t patch = 16;
  constexpr std::string_view kPatch = "patch";
  for (const std::string& part : Split(timm.architecture, '_')) {
    if (const auto* row = std::ranges::find(kVitSizes, part, &VitSize::word);
        row != std::end(kVitSizes))
      size = *row;
    if (part.starts_with(kPatch))
      std::from_chars(part.data() + kPatch.size(), part.data() + part.size(), patch);
  }
  networks::VisionConfig vision;
  networks::TransformerLayer& layer = vision.layer;
  layer.width = args.Int("embed_dim", size.width);
  layer.heads = args.Int("num_heads", size.heads);
  layer.activation = TimmActivation(timm, Activation::kGelu);
  layer.epsilon = args.Number("norm_eps", layer.epsilon);
  layer.rms_norms = args.Bool("rms_norms", false);
  layer.gated = args.Bool("gated", false);
  layer.query_bias = layer.value_bias = args.Bool("qkv_bias", true);
  layer.key_bias = false;
  layer.output_bias = layer.up_bias = args.Bool("proj_bias", true);
  const double inner =
      static_cast<double>(layer.width) * args.Number("mlp_ratio", size.feed_forward);
  if (!(inner >= 1 && inner <= INT32_MAX))
    throw Error("bad-file", "feed-forward layers have {} channels", inner)
        .Expected("1 to {}", INT32_MAX);
  // Gates are counted, too.
  layer.feed_forward = static_cast<int64_t>(inner) / (layer.gated ? 2 : 1);
  if (args.Bool("swiglu_mlp", false)) {
    const int64_t multiple = std::max<int64_t>(args.Int("swiglu_align_to", 1), 1);
    layer.gated = true;
    layer.activation = Activation::kSilu;
    layer.feed_forward = (static_cast<int64_t>(inner) + multiple - 1) / multiple * multiple;
  }
  vision.layers = args.Int("depth", size.layers);
  vision.patch.height = vision.patch.width = args.Int("patch_size", patch);
  vision.channels = timm.picture.channels;
  vision.picture = timm.picture.size;
  vision.trained = timm.trained;
  vision.class_token = args.Bool("class_token", true);
  vision.distillation_token = args.Bool("distilled", false);
  vision.registers = args.Int("reg_tokens", 0);
  vision.embeddings_norm = args.Bool("pre_norm", false);
  vision.patch_bias = !vision.embeddings_norm;
  vision.position_table = args.Bool("use_abs_pos_emb", true);
  vision.positioned = args.Bool("no_embed_class", false)
                          ? networks::VisionConfig::Positioned::kPatches
                          : networks::VisionConfig::Positioned::kAll;
  vision.resizing = networks::Resizing::kBicubicAntialias;
  if (args.has("rope_temperature")) {
    vision.rotary = true;
    vision.rotary_base = args.Number("rope_temperature");
  }
  if (args.has("ref_feat_shape")) {
    const std::vector<int64_t> sides = args.Ints("ref_feat_shape");
    if (sides.size() != 2 || sides[0] < 1 || sides[1] < 1)
      args.Refuse("ref_feat_shape", "two positive numbers");
    vision.rotary_reference = {sides[0], sides[1]};
  }
  if (args.Bool("use_rel_pos_bias", false))
    vision.relative = networks::VisionConfig::Relative::kPerLayer;
  return vision;
}

// Follows timm/models/vision_transformer.py, deit.py, beit.py and eva.py.
Program BuildVit(const TimmFolder& timm) {
  using Model = networks::VisionModelConfig;
  CheckArguments(timm, {"act_layer", "class_token", "depth", "embed_dim", "fc_norm", "final_norm",
                        "mlp_ratio", "no_embed_class", "num_heads", "patch_size",
                        "pool_include_prefix", "pre_norm", "proj_bias", "qkv_bias", "reg_tokens"});
  const Config& args = timm.arguments;
  Model config{.vision = ReadVit(timm),
               .head = timm.labels > 0 ? Model::Head::kClassifier : Model::Head::kHidden,
               .picture = timm.picture,
               .outputs = timm.from.outputs()};
  const std::string pool = args.Text("global_pool", "token");
  const bool norm = args.Bool("final_norm", true),
             pooled_norm = norm && args.Bool("fc_norm", pool == "avg");
  config.normed = norm && !pooled_norm;
  if (pool == "token") {
    config.pooler = pooled_norm ? Model::Pooler::kNormedFirst : Model::Pooler::kFirst;
  } else if (pool == "avg") {
    config.pooler = pooled_norm ? Model::Pooler::kMean : Model::Pooler::kPatches;
  } else if (pool == "map") {
    config.pooler = Model::Pooler::kAttention;
  } else {
    args.Refuse("global_pool", "token, avg or map");
  }
  config.pools_all = args.Bool("pool_include_prefix", false);
  config.features = Model::Features::kPooled;
  if (pool == "token" && !config.vision->class_token) args.Refuse("class_token", "true");
  if (config.vision->distillation_token && timm.labels == 0)
    config.pooler = Model::Pooler::kFirstTwo;
  if (config.vision->distillation_token && timm.labels > 0) {
    config.head = Model::Head::kTwoTeachers;
    if (config.outputs.empty()) config.outputs = {"logits"};
  }
  return BuiltTimm(
      timm, {std::begin(kVitTensors), std::end(kVitTensors)}, config,
      +[](const Model& model, const networks::NetworkWeights& weights, Diagnostics& diagnostics) {
        return networks::BuildVisionModel(model, weights, diagnostics);
      },
      IsBuffer);
}

TensorNameList MobileVitNames() {
  TensorNameList names;
  auto unit = [&](const std::string& ours, const std::string& theirs) {
    names.Add(ours + ".conv", theirs + ".conv");
    names.Add(ours + ".norm", theirs + ".bn");
  };
  unit("stem", "stem");
  const std::string stage = "stage.{}.", block = stage + "block.{}.", layer = stage + "layer.{}.",
                    blocks = "stages.{}.{}.", transformer = "stages.{}.1.";
  unit(block + "expand", blocks + "conv1_1x1");
  unit(block + "depthwise", blocks + "conv2_kxk");
  unit(block + "project", blocks + "conv3_1x1");
  unit(stage + "local", transformer + "conv_kxk");
  names.Add(stage + "embed.conv", transformer + "conv_1x1");
  unit(stage + "unembed", transformer + "conv_proj");
  unit(stage + "fusion", transformer + "conv_fusion");
  names.Add(stage + "norm", transformer + "norm");
  const std::string layers = transformer + "transformer.{}.";
  for (const auto& [ours, theirs] : {std::pair<std::string, std::string>("norm", "norm1"),
                                     {"second_norm", "norm2"},
                                     {"attention.qkv", "attn.qkv"},
                                     {"attention.attention", "attn.proj"},
                                     {"attention.joined.conv", "attn.qkv_proj"},
                                     {"attention.output.conv", "attn.out_proj"},
                                     {"up.conv", "mlp.fc1"},
                                     {"down.conv", "mlp.fc2"},
                                     {"up", "mlp.fc1"},
                                     {"down", "mlp.fc2"}})
    names.Add(layer + ours, layers + theirs);
  unit("head", "final_conv");
  names.Add("classifier", "head.fc");
  return names;
}

Program BuildMobileVit(const TimmFolder& timm) {
  CheckArguments(timm, {});
  const Config& args = timm.arguments;
  networks::MobileVitConfig config{.separable = timm.architecture.starts_with("mobilevitv2_"),
                                   .expansion = args.Number("expansion"),
                                   .head = timm.labels > 0
                                               ? networks::MobileVitConfig::Head::kClasses
                                               : networks::MobileVitConfig::Head::kNone,
                                   .picture = timm.picture,
                                   .labels = timm.labels};
  const double factor = args.Number("multiplier", 1);
  auto scaled = [&](const char* key) {
    std::vector<int64_t> widths = args.Ints(key);
    for (int64_t& width : widths) width = Truncated(static_cast<double>(width) * factor);
    return widths;
  };
  config.widths = scaled("widths");
  config.token_widths = scaled("token_widths");
  const TensorNameList names = MobileVitNames();
  return BuiltTimm(timm, names.rows(), config, networks::BuildMobileVit);
}

constexpr std::string_view kClip = R"({"pre_norm": true, "norm_eps": 1e-5})",
                           kQuickClip =
                               R"({"pre_norm": true, "norm_eps": 1e-5, "act_layer": "quick_gelu"})",
                           kMean =
                               R"({"class_token": false, "global_pool": "avg", "fc_norm": false})",
                           kMeanTanh =
                               R"({"class_token": false, "global_pool": "avg", "fc_norm": false,
                               "act_layer": "gelu_tanh"})",
                           kAttention = R"({"class_token": false, "global_pool": "map"})",
                           kAttentionTanh = R"({"class_token": false, "global_pool": "map",
                               "act_layer": "gelu_tanh"})",
                           kSkewed = R"({"class_token": false, "global_pool": "avg",
                               "fc_norm": false, "qkv_bias": false})",
                           kReg1 = R"({"class_token": false, "no_embed_class": true,
                               "reg_tokens": 1, "global_pool": "avg"})",
                           kReg4 = R"({"class_token": false, "no_embed_class": true,
                               "reg_tokens": 4, "global_pool": "avg"})",
                           kPatchPositions = R"({"no_embed_class": true})";
constexpr std::string_view kDinoV3 = R"({"rope_temperature": 100, "use_abs_pos_emb": false,
    "reg_tokens": 4, "fc_norm": false, "global_pool": "avg", "norm_eps": 1e-5})",
                           kDinoV3Bare = R"({"qkv_bias": false, "rope_temperature": 100,
    "use_abs_pos_emb": false, "reg_tokens": 4, "fc_norm": false, "global_pool": "avg",
    "norm_eps": 1e-5})",
                           kDinoV3Plus = R"({"swiglu_mlp": true, "swiglu_align_to": 8,
    "rope_temperature": 100, "use_abs_pos_emb": false, "reg_tokens": 4, "fc_norm": false,
    "global_pool": "avg", "norm_eps": 1e-5})",
                           kDinoV3PlusBare = R"({"qkv_bias": false, "swiglu_mlp": true,
    "swiglu_align_to": 8, "rope_temperature": 100, "use_abs_pos_emb": false, "reg_tokens": 4,
    "fc_norm": false, "global_pool": "avg", "norm_eps": 1e-5})",
                           kEva02 = R"({"mlp_ratio": 2.6666666666666665, "swiglu_mlp": true,
    "rope_temperature": 10000, "ref_feat_shape": [16, 16], "global_pool": "avg"})",
                           kEva02Clip = R"({"mlp_ratio": 2.6666666666666665, "swiglu_mlp": true,
    "rope_temperature": 10000, "ref_feat_shape": [16, 16]})";
constexpr TimmRow kVits[] = {
    {"vit_{tiny,small,base,large}_patch16_{224,384}", "{}"},
    {"vit_{small,base,large}_patch32_{224,384}", "{}"},
    {"vit_{small,base}_patch8_224", "{}"},
    {"vit_{large,huge,giant,gigantic}_patch14_224", "{}"},
    {"vit_base_patch16_224_miil", R"({"qkv_bias": false})"},
    {"vit_medium_patch16_gap_{240,256,384}", kSkewed},
    {"vit_betwixt_patch16_gap_256", kSkewed},
    {"vit_base_patch16_gap_224",
     R"({"num_heads": 16, "class_token": false, "global_pool": "avg", "fc_norm": false})"},
    {"vit_huge_patch14_gap_224", kMean},
    {"vit_huge_patch16_gap_448", kMean},
    {"vit_giant_patch16_gap_224", kMean},
    {"vit_{xsmall,medium,base}_patch16_clip_224", kClip},
    {"vit_base_patch16_clip_384", kClip},
    {"vit_{medium,betwixt,base}_patch32_clip_224", kClip},
    {"vit_base_patch32_clip_{256,384,448}", kClip},
    {"vit_base_patch16_plus_clip_240",
     R"({"embed_dim": 896, "num_heads": 14, "pre_norm": true, "norm_eps": 1e-5})"},
    {"vit_{large,huge}_patch14_clip_{224,336}", kClip},
    {"vit_{huge,gigantic}_patch14_clip_378", kClip},
    {"vit_{giant,gigantic}_patch14_clip_224", kClip},
    {"vit_base_patch{16,32}_clip_quickgelu_224", kQuickClip},
    {"vit_large_patch14_clip_quickgelu_{224,336}", kQuickClip},
    {"vit_huge_patch14_clip_quickgelu_{224,378}", kQuickClip},
    {"vit_gigantic_patch14_clip_quickgelu_224", kQuickClip},
    {"vit_base_patch{32_plus_256,16_plus_240}", R"({"embed_dim": 896, "num_heads": 14})"},
    {"vit_small_patch16_36x1_224", R"({"depth": 36})"},
    {"eva_large_patch14_{196,336}", R"({"global_pool": "avg"})"},
    {"flexivit_{small,base,large}", kPatchPositions},
    {"vit_{small,base,large}_patch14_dinov2", "{}"},
    {"vit_giant_patch14_dinov2",
     R"({"embed_dim": 1536, "num_heads": 24, "mlp_ratio": 5.33334, "gated": true,
         "act_layer": "silu"})"},
    {"vit_{small,base,large}_patch14_reg4_dinov2", R"({"reg_tokens": 4, "no_embed_class": true})"},
    {"vit_giant_patch14_reg4_dinov2",
     R"({"embed_dim": 1536, "num_heads": 24, "mlp_ratio": 5.33334, "gated": true,
         "act_layer": "silu", "reg_tokens": 4, "no_embed_class": true})"},
    {"vit_base_patch16_siglip_{224,256,384,512}", kAttention},
    {"vit_large_patch16_siglip_{256,384}", kAttention},
    {"vit_so400m_patch14_siglip_{224,378,384}", kAttention},
    {"vit_base_patch32_siglip_256", kAttentionTanh},
    {"vit_large_patch16_siglip_512", kAttentionTanh},
    {"vit_so400m_patch16_siglip_{256,384,512}", kAttentionTanh},
    {"vit_giantopt_patch16_siglip_{256,384}", kAttentionTanh},
    {"vit_base_patch16_siglip_gap_{224,256,384,512}", kMean},
    {"vit_large_patch16_siglip_gap_{256,384}", kMean},
    {"vit_so400m_patch14_siglip_gap_{224,378,384,448,896}", kMean},
    {"vit_base_patch32_siglip_gap_256", kMeanTanh},
    {"vit_large_patch16_siglip_gap_512", kMeanTanh},
    {"vit_so400m_patch16_siglip_gap_{256,384,512}", kMeanTanh},
    {"vit_giantopt_patch16_siglip_gap_{256,384}", kMeanTanh},
    {"vit_{wee,little,medium,betwixt}_patch16_reg1_gap_256", kReg1},
    {"vit_{little,medium,mediumd,betwixt,base}_patch16_reg4_gap_256", kReg4},
    {"vit_{mediumd,betwixt}_patch16_reg4_gap_384", kReg4},
    {"vit_so150m_patch16_reg4_map_256",
     R"({"class_token": false, "reg_tokens": 4, "global_pool": "map"})"},
    {"vit_so150m_patch16_reg4_gap_{256,384}",
     R"({"class_token": false, "reg_tokens": 4, "global_pool": "avg", "fc_norm": false})"},
    {"vit_so150m2_patch16_reg1_gap_{256,384,448}",
     R"({"class_token": false, "reg_tokens": 1, "global_pool": "avg", "qkv_bias": false})"},
    {"vit_intern300m_patch14_448", R"({"final_norm": false})"},
    {"vit_{tiny,small,base,large}_patch16_dinov3_qkvb", kDinoV3},
    {"vit_{small,base,large}_patch16_dinov3", kDinoV3Bare},
    {"vit_small_plus_patch16_dinov3_qkvb", kDinoV3Plus},
    {"vit_small_plus_patch16_dinov3", kDinoV3PlusBare},
    {"vit_huge_plus_patch16_dinov3",
     R"({"num_heads": 20, "qkv_bias": false, "swiglu_mlp": true, "swiglu_align_to": 8,
         "rope_temperature": 100, "use_abs_pos_emb": false, "reg_tokens": 4, "fc_norm": false,
         "global_pool": "avg", "norm_eps": 1e-5})"},
    {"eva02_{tiny,small}_patch14_{224,336}", kEva02},
    {"eva02_{base,large}_patch14_{224,448}", kEva02},
    {"eva02_base_patch16_clip_224", kEva02Clip},
    {"eva02_large_patch14_clip_{224,336}", kEva02Clip},
    {"eva_giant_patch14_{224,336,560}", R"({"global_pool": "avg"})"},
    {"eva_giant_patch14_clip_224", "{}"},
    {"test_vit", R"({"embed_dim": 64, "depth": 6, "num_heads": 2, "mlp_ratio": 3})"},
    {"test_vit2",
     R"({"embed_dim": 64, "depth": 8, "num_heads": 2, "mlp_ratio": 3, "class_token": false,
         "reg_tokens": 1, "global_pool": "avg"})"},
    {"test_vit3",
     R"({"embed_dim": 96, "depth": 9, "num_heads": 3, "mlp_ratio": 2, "class_token": false,
         "reg_tokens": 1, "global_pool": "map", "pool_include_prefix": true})"},
    {"test_vit4",
     R"({"embed_dim": 96, "depth": 9, "num_heads": 3, "mlp_ratio": 3, "class_token": false,
         "reg_tokens": 1, "global_pool": "avg", "rms_norms": true})"},
    {"deit_{tiny,small,base}_patch16_224", "{}"},
    {"deit_base_patch16_384", "{}"},
    {"deit_{tiny,small,base}_distilled_patch16_224", R"({"distilled": true})"},
    {"deit_base_distilled_patch16_384", R"({"distilled": true})"},
    {"deit3_{small,medium,base,large}_patch16_224", kPatchPositions},
    {"deit3_{small,base,large}_patch16_384", kPatchPositions},
    {"deit3_huge_patch14_224", kPatchPositions},
    {"beit_base_patch16_{224,384}",
     R"({"use_abs_pos_emb": false, "use_rel_pos_bias": true, "global_pool": "avg"})"},
    {"beit_large_patch16_{224,384,512}",
     R"({"use_abs_pos_emb": false, "use_rel_pos_bias": true, "global_pool": "avg"})"},
    {"beitv2_{base,large}_patch16_224",
     R"({"use_abs_pos_emb": false, "use_rel_pos_bias": true, "global_pool": "avg"})"},
};

constexpr TimmRow kSwins[] = {
    {"swin_base_patch4_window12_384",
     R"({"window_size": 12, "embed_dim": 128, "depths": [2, 2, 18, 2],
         "num_heads": [4, 8, 16, 32]})"},
    {"swin_base_patch4_window7_224",
     R"({"window_size": 7, "embed_dim": 128, "depths": [2, 2, 18, 2],
         "num_heads": [4, 8, 16, 32]})"},
    {"swin_large_patch4_window12_384",
     R"({"window_size": 12, "embed_dim": 192, "depths": [2, 2, 18, 2],
         "num_heads": [6, 12, 24, 48]})"},
    {"swin_large_patch4_window7_224",
     R"({"window_size": 7, "embed_dim": 192, "depths": [2, 2, 18, 2],
         "num_heads": [6, 12, 24, 48]})"},
    {"swin_small_patch4_window7_224",
     R"({"window_size": 7, "embed_dim": 96, "depths": [2, 2, 18, 2],
         "num_heads": [3, 6, 12, 24]})"},
    {"swin_tiny_patch4_window7_224",
     R"({"window_size": 7, "embed_dim": 96, "depths": [2, 2, 6, 2],
         "num_heads": [3, 6, 12, 24]})"},
    {"swinv2_tiny_window16_256",
     R"({"window_size": 16, "embed_dim": 96, "depths": [2, 2, 6, 2],
         "num_heads": [3, 6, 12, 24]})"},
    {"swinv2_tiny_window8_256",
     R"({"window_size": 8, "embed_dim": 96, "depths": [2, 2, 6, 2],
         "num_heads": [3, 6, 12, 24]})"},
    {"swinv2_small_window16_256",
     R"({"window_size": 16, "embed_dim": 96, "depths": [2, 2, 18, 2],
         "num_heads": [3, 6, 12, 24]})"},
    {"swinv2_small_window8_256",
     R"({"window_size": 8, "embed_dim": 96, "depths": [2, 2, 18, 2],
         "num_heads": [3, 6, 12, 24]})"},
    {"swinv2_base_window16_256",
     R"({"window_size": 16, "embed_dim": 128, "depths": [2, 2, 18, 2],
         "num_heads": [4, 8, 16, 32]})"},
    {"swinv2_base_window8_256",
     R"({"window_size": 8, "embed_dim": 128, "depths": [2, 2, 18, 2],
         "num_heads": [4, 8, 16, 32]})"},
    {"swinv2_base_window12_192",
     R"({"window_size": 12, "embed_dim": 128, "depths": [2, 2, 18, 2],
         "num_heads": [4, 8, 16, 32]})"},
    {"swinv2_base_window12to16_192to256",
     R"({"window_size": 16, "embed_dim": 128, "depths": [2, 2, 18, 2],
         "num_heads": [4, 8, 16, 32], "pretrained_window_sizes": [12, 12, 12, 6]})"},
    {"swinv2_base_window12to24_192to384",
     R"({"window_size": 24, "embed_dim": 128, "depths": [2, 2, 18, 2],
         "num_heads": [4, 8, 16, 32], "pretrained_window_sizes": [12, 12, 12, 6]})"},
    {"swinv2_large_window12_192",
     R"({"window_size": 12, "embed_dim": 192, "depths": [2, 2, 18, 2],
         "num_heads": [6, 12, 24, 48]})"},
    {"swinv2_large_window12to16_192to256",
     R"({"window_size": 16, "embed_dim": 192, "depths": [2, 2, 18, 2],
         "num_heads": [6, 12, 24, 48], "pretrained_window_sizes": [12, 12, 12, 6]})"},
    {"swinv2_large_window12to24_192to384",
     R"({"window_size": 24, "embed_dim": 192, "depths": [2, 2, 18, 2],
         "num_heads": [6, 12, 24, 48], "pretrained_window_sizes": [12, 12, 12, 6]})"},
};
// The arguments are our own: timm's functions have lists of blocks (timm/models/mobilevit.py).
constexpr TimmRow kMobileVits[] = {
    {"mobilevit_xxs", R"({"widths": [16, 16, 24, 48, 64, 80, 320],
                          "token_widths": [64, 80, 96], "expansion": 2})"},
    {"mobilevit_xs", R"({"widths": [16, 32, 48, 64, 80, 96, 384],
                         "token_widths": [96, 120, 144], "expansion": 4})"},
    {"mobilevit_s", R"({"widths": [16, 32, 64, 96, 128, 160, 640],
                        "token_widths": [144, 192, 240], "expansion": 4})"},
    {"mobilevitv2_050", R"({"multiplier": 0.5, "widths": [32, 64, 128, 256, 384, 512],
                            "token_widths": [128, 192, 256], "expansion": 2})"},
    {"mobilevitv2_075", R"({"multiplier": 0.75, "widths": [32, 64, 128, 256, 384, 512],
                            "token_widths": [128, 192, 256], "expansion": 2})"},
    {"mobilevitv2_100", R"({"multiplier": 1, "widths": [32, 64, 128, 256, 384, 512],
                            "token_widths": [128, 192, 256], "expansion": 2})"},
    {"mobilevitv2_125", R"({"multiplier": 1.25, "widths": [32, 64, 128, 256, 384, 512],
                            "token_widths": [128, 192, 256], "expansion": 2})"},
    {"mobilevitv2_150", R"({"multiplier": 1.5, "widths": [32, 64, 128, 256, 384, 512],
                            "token_widths": [128, 192, 256], "expansion": 2})"},
    {"mobilevitv2_175", R"({"multiplier": 1.75, "widths": [32, 64, 128, 256, 384, 512],
                            "token_widths": [128, 192, 256], "expansion": 2})"},
    {"mobilevitv2_200", R"({"multiplier": 2, "widths": [32, 64, 128, 256, 384, 512],
                            "token_widths": [128, 192, 256], "expansion": 2})"},
};
constexpr TimmFamily kTransformers[] = {
    {kMobileVits, BuildMobileVit}, {kSwins, BuildSwin}, {kVits, BuildVit, "token"}};

}  // namespace

std::span<const TimmFamily> TimmTransformers() { return kTransformers; }

}  // namespace mlc::safetensors
