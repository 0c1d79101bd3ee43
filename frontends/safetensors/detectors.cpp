#include <span>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/picture_nets.h"
#include "lib/networks/detr.h"
#include "lib/networks/rt_detr.h"

namespace mlc::safetensors {

namespace {

constexpr TensorName kDetrNames[] = {
    {"projection", "input_projection"},
    {"encoder.{}.attention.query", "encoder.layers.{}.self_attn.q_proj"},
    {"encoder.{}.attention.key", "encoder.layers.{}.self_attn.k_proj"},
    {"encoder.{}.attention.value", "encoder.layers.{}.self_attn.v_proj"},
    {"encoder.{}.attention.output", "encoder.layers.{}.self_attn.out_proj"},
    {"encoder.{}.attention.output", "encoder.layers.{}.self_attn.o_proj"},  // transformers 5
    {"encoder.{}.norm", "encoder.layers.{}.self_attn_layer_norm"},
    {"encoder.{}.up", "encoder.layers.{}.fc1"},
    {"encoder.{}.up", "encoder.layers.{}.mlp.fc1"},
    {"encoder.{}.down", "encoder.layers.{}.fc2"},
    {"encoder.{}.down", "encoder.layers.{}.mlp.fc2"},
    {"encoder.{}.last_norm", "encoder.layers.{}.final_layer_norm"},
    {"decoder.{}.attention.query", "decoder.layers.{}.self_attn.q_proj"},
    {"decoder.{}.attention.key", "decoder.layers.{}.self_attn.k_proj"},
    {"decoder.{}.attention.value", "decoder.layers.{}.self_attn.v_proj"},
    {"decoder.{}.attention.output", "decoder.layers.{}.self_attn.out_proj"},
    {"decoder.{}.attention.output", "decoder.layers.{}.self_attn.o_proj"},
    {"decoder.{}.norm", "decoder.layers.{}.self_attn_layer_norm"},
    {"decoder.{}.cross.query", "decoder.layers.{}.encoder_attn.q_proj"},
    {"decoder.{}.cross.key", "decoder.layers.{}.encoder_attn.k_proj"},
    {"decoder.{}.cross.value", "decoder.layers.{}.encoder_attn.v_proj"},
    {"decoder.{}.cross.output", "decoder.layers.{}.encoder_attn.out_proj"},
    {"decoder.{}.cross.output", "decoder.layers.{}.encoder_attn.o_proj"},
    {"decoder.{}.cross_norm", "decoder.layers.{}.encoder_attn_layer_norm"},
    {"decoder.{}.up", "decoder.layers.{}.fc1"},
    {"decoder.{}.up", "decoder.layers.{}.mlp.fc1"},
    {"decoder.{}.down", "decoder.layers.{}.fc2"},
    {"decoder.{}.down", "decoder.layers.{}.mlp.fc2"},
    {"decoder.{}.last_norm", "decoder.layers.{}.final_layer_norm"},
    {"decoder.norm", "decoder.layernorm"},
    {"queries", "query_position_embeddings"},
    {"classes", "class_labels_classifier"},
    {"boxes", "bbox_predictor.layers"},
};
constexpr std::string_view kObjects = "ForObjectDetection";

// Adds the names of a backbone, which have one more outer module.
void AddBackbone(TensorNameList& names, std::span<const TensorName> inner,
                 std::span<const std::string_view> modules) {
  for (std::string_view module : modules)
    for (const TensorName& row : inner)
      names.Add(fmt::format("backbone.{}", row.ours), fmt::format("{}{}", module, row.theirs));
}

Program ImportDetr(const PictureFolder& from) {
  const Config& json = from.json();
  TensorNameList names;
  for (const TensorName& row : kDetrNames)
    names.Add(std::string(row.ours), std::string(row.theirs));
  // The second spelling is that of transformers 5.
  constexpr std::string_view kModules[] = {"backbone.conv_encoder.model.", "backbone.model."};
  networks::DetrConfig config;
  if (json.kind("backbone_config") == Config::Kind::kObject &&
      json.Object("backbone_config").Text("model_type", "resnet") != "timm_backbone") {
    const Config inner = json.Object("backbone_config").WithDefaults(kResNetDefaults);
    if (inner.Text("model_type", "resnet") != "resnet") inner.Refuse("model_type", "resnet");
    config.backbone = ReadResNet(inner);
    AddBackbone(names, ResNetNames(), kModules);
  } else {
    // Without a configuration, the backbone is one of timm, by name.
    std::string key = "backbone";
    Config where = json;
    if (json.kind("backbone_config") == Config::Kind::kObject)
      where = json.Object("backbone_config");
    const auto backbone = TimmResNet(where.Text(key, "resnet50"));
    if (!backbone || backbone->stem != networks::ResidualConfig::Stem::kSeven)
      where.Refuse(key, "a ResNet of timm, such as resnet50");
    config.backbone = *backbone;
    constexpr std::string_view kTimmModules[] = {"backbone.conv_encoder.model.", "backbone.model.",
                                                 "backbone.conv_encoder.model._backbone.",
                                                 "backbone.model._backbone."};
    AddBackbone(names, TimmResNetNames(), kTimmModules);
  }
  if (json.Bool("dilation", false)) json.Refuse("dilation", "false");
  if (json.Text("position_embedding_type") != "sine")
    json.Refuse("position_embedding_type", "sine");
  config.backbone.picture = from.Picture();
  config.width = json.Int("d_model");
  config.queries = json.Int("num_queries");
  config.encoder_layers = json.Int("encoder_layers");
  config.decoder_layers = json.Int("decoder_layers");
  config.encoder_heads = json.Int("encoder_attention_heads");
  config.decoder_heads = json.Int("decoder_attention_heads");
  config.encoder_feed_forward = json.Int("encoder_ffn_dim");
  config.decoder_feed_forward = json.Int("decoder_ffn_dim");
  config.activation = from.Activation("activation_function");
  // modeling_detr.py, DetrDecoder: what it keeps for losses of earlier layers, it also reads on.
  config.norms_each = json.Bool("auxiliary_loss", false);
  config.labels = from.HasHead(kObjects) ? from.Labels() : 0;
  return BuiltFrom(from, {"model.", ""}, names.rows(), config, networks::BuildDetr);
}

TensorNameList RtDetrNames() {
  TensorNameList names;
  auto add = [&](const std::string& ours, const std::string& theirs) { names.Add(ours, theirs); };
  for (auto [ours, theirs] : {std::pair("conv", 0), {"norm", 1}}) {
    add(fmt::format("project.{{}}.{}", ours), fmt::format("encoder_input_proj.{{}}.{}", theirs));
    add(fmt::format("level.{{}}.{}", ours), fmt::format("decoder_input_proj.{{}}.{}", theirs));
  }
  // D-FINE's names come first, since "reduce" also matches them.
  add("reduce.{}.{}", "encoder.downsample_convs.{}.conv{+1}");
  for (std::string_view part : {"fpn", "pan"})
    for (auto [ours, theirs] : {std::pair("csp1", "csp_rep1"), {"csp2", "csp_rep2"}})
      add(fmt::format("{}.{{}}.{}", part, ours),
          fmt::format("encoder.{}_blocks.{{}}.{}", part, theirs));
  add("first", "decoder.pre_bbox_head.layers");
  add("quality.{}", "decoder.lqe_layers.{}.reg_conf.layers");
  add("up", "decoder.up");
  add("scale", "decoder.reg_scale");
  add("lateral", "encoder.lateral_convs");
  add("fpn", "encoder.fpn_blocks");
  add("reduce", "encoder.downsample_convs");
  add("pan", "encoder.pan_blocks");
  add("memory.dense", "enc_output.0");
  add("memory.norm", "enc_output.1");
  add("memory.classes", "enc_score_head");
  add("memory.boxes", "enc_bbox_head.layers");
  add("places", "decoder.query_pos_head.layers");
  // The heads belong to the decoder, but are also stored beside it.
  add("classes", "decoder.class_embed");
  add("classes", "class_embed");
  add("boxes.{}", "decoder.bbox_embed.{}.layers");
  add("boxes.{}", "bbox_embed.{}.layers");
  // Transformers 5 stores the heads of the first layer alone if all are equal.
  for (std::string_view module : {"decoder.", ""}) {
    add("classes.{}", fmt::format("{}class_embed.0", module));
    add("boxes.{}", fmt::format("{}bbox_embed.0.layers", module));
  }
  // The second spelling of each is that of transformers 5.
  for (auto [ours, theirs] : {std::pair("encoder.{}.{}.", "encoder.encoder.{}.layers.{}."),
                              {"encoder.{}.{}.", "encoder.aifi.{}.layers.{}."},
                              {"decoder.{}.", "decoder.layers.{}."}}) {
    const std::string own = ours, other = theirs;
    for (auto [part, name] : {std::pair("attention.query", "self_attn.q_proj"),
                              {"attention.key", "self_attn.k_proj"},
                              {"attention.value", "self_attn.v_proj"},
                              {"attention.output", "self_attn.out_proj"},
                              {"attention.output", "self_attn.o_proj"},
                              {"norm", "self_attn_layer_norm"},
                              {"cross.offsets", "encoder_attn.sampling_offsets"},
                              {"cross.point_scales", "encoder_attn.n_points_scale"},
                              {"cross.point_scales", "encoder_attn.num_points_scale"},
                              {"cross.weights", "encoder_attn.attention_weights"},
                              {"cross.value", "encoder_attn.value_proj"},
                              {"cross.output", "encoder_attn.output_proj"},
                              {"cross_norm", "encoder_attn_layer_norm"},
                              {"up", "fc1"},
                              {"up", "mlp.fc1"},
                              {"down", "fc2"},
                              {"down", "mlp.fc2"},
                              {"up", "mlp.layers.0"},
                              {"down", "mlp.layers.1"},
                              {"gate.norm", "gateway.norm"},
                              {"gate", "gateway.gate"},
                              {"last_norm", "final_layer_norm"}})
      add(own + part, other + name);
  }
  constexpr std::string_view kModules[] = {"backbone.model."};
  AddBackbone(names, ResNetNames(), kModules);
  return names;
}

// Returns whether only training needs the tensor, or it belongs to the head of an earlier layer, which
// is tied or not read.
bool IsRtDetrLeftOver(std::string_view name) {
  return name.find("class_embed.") != std::string_view::npos ||
         name.find("bbox_embed.") != std::string_view::npos || name.ends_with("points_scale") ||
         name.find("lqe_layers.") != std::string_view::npos ||
         name.find("denoising_class_embed.") != std::string_view::npos;
}

// Reads what D-FINE has beside RT-DETR.
networks::FineBoxes ReadFine(const PictureFolder& from, const Config& backbone) {
  const Config& json = from.json();
  networks::FineBoxes fine;
  fine.backbone = ReadHgNet(backbone);
  fine.bins = json.Int("max_num_bins");
  fine.scale = json.Number("reg_scale");
  fine.reach = json.Number("up");
  const double blocks = 3 * json.Number("depth_mult");
  if (!(blocks >= 0.5 && blocks <= networks::kMaxLayers))
    json.Refuse("depth_mult", "a small positive number");
  fine.blocks = static_cast<int64_t>(std::nearbyint(blocks));
  fine.likeliest = json.Int("top_prob_values");
  fine.quality_width = json.Int("lqe_hidden_dim");
  fine.quality_layers = json.Int("lqe_layers");
  const std::vector<int64_t> widths = json.Ints("decoder_in_channels");
  fine.projects_maps = widths.empty() || widths.back() != json.Int("d_model");
  const int64_t last = json.Int("decoder_layers") - 1, read = json.Int("eval_idx");
  if (read != -1 && read != last) json.Refuse("eval_idx", fmt::format("-1 or {}", last));
  return fine;
}

Program ImportRtDetr(const PictureFolder& from) {
  const Config& json = from.json();
  const bool second = from.folder().model_type() == "rt_detr_v2";
  if (!from.HasHead(kObjects)) json.Refuse("architectures", fmt::format("...{}", kObjects));
  const bool fine = from.folder().model_type() == "d_fine";
  Config inner = Config::Parse("{}", json.file());
  if (json.kind("backbone_config") == Config::Kind::kObject) inner = json.Object("backbone_config");
  const std::string backbone = fine ? "hgnet_v2" : "rt_detr_resnet";
  if (inner.Text("model_type", backbone) != backbone) inner.Refuse("model_type", backbone);
  // These fail in transformers, too.
  if (json.Bool("learn_initial_query")) json.Refuse("learn_initial_query", "false");
  if (json.has("eval_size")) json.Refuse("eval_size", "null");
  if (json.Text("decoder_method") != "default") json.Refuse("decoder_method", "default");
  networks::RtDetrConfig config;
  if (fine) {
    config.fine = ReadFine(from, inner);
  } else {
    config.backbone = ReadResNet(
        inner.WithDefaults(R"({"model_type": "rt_detr_resnet"})").WithDefaults(kResNetDefaults));
  }
  (fine ? config.fine->backbone.picture : config.backbone.picture) = from.Picture();
  config.levels = static_cast<int64_t>(json.Ints("encoder_in_channels").size());
  if (json.Int("num_feature_levels") != config.levels)
    json.Refuse("num_feature_levels", std::to_string(config.levels));
  config.encoder_width = json.Int("encoder_hidden_dim");
  config.width = json.Int("d_model");
  config.queries = json.Int("num_queries");
  config.points =
      json.kind("decoder_n_points") == Config::Kind::kList
          ? json.Ints("decoder_n_points")
          : std::vector<int64_t>(static_cast<size_t>(config.levels), json.Int("decoder_n_points"));
  config.encoded_levels = json.Ints("encode_proj_layers");
  config.encoder_layers = json.Int("encoder_layers");
  config.decoder_layers = json.Int("decoder_layers");
  config.encoder_heads = json.Int("encoder_attention_heads");
  config.decoder_heads = json.Int("decoder_attention_heads");
  config.encoder_feed_forward = json.Int("encoder_ffn_dim");
  config.decoder_feed_forward = json.Int("decoder_ffn_dim");
  config.temperature = json.Number("positional_encoding_temperature");
  // Version 5 has its own order of positions (modeling_rt_detr.py).
  config.positions_by_rows = json.Text("transformers_version", "").starts_with("5.");
  config.expansion = json.Number("hidden_expansion");
  config.pre_norms = json.Bool("normalize_before");
  config.encoder_activation = from.Activation("encoder_activation_function");
  config.activation = from.Activation("activation_function");
  config.decoder_activation = from.Activation("decoder_activation_function");
  config.epsilon = json.Number("layer_norm_eps");
  config.batch_epsilon = json.Number("batch_norm_eps");
  config.labels = from.Labels();
  if (second || fine) config.offset_scale = json.Number("decoder_offset_scale");
  TensorNameList names = RtDetrNames();
  constexpr std::string_view kModules[] = {"backbone.model."};
  if (fine) AddBackbone(names, HgNetNames(), kModules);
  return BuiltFrom(from, {"model.", ""}, names.rows(), config, networks::BuildRtDetr,
                   IsRtDetrLeftOver);
}

constexpr std::string_view kRtDetrDefaults =
    R"({"max_num_bins": 32, "reg_scale": 4.0, "up": 0.5, "depth_mult": 1.0, "top_prob_values": 4,
        "lqe_hidden_dim": 64, "lqe_layers": 2, "decoder_in_channels": [256, 256, 256],
        "eval_idx": -1, "image_size": 640, "layer_norm_eps": 1e-5, "batch_norm_eps": 1e-5,
        "encoder_hidden_dim": 256, "encoder_in_channels": [512, 1024, 2048], "encoder_layers": 1,
        "encoder_ffn_dim": 1024, "encoder_attention_heads": 8, "encode_proj_layers": [2],
        "positional_encoding_temperature": 10000, "encoder_activation_function": "gelu",
        "activation_function": "silu", "normalize_before": false, "hidden_expansion": 1.0,
        "d_model": 256, "num_queries": 300, "decoder_ffn_dim": 1024, "num_feature_levels": 3,
        "decoder_n_points": 4, "decoder_layers": 6, "decoder_attention_heads": 8,
        "decoder_activation_function": "relu", "learn_initial_query": false,
        "decoder_offset_scale": 0.5, "decoder_method": "default"})";
const PictureNetRow kDetectorRows[] = {
    {"d_fine", kRtDetrDefaults, ImportRtDetr},
    {"detr",
     R"({"image_size": [800, 1066], "num_queries": 100, "encoder_layers": 6,
         "encoder_ffn_dim": 2048, "encoder_attention_heads": 8, "decoder_layers": 6,
         "decoder_ffn_dim": 2048, "decoder_attention_heads": 8, "activation_function": "relu",
         "d_model": 256, "position_embedding_type": "sine"})",
     ImportDetr},
    {"rt_detr", kRtDetrDefaults, ImportRtDetr},
    {"rt_detr_v2", kRtDetrDefaults, ImportRtDetr},
};

}  // namespace

std::span<const PictureNetRow> DetectorRows() { return kDetectorRows; }

}  // namespace mlc::safetensors
