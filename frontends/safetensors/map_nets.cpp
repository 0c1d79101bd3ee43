#include <algorithm>
#include <span>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/picture_nets.h"
#include "lib/networks/inverted_residual_network.h"
#include "lib/networks/levit.h"
#include "lib/networks/mobilevit.h"
#include "lib/networks/poolformer.h"
#include "lib/networks/segformer.h"
#include "lib/networks/swiftformer.h"
#include "lib/networks/window_transformer.h"

namespace mlc::safetensors {

namespace {

constexpr std::string_view kClasses = "ForImageClassification",
                           kSegments = "ForSemanticSegmentation";

constexpr TensorName kSwinNames[] = {
    {"patches.norm", "embeddings.norm"},
    {"patches", "embeddings.patch_embeddings.projection"},
    {"stage.{}.block.{}.norm", "encoder.layers.{}.blocks.{}.layernorm_before"},
    {"stage.{}.block.{}.attention.output", "encoder.layers.{}.blocks.{}.attention.output.dense"},
    {"stage.{}.block.{}.attention.biases",
     "encoder.layers.{}.blocks.{}.attention.self.relative_position_bias_table"},
    {"stage.{}.block.{}.attention.scale", "encoder.layers.{}.blocks.{}.attention.self.logit_scale"},
    {"stage.{}.block.{}.attention.distance.0",
     "encoder.layers.{}.blocks.{}.attention.self.continuous_position_bias_mlp.0"},
    {"stage.{}.block.{}.attention.distance.1",
     "encoder.layers.{}.blocks.{}.attention.self.continuous_position_bias_mlp.2"},
    {"stage.{}.block.{}.attention", "encoder.layers.{}.blocks.{}.attention.self"},
    {"stage.{}.block.{}.second_norm", "encoder.layers.{}.blocks.{}.layernorm_after"},
    {"stage.{}.block.{}.up", "encoder.layers.{}.blocks.{}.intermediate.dense"},
    {"stage.{}.block.{}.down", "encoder.layers.{}.blocks.{}.output.dense"},
    {"stage.{}.merge.norm", "encoder.layers.{}.downsample.norm"},
    {"stage.{}.merge", "encoder.layers.{}.downsample.reduction"},
    {"norm", "layernorm"},
};
constexpr TensorName kSegformerNames[] = {
    {"stage.{}.patches.norm", "encoder.patch_embeddings.{}.layer_norm"},
    {"stage.{}.patches", "encoder.patch_embeddings.{}.proj"},
    {"stage.{}.norm", "encoder.layer_norm.{}"},
    {"stage.{}.block.{}.norm", "encoder.block.{}.{}.layer_norm_1"},
    {"stage.{}.block.{}.attention.output", "encoder.block.{}.{}.attention.output.dense"},
    {"stage.{}.block.{}.attention.reduction", "encoder.block.{}.{}.attention.self.sr"},
    {"stage.{}.block.{}.attention.norm", "encoder.block.{}.{}.attention.self.layer_norm"},
    {"stage.{}.block.{}.attention", "encoder.block.{}.{}.attention.self"},
    {"stage.{}.block.{}.second_norm", "encoder.block.{}.{}.layer_norm_2"},
    {"stage.{}.block.{}.up", "encoder.block.{}.{}.mlp.dense1"},
    {"stage.{}.block.{}.depthwise", "encoder.block.{}.{}.mlp.dwconv.dwconv"},
    {"stage.{}.block.{}.down", "encoder.block.{}.{}.mlp.dense2"},
    {"decoder.fuse.conv", "decode_head.linear_fuse"},
    {"decoder.fuse.norm", "decode_head.batch_norm"},
    {"decoder.{}", "decode_head.linear_c.{}.proj"},
    {"classifier", "classifier"},
    {"classifier", "decode_head.classifier"},
};

constexpr TensorName kPoolFormerNames[] = {
    {"stage.{}.patches", "encoder.patch_embeddings.{}.projection"},
    {"stage.{}.block.{}.norm", "encoder.block.{}.{}.before_norm"},
    {"stage.{}.block.{}.scale", "encoder.block.{}.{}.layer_scale_1"},
    {"stage.{}.block.{}.second_norm", "encoder.block.{}.{}.after_norm"},
    {"stage.{}.block.{}.up", "encoder.block.{}.{}.output.conv1"},
    {"stage.{}.block.{}.down", "encoder.block.{}.{}.output.conv2"},
    {"stage.{}.block.{}.second_scale", "encoder.block.{}.{}.layer_scale_2"},
};
// The names of PVT beside those of SegFormer.
constexpr TensorName kPvtNames[] = {
    {"stage.{}.patches.norm", "encoder.patch_embeddings.{}.layer_norm"},
    {"stage.{}.patches", "encoder.patch_embeddings.{}.projection"},
    {"stage.{}.positions", "encoder.patch_embeddings.{}.position_embeddings"},
    {"stage.{}.class_token", "encoder.patch_embeddings.{}.cls_token"},
    {"stage.{}.block.{}.attention.reduction",
     "encoder.block.{}.{}.attention.self.sequence_reduction"},
    {"norm", "encoder.layer_norm"},
};
constexpr TensorName kPvt2Names[] = {
    {"stage.{}.patches.norm", "encoder.layers.{}.patch_embedding.layer_norm"},
    {"stage.{}.patches", "encoder.layers.{}.patch_embedding.proj"},
    {"stage.{}.norm", "encoder.layers.{}.layer_norm"},
    {"stage.{}.block.{}.norm", "encoder.layers.{}.blocks.{}.layer_norm_1"},
    {"stage.{}.block.{}.attention.output", "encoder.layers.{}.blocks.{}.attention.proj"},
    {"stage.{}.block.{}.attention.reduction",
     "encoder.layers.{}.blocks.{}.attention.spatial_reduction"},
    {"stage.{}.block.{}.attention.norm", "encoder.layers.{}.blocks.{}.attention.layer_norm"},
    {"stage.{}.block.{}.attention", "encoder.layers.{}.blocks.{}.attention"},
    {"stage.{}.block.{}.second_norm", "encoder.layers.{}.blocks.{}.layer_norm_2"},
    {"stage.{}.block.{}.up", "encoder.layers.{}.blocks.{}.mlp.dense1"},
    {"stage.{}.block.{}.depthwise", "encoder.layers.{}.blocks.{}.mlp.dwconv.dwconv"},
    {"stage.{}.block.{}.down", "encoder.layers.{}.blocks.{}.mlp.dense2"},
    {"classifier", "classifier"},
};

constexpr std::string_view kSwinMembers =
    R"({"image_size": 224, "patch_size": 4, "embed_dim": 96, "depths": [2, 2, 6, 2],
        "num_heads": [3, 6, 12, 24], "window_size": 7, "mlp_ratio": 4.0, "hidden_act": "gelu",
        "use_absolute_embeddings": false, "layer_norm_eps": 1e-5})";

// Returns whether the tensor is made again from sizes, or only training needs it.
bool IsSwinLeftOver(std::string_view name) {
  return name.ends_with("relative_position_index") || name.ends_with("relative_coords_table") ||
         name.ends_with("mask_token") || name.ends_with("attn_mask");
}

Program ImportSwin(const PictureFolder& from) {
  const Config& json = from.json();
  const std::string type = from.folder().model_type();
  networks::WindowTransformerConfig config = ReadSwin(json, type);
  config.picture = from.Picture();
  if (config.second) config.trained = from.OwnSize();
  config.labels = from.HasHead(kClasses) ? from.Labels() : 0;
  return BuiltFrom(from, {type + ".", ""}, {std::begin(kSwinNames), std::end(kSwinNames)}, config,
                   networks::BuildWindowTransformer, IsSwinLeftOver);
}

// SegFormer and the Pyramid Vision Transformers.
Program ImportSegformer(const PictureFolder& from) {
  using Head = networks::SegformerConfig::Head;
  const Config& json = from.json();
  const std::string type = from.folder().model_type();
  const bool first = type == "pvt", segments = type == "segformer";
  networks::SegformerConfig config{
      .depths = json.Ints("depths"),
      .widths = json.Ints("hidden_sizes"),
      .heads = json.Ints("num_attention_heads"),
      .patches = json.Ints("patch_sizes"),
      .strides = json.Ints("strides"),
      .reductions = json.Ints(first ? "sequence_reduction_ratios" : "sr_ratios"),
      .feed_forward = json.Numbers("mlp_ratios"),
      .activation = from.Activation(),
      .first = first,
      .picture = from.Picture()};
  // SegFormer's norms do not read its key layer_norm_eps (modeling_segformer.py).
  if (segments)
    config.decoder = json.Int("decoder_hidden_size");
  else
    config.epsilon = json.Number("layer_norm_eps");
  if (!json.Bool("reshape_last_stage", true)) json.Refuse("reshape_last_stage", "true");
  if (json.Bool("linear_attention", false)) json.Refuse("linear_attention", "false");
  switch (segments ? from.HeadOf({kClasses, kSegments}) : from.HeadOf({kClasses})) {
    case 0:
      config.head = Head::kClasses;
      break;
    case 1:
      config.head = Head::kSegments;
      break;
    default:
      break;
  }
  config.labels = from.Labels();
  // Lists may be longer than the number of stages.
  const int64_t stages = json.Int("num_encoder_blocks");
  if (stages < 1 || stages > static_cast<int64_t>(config.depths.size()))
    json.Refuse("num_encoder_blocks", "1 to the number of depths");
  auto shorten = [&](auto& list) {
    while (static_cast<int64_t>(list.size()) > stages) list.pop_back();
  };
  for (auto* list : {&config.depths, &config.widths, &config.heads, &config.patches,
                     &config.strides, &config.reductions})
    shorten(*list);
  shorten(config.feed_forward);
  std::vector<TensorName> names(std::begin(kSegformerNames), std::end(kSegformerNames));
  if (first) names.insert(names.begin(), std::begin(kPvtNames), std::end(kPvtNames));
  if (type == "pvt_v2") names.assign(std::begin(kPvt2Names), std::end(kPvt2Names));
  return BuiltFrom(from, {type + ".", ""}, std::move(names), config, networks::BuildSegformer);
}

// The names of timm in the order of transformers, whose stages have attention and feed-forward layers in
// turn, and then what makes the map smaller.
Program ImportLevit(const PictureFolder& from) {
  const Config& json = from.json();
  networks::LevitConfig config{.heads = json.Ints("num_attention_heads"),
                               .keys = json.Ints("key_dim"),
                               .picture = from.Picture(),
                               .tokens = true,
                               .both_logits = true};
  const std::vector<int64_t> depths = json.Ints("depths");
  networks::CheckPositive("depths", depths);
  constexpr size_t kMostStages = 3;
  if (depths.empty() || depths.size() > kMostStages || config.keys.size() != depths.size())
    json.Refuse("depths", "at most three stages, each with a number of key_dim");
  for (int64_t ratio : json.Ints("mlp_ratio"))
    if (ratio < 1) json.Refuse("mlp_ratio", "numbers of 1 or more");
  for (auto [key, usual] : {std::pair("stride", 2), {"padding", 1}, {"kernel_size", 3}})
    if (json.Int(key) != usual) json.Refuse(key, std::to_string(usual));
  config.key = config.keys[0];
  config.labels =
      from.HeadOf({kClasses, "ForImageClassificationWithTeacher"}) >= 0 ? from.Labels() : 0;
  TensorNameList names;
  auto add = [&](const std::string& ours, const std::string& theirs) {
    names.Add(ours + ".linear", theirs + ".linear");
    names.Add(ours + ".bn", theirs + ".batch_norm");
  };
  names.Add("stem.conv{}.linear", "patch_embeddings.embedding_layer_{}.convolution");
  names.Add("stem.conv{}.bn", "patch_embeddings.embedding_layer_{}.batch_norm");
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    const int64_t blocks = std::min<int64_t>(depths[stage], networks::kMaxLayers);
    auto layer = [&](int64_t number) {
      return fmt::format("encoder.stages.{}.layers.{}.", stage, number);
    };
    for (int64_t i = 0; i < blocks; ++i) {
      const std::string own = fmt::format("stages.{}.blocks.{}.", stage, i),
                        attention = layer(2 * i) + "module.", fed = layer(2 * i + 1) + "module.";
      add(own + "attn.qkv", attention + "queries_keys_values");
      add(own + "attn.proj.ln", attention + "projection");
      names.Add(own + "attn.attention_biases", attention + "attention_biases");
      add(own + "mlp.ln1", fed + "linear_up");
      add(own + "mlp.ln2", fed + "linear_down");
    }
    const std::string own = fmt::format("stages.{}.downsample.", stage + 1),
                      down = layer(2 * blocks), fed = layer(2 * blocks + 1) + "module.";
    add(own + "attn_downsample.q.ln", down + "queries");
    add(own + "attn_downsample.kv", down + "keys_values");
    add(own + "attn_downsample.proj.ln", down + "projection");
    names.Add(own + "attn_downsample.attention_biases", down + "attention_biases");
    add(own + "mlp.ln1", fed + "linear_up");
    add(own + "mlp.ln2", fed + "linear_down");
  }
  add("head", "classifier");
  add("head_dist", "classifier_distill");
  return BuiltFrom(from, {"levit.", ""}, names.rows(), config, networks::BuildLevit);
}

Program ImportSwiftFormer(const PictureFolder& from) {
  const Config& json = from.json();
  networks::SwiftFormerConfig config{.depths = json.Ints("depths"),
                                     .widths = json.Ints("embed_dims"),
                                     .shrinks = json.Bools("downsamples"),
                                     .feed_forward = json.Number("mlp_ratio"),
                                     .scales = json.Bool("use_layer_scale"),
                                     .kernel = json.Int("down_patch_size"),
                                     .stride = json.Int("down_stride"),
                                     .padding = json.Int("down_pad"),
                                     .activation = from.Activation(),
                                     .epsilon = json.Number("batch_norm_eps"),
                                     .picture = from.Picture()};
  config.labels = from.HasHead(kClasses) ? from.Labels() : 0;
  const size_t stages = std::min<size_t>(config.depths.size(), networks::kMaxLayers);
  if (config.widths.size() != config.depths.size() || config.shrinks.size() + 1 < stages)
    json.Refuse("embed_dims", "lists of the same length for all stages");
  config.shrinks.resize(stages > 0 ? stages - 1 : 0);
  TensorNameList names;
  for (auto [ours, theirs] : {std::pair("0.conv", 0), {"0.norm", 1}, {"1.conv", 3}, {"1.norm", 4}})
    names.Add(fmt::format("stem.{}", ours), fmt::format("patch_embed.patch_embedding.{}", theirs));
  // Stages and what makes maps smaller between them are numbered through.
  int64_t number = 0;
  for (size_t stage = 0; stage < stages; ++stage) {
    const std::string block = fmt::format("stage.{}.block.{{}}.", stage),
                      theirs = fmt::format("encoder.network.{}.blocks.{{}}.", number++);
    for (auto [part, module] : {std::pair("local.", "local_representation."), {"", ""}})
      for (auto [own, name] : {std::pair("depthwise", "depth_wise_conv"),
                               {"norm", "norm"},
                               {"up", "point_wise_conv1"},
                               {"down", "point_wise_conv2"},
                               {"scale", "layer_scale"}})
        names.Add(block + part + own, theirs + module + name);
    for (auto [own, name] : {std::pair("attention.query", "attn.to_query"),
                             {"attention.key", "attn.to_key"},
                             {"attention.projection", "attn.proj"},
                             {"attention.output", "attn.final"},
                             {"second_norm", "linear.norm1"},
                             {"up", "linear.fc1"},
                             {"down", "linear.fc2"},
                             {"first_scale", "layer_scale_1"},
                             {"second_scale", "layer_scale_2"}})
      names.Add(block + own, theirs + name);
    if (stage + 1 == stages) continue;
    config.shrinks[stage] =
        config.shrinks[stage] || config.widths[stage] != config.widths[stage + 1];
    if (!config.shrinks[stage]) continue;
    for (auto [own, name] : {std::pair("conv", "proj"), {"norm", "norm"}})
      names.Add(fmt::format("shrink.{}.{}", stage, own),
                fmt::format("encoder.network.{}.{}", number, name));
    ++number;
  }
  names.Add("classifier", "head");
  names.Add("teacher", "dist_head");
  return BuiltFrom(from, {"swiftformer.", ""}, names.rows(), config, networks::BuildSwiftFormer,
                   [](std::string_view name) { return name.ends_with(".attn.w_g"); });
}

Program ImportPoolFormer(const PictureFolder& from) {
  const Config& json = from.json();
  networks::PoolFormerConfig config{.depths = json.Ints("depths"),
                                    .widths = json.Ints("hidden_sizes"),
                                    .patches = json.Ints("patch_sizes"),
                                    .strides = json.Ints("strides"),
                                    .padding = json.Ints("padding"),
                                    .pool = json.Int("pool_size"),
                                    .feed_forward = json.Number("mlp_ratio"),
                                    .scales = json.Bool("use_layer_scale"),
                                    .activation = from.Activation(),
                                    .picture = from.Picture()};
  const auto stages = static_cast<int64_t>(config.depths.size());
  if (json.Int("num_encoder_blocks") != stages)
    json.Refuse("num_encoder_blocks", std::to_string(stages));
  config.labels = from.HasHead(kClasses) ? from.Labels() : 0;
  return BuiltFrom(from, {"poolformer.", ""},
                   {std::begin(kPoolFormerNames), std::end(kPoolFormerNames)}, config,
                   networks::BuildPoolFormer);
}

TensorNameList MobileVitNames() {
  TensorNameList names;
  auto add = [&](const std::string& ours, const std::string& theirs) {
    names.Add(ours + ".conv", theirs + ".convolution");
    names.Add(ours + ".norm", theirs + ".normalization");
  };
  add("stem", "conv_stem");
  add("head", "conv_1x1_exp");
  for (auto [ours, theirs] :
       {std::pair("expand", "expand_1x1"), {"depthwise", "conv_3x3"}, {"project", "reduce_1x1"}}) {
    for (int stage : {0, 1})
      add(fmt::format("stage.{}.block.{{}}.{}", stage, ours),
          fmt::format("encoder.layer.{}.layer.{{}}.{}", stage, theirs));
    for (int stage : {2, 3, 4})
      add(fmt::format("stage.{}.block.0.{}", stage, ours),
          fmt::format("encoder.layer.{}.downsampling_layer.{}", stage, theirs));
  }
  for (auto [ours, theirs] : {std::pair("local", "conv_kxk"),
                              {"embed", "conv_1x1"},
                              {"unembed", "conv_projection"},
                              {"fusion", "fusion"}})
    add(fmt::format("stage.{{}}.{}", ours), fmt::format("encoder.layer.{{}}.{}", theirs));
  const std::string layer = "stage.{}.layer.{}.", theirs = "encoder.layer.{}.transformer.layer.{}.";
  names.Add(layer + "norm", theirs + "layernorm_before");
  names.Add(layer + "second_norm", theirs + "layernorm_after");
  names.Add(layer + "attention.output", theirs + "attention.output.dense");
  names.Add(layer + "attention", theirs + "attention.attention");
  names.Add(layer + "up", theirs + "intermediate.dense");
  names.Add(layer + "down", theirs + "output.dense");
  names.Add("stage.{}.norm", "encoder.layer.{}.layernorm");
  add("pyramid.pool", "segmentation_head.aspp.convs.4.conv_1x1");
  add("pyramid.project", "segmentation_head.aspp.project");
  add("pyramid.{}", "segmentation_head.aspp.convs.{}");
  names.Add("classifier.conv", "segmentation_head.classifier.convolution");
  return names;
}

Program ImportMobileVit(const PictureFolder& from) {
  using Head = networks::MobileVitConfig::Head;
  const Config& json = from.json();
  networks::MobileVitConfig config{.widths = json.Ints("neck_hidden_sizes"),
                                   .token_widths = json.Ints("hidden_sizes"),
                                   .heads = json.Int("num_attention_heads"),
                                   .patch = json.Int("patch_size"),
                                   .kernel = json.Int("conv_kernel_size"),
                                   .expansion = json.Number("expand_ratio"),
                                   .feed_forward = json.Number("mlp_ratio"),
                                   .output_stride = json.Int("output_stride"),
                                   .epsilon = json.Number("layer_norm_eps"),
                                   .activation = from.Activation(),
                                   .rates = json.Ints("atrous_rates"),
                                   .pyramid = json.Int("aspp_out_channels"),
                                   .picture = from.Picture(),
                                   .labels = from.Labels()};
  constexpr size_t kRates = 3;
  if (config.rates.size() != kRates) json.Refuse("atrous_rates", "three numbers");
  const int head = from.HeadOf({kClasses, kSegments});
  if (head >= 0) config.head = head == 0 ? Head::kClasses : Head::kSegments;
  const TensorNameList names = MobileVitNames();
  return BuiltFrom(from, {"mobilevit.", ""}, names.rows(), config, networks::BuildMobileVit);
}

// MobileViT's names, but for those of its transformers.
TensorNameList MobileVit2Names() {
  TensorNameList names;
  const std::string layer = "stage.{}.layer.{}.", theirs = "encoder.layer.{}.transformer.layer.{}.";
  names.Add("stage.{}.embed.conv", "encoder.layer.{}.conv_1x1.convolution");
  for (auto [ours, part] : {std::pair("attention.joined", "attention.qkv_proj"),
                            {"attention.output", "attention.out_proj"},
                            {"up", "ffn.conv1"},
                            {"down", "ffn.conv2"}})
    names.Add(fmt::format("{}{}.conv", layer, ours), fmt::format("{}{}.convolution", theirs, part));
  const TensorNameList others = MobileVitNames();
  for (const TensorName& row : others.rows())
    names.Add(std::string(row.ours), std::string(row.theirs));
  return names;
}

Program ImportMobileVit2(const PictureFolder& from) {
  using Head = networks::MobileVitConfig::Head;
  const Config& json = from.json();
  const double multiplier = json.Number("width_multiplier");
  if (!(multiplier > 0 && multiplier <= 64))
    json.Refuse("width_multiplier", "more than 0, at most 64");
  networks::MobileVitConfig config{.separable = true,
                                   .layers = json.Ints("n_attn_blocks"),
                                   .patch = json.Int("patch_size"),
                                   .kernel = json.Int("conv_kernel_size"),
                                   .expansion = json.Number("expand_ratio"),
                                   .feed_forward = json.Number("ffn_multiplier"),
                                   .output_stride = json.Int("output_stride"),
                                   .epsilon = json.Number("layer_norm_eps"),
                                   .activation = from.Activation(),
                                   .rates = json.Ints("atrous_rates"),
                                   .pyramid = json.Int("aspp_out_channels"),
                                   .picture = from.Picture(),
                                   .labels = from.Labels()};
  constexpr int64_t kStem = 32, kFirst = 64, kWidths[] = {128, 256, 384, 512};
  auto scaled = [&](int64_t width) { return static_cast<double>(width) * multiplier; };
  config.widths = {networks::MakeDivisible(std::clamp(scaled(kStem), 16.0, 64.0), 8, 16),
                   networks::MakeDivisible(scaled(kFirst), 16)};
  for (int64_t width : kWidths) config.widths.push_back(networks::MakeDivisible(scaled(width)));
  for (int64_t width : json.Ints("base_attn_unit_dims"))
    config.token_widths.push_back(networks::MakeDivisible(scaled(width)));
  constexpr size_t kRates = 3;
  if (config.rates.size() != kRates) json.Refuse("atrous_rates", "three numbers");
  const int head = from.HeadOf({kClasses, kSegments});
  if (head >= 0) config.head = head == 0 ? Head::kClasses : Head::kSegments;
  const TensorNameList names = MobileVit2Names();
  return BuiltFrom(from, {"mobilevitv2.", ""}, names.rows(), config, networks::BuildMobileVit);
}

constexpr PictureNetRow kMapNetRows[] = {
    {"levit",
     R"({"image_size": 224, "kernel_size": 3, "stride": 2, "padding": 1,
         "hidden_sizes": [128, 256, 384], "num_attention_heads": [4, 8, 12], "depths": [4, 4, 4],
         "key_dim": [16, 16, 16], "mlp_ratio": [2, 2, 2], "attention_ratio": [2, 2, 2]})",
     ImportLevit},
    {"mobilevit",
     R"({"image_size": 256, "patch_size": 2, "hidden_sizes": [144, 192, 240],
         "neck_hidden_sizes": [16, 32, 64, 96, 128, 160, 640], "num_attention_heads": 4,
         "mlp_ratio": 2.0, "expand_ratio": 4.0, "hidden_act": "silu", "conv_kernel_size": 3,
         "output_stride": 32, "layer_norm_eps": 1e-5, "aspp_out_channels": 256,
         "atrous_rates": [6, 12, 18]})",
     ImportMobileVit},
    {"mobilevitv2",
     R"({"image_size": 256, "patch_size": 2, "expand_ratio": 2.0, "hidden_act": "swish",
         "conv_kernel_size": 3, "output_stride": 32, "layer_norm_eps": 1e-5,
         "aspp_out_channels": 512, "atrous_rates": [6, 12, 18], "width_multiplier": 1.0,
         "ffn_multiplier": 2, "n_attn_blocks": [2, 4, 3],
         "base_attn_unit_dims": [128, 192, 256]})",
     ImportMobileVit2},
    {"poolformer",
     R"({"image_size": 224, "depths": [2, 2, 6, 2], "hidden_sizes": [64, 128, 320, 512],
         "patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2], "padding": [2, 1, 1, 1],
         "num_encoder_blocks": 4, "pool_size": 3, "mlp_ratio": 4.0, "hidden_act": "gelu",
         "use_layer_scale": true})",
     ImportPoolFormer},
    {"pvt",
     R"({"image_size": 224, "num_encoder_blocks": 4, "depths": [2, 2, 2, 2],
         "sequence_reduction_ratios": [8, 4, 2, 1], "hidden_sizes": [64, 128, 320, 512],
         "patch_sizes": [4, 2, 2, 2], "strides": [4, 2, 2, 2],
         "num_attention_heads": [1, 2, 5, 8], "mlp_ratios": [8, 8, 4, 4], "hidden_act": "gelu",
         "layer_norm_eps": 1e-6})",
     ImportSegformer},
    {"pvt_v2",
     R"({"image_size": 224, "num_encoder_blocks": 4, "depths": [2, 2, 2, 2],
         "sr_ratios": [8, 4, 2, 1], "hidden_sizes": [32, 64, 160, 256],
         "patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2],
         "num_attention_heads": [1, 2, 5, 8], "mlp_ratios": [8, 8, 4, 4], "hidden_act": "gelu",
         "layer_norm_eps": 1e-6})",
     ImportSegformer},
    {"segformer",
     R"({"image_size": 512, "num_encoder_blocks": 4, "depths": [2, 2, 2, 2],
         "sr_ratios": [8, 4, 2, 1], "hidden_sizes": [32, 64, 160, 256],
         "patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2],
         "num_attention_heads": [1, 2, 5, 8], "mlp_ratios": [4, 4, 4, 4], "hidden_act": "gelu",
         "decoder_hidden_size": 256})",
     ImportSegformer},
    {"swiftformer",
     R"({"image_size": 224, "depths": [3, 3, 6, 4], "embed_dims": [48, 56, 112, 220],
         "mlp_ratio": 4, "downsamples": [true, true, true, true], "hidden_act": "gelu",
         "down_patch_size": 3, "down_stride": 2, "down_pad": 1, "use_layer_scale": true,
         "batch_norm_eps": 1e-5})",
     ImportSwiftFormer},
    {"swin", kSwinMembers, ImportSwin},
    {"swinv2",
     R"({"image_size": 224, "patch_size": 4, "embed_dim": 96, "depths": [2, 2, 6, 2],
         "num_heads": [3, 6, 12, 24], "window_size": 7, "pretrained_window_sizes": [0, 0, 0, 0],
         "mlp_ratio": 4.0, "hidden_act": "gelu", "use_absolute_embeddings": false,
         "layer_norm_eps": 1e-5})",
     ImportSwin},
};

}  // namespace

std::span<const PictureNetRow> MapNetRows() { return kMapNetRows; }

const std::string_view kSwinDefaults = kSwinMembers;
std::span<const TensorName> SwinNames() { return kSwinNames; }

networks::WindowTransformerConfig ReadSwin(const Config& json, std::string_view type) {
  // The table of transformers has one row more than there are patches, so that nothing can use it.
  if (json.Bool("use_absolute_embeddings")) json.Refuse("use_absolute_embeddings", "false");
  networks::WindowTransformerConfig config{.second = type == "swinv2",
                                           .patch = json.Int("patch_size"),
                                           .width = json.Int("embed_dim"),
                                           .depths = json.Ints("depths"),
                                           .heads = json.Ints("num_heads"),
                                           .window = json.Int("window_size"),
                                           .feed_forward = json.Number("mlp_ratio"),
                                           .activation = ActivationOf(json, "hidden_act"),
                                           .epsilon = json.Number("layer_norm_eps"),
                                           .final_norm = type != "donut-swin"};
  if (config.second) {
    config.mask_twice = true;
    config.pretrained_windows = json.Ints("pretrained_window_sizes");
  }
  return config;
}

}  // namespace mlc::safetensors
