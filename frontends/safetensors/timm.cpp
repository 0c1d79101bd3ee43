// Folders of timm (huggingface/pytorch-image-models): architectures by the names of its functions, with
// the arguments that those pass on (timm/models/*.py), which model_args of config.json may replace.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include "frontends/safetensors/picture_nets.h"
#include "lib/networks/convnext.h"
#include "lib/networks/inverted_residual_network.h"
#include "lib/networks/window_transformer.h"
#include "lib/support/edit_distance.h"

namespace mlc::safetensors {

namespace {

using networks::Activation;
using networks::InvertedBlock;
using networks::PictureWindow;

constexpr TensorName kResNetTensors[] = {
    {"stem.0.conv", "conv1"},
    {"stem.0.norm", "bn1"},
    {"stage.{}.block.{}.unit.{}.conv", "layer{+1}.{}.conv{+1}"},
    {"stage.{}.block.{}.unit.{}.norm", "layer{+1}.{}.bn{+1}"},
    {"stage.{}.block.{}.shortcut.conv", "layer{+1}.{}.downsample.0"},
    {"stage.{}.block.{}.shortcut.norm", "layer{+1}.{}.downsample.1"},
    {"stage.{}.block.{}.squeeze.reduce", "layer{+1}.{}.se.fc1"},
    {"stage.{}.block.{}.squeeze.expand", "layer{+1}.{}.se.fc2"},
    {"classifier", "fc"},
};
constexpr TensorName kDeepResNetTensors[] = {
    {"stem.0.conv", "conv1.0"},
    {"stem.0.norm", "conv1.1"},
    {"stem.1.conv", "conv1.3"},
    {"stem.1.norm", "conv1.4"},
    {"stem.2.conv", "conv1.6"},
    {"stem.2.norm", "bn1"},
    {"stage.{}.block.{}.unit.{}.conv", "layer{+1}.{}.conv{+1}"},
    {"stage.{}.block.{}.unit.{}.norm", "layer{+1}.{}.bn{+1}"},
    {"stage.{}.block.{}.shortcut.conv", "layer{+1}.{}.downsample.1"},
    {"stage.{}.block.{}.shortcut.norm", "layer{+1}.{}.downsample.2"},
    {"stage.{}.block.{}.squeeze.reduce", "layer{+1}.{}.se.fc1"},
    {"stage.{}.block.{}.squeeze.expand", "layer{+1}.{}.se.fc2"},
    {"classifier", "fc"},
};
constexpr TensorName kConvNextTensors[] = {
    {"stem.norm", "stem.1"},
    {"stem", "stem.0"},
    {"stage.{}.downsample.norm", "stages.{}.downsample.0"},
    {"stage.{}.downsample.conv", "stages.{}.downsample.1"},
    {"stage.{}.block.{}.depthwise", "stages.{}.blocks.{}.conv_dw"},
    {"stage.{}.block.{}.norm", "stages.{}.blocks.{}.norm"},
    {"stage.{}.block.{}.up", "stages.{}.blocks.{}.mlp.fc1"},
    {"stage.{}.block.{}.response", "stages.{}.blocks.{}.mlp.grn"},
    {"stage.{}.block.{}.down", "stages.{}.blocks.{}.mlp.fc2"},
    {"stage.{}.block.{}.scale", "stages.{}.blocks.{}.gamma"},
    {"norm", "head.norm"},
    {"norm", "norm_pre"},
    {"dense", "head.pre_logits.fc"},
    {"classifier", "head.fc"},
};
constexpr TensorName kOverlappingStem[] = {
    {"stem.0", "stem.0"}, {"stem.1", "stem.1"}, {"stem.norm", "stem.2"}};
constexpr TensorName kSwinTensors[] = {
    {"patches.norm", "patch_embed.norm"},
    {"patches", "patch_embed.proj"},
    {"stage.{}.block.{}.norm", "layers.{}.blocks.{}.norm1"},
    {"stage.{}.block.{}.attention.qkv", "layers.{}.blocks.{}.attn.qkv"},
    {"stage.{}.block.{}.attention.output", "layers.{}.blocks.{}.attn.proj"},
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

struct TimmRow {
  std::string_view architecture;
  std::string_view arguments;  // of the model, as a JSON object
};

// A folder of timm.
struct TimmFolder {
  const PictureFolder& from;
  std::string architecture;
  Config arguments;
  networks::PictureInput picture;
  int64_t labels = 0;
};

template <class NetConfig, class Build>
Program Built(const TimmFolder& timm, std::vector<TensorName> names, const NetConfig& config,
              Build build, bool (*is_left_over)(std::string_view) = nullptr) {
  // The wrapper of transformers puts all into one module.
  return BuiltFrom(timm.from, {"", "timm_model."}, std::move(names), config, build, is_left_over);
}

Program BuildResNet(const TimmFolder& timm) {
  const TimmResNet* row = FindTimmResNet(timm.architecture);
  networks::ResidualConfig config = TimmResNetConfig(*row);
  config.picture = timm.picture;
  config.labels = timm.labels;
  std::span<const TensorName> names = row->deep ? std::span<const TensorName>(kDeepResNetTensors)
                                                : std::span<const TensorName>(kResNetTensors);
  return Built(timm, {names.begin(), names.end()}, config, networks::BuildResidualNetwork);
}

Program BuildConvNext(const TimmFolder& timm) {
  const Config& args = timm.arguments;
  networks::ConvNextConfig config{.depths = args.Ints("depths"),
                                  .widths = args.Ints("dims"),
                                  .patch = args.Int("patch_size", 4),
                                  .epsilon = args.Number("norm_eps", 1e-6),
                                  .response_norm = args.Bool("use_grn", false),
                                  .norm_first = args.Bool("head_norm_first", false),
                                  .dense = args.Int("head_hidden_size", 0),
                                  .picture = timm.picture,
                                  .labels = timm.labels};
  config.final_epsilon = config.epsilon;
  if (args.has("act_layer")) {
    if (args.Text("act_layer") != "gelu" && args.Text("act_layer") != "gelu_tanh")
      timm.from.Refuse(args, "act_layer", "gelu or gelu_tanh");
    if (args.Text("act_layer") == "gelu_tanh") config.activation = Activation::kGeluTanh;
  }
  std::vector<TensorName> names(std::begin(kConvNextTensors), std::end(kConvNextTensors));
  if (const std::string stem = args.Text("stem_type", "patch"); stem != "patch") {
    if (stem != "overlap" && stem != "overlap_tiered")
      timm.from.Refuse(args, "stem_type", "patch, overlap or overlap_tiered");
    networks::CheckPositive("dims", config.widths);
    config.overlap_width = stem == "overlap"
                               ? config.widths[0]
                               : networks::MakeDivisible(static_cast<double>(config.widths[0] / 2));
    names.insert(names.begin(), std::begin(kOverlappingStem), std::end(kOverlappingStem));
  }
  return Built(timm, std::move(names), config, networks::BuildConvNext);
}

bool IsSwinBuffer(std::string_view name) {
  return name.ends_with("relative_position_index") || name.ends_with("attn_mask");
}

Program BuildSwin(const TimmFolder& timm) {
  const Config& args = timm.arguments;
  networks::WindowTransformerConfig config{.patch = args.Int("patch_size", 4),
                                           .width = args.Int("embed_dim"),
                                           .depths = args.Ints("depths"),
                                           .heads = args.Ints("num_heads"),
                                           .window = args.Int("window_size"),
                                           .trained = timm.picture.size,
                                           .feed_forward = args.Number("mlp_ratio", 4),
                                           .picture = timm.picture,
                                           .labels = timm.labels};
  if (args.has("img_size")) {
    if (args.kind("img_size") == Config::Kind::kList) {
      const std::vector<int64_t> sides = args.Ints("img_size");
      if (sides.size() != 2) timm.from.Refuse(args, "img_size", "height and width");
      config.trained.height = sides[0], config.trained.width = sides[1];
    } else {
      config.trained.height = config.trained.width = args.Int("img_size");
    }
  }
  std::vector<TensorName> names(std::begin(kSwinTensors), std::end(kSwinTensors));
  const bool old = timm.from.folder().has("layers.0.downsample.reduction.weight");
  const auto merging = old ? std::span<const TensorName>(kOldSwinMerging)
                           : std::span<const TensorName>(kSwinMerging);
  names.insert(names.end(), merging.begin(), merging.end());
  return Built(timm, std::move(names), config, networks::BuildWindowTransformer, IsSwinBuffer);
}

// One block of a definition, "ir_r2_k3_s2_e6_c24_se0.25" (timm/models/_efficientnet_builder.py,
// _decode_block_str): its kind, and by letter how often it is repeated, the kernel, the stride, the
// ratio of expansion, the channels, and squeeze and excitation.
struct BlockText {
  std::string kind;
  int64_t repeats = 1, kernel = 1, stride = 1, channels = 0;
  double expansion = 1;
  bool squeeze = false, relu = false, skip = true;
};

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

BlockText ReadBlock(std::string_view text) {
  const std::vector<std::string> parts = Split(text, '_');
  BlockText block{.kind = parts[0]};
  // Plain convolutions, and the blocks of MobileNetV1, have no residual unless they say so.
  block.skip = block.kind != "cn" && block.kind != "dsa";
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part == "skip") {
      block.skip = true;
    } else if (part == "noskip") {
      block.skip = false;
    } else if (part == "nre") {
      block.relu = true;
    } else if (part.starts_with("se")) {
      block.squeeze = true;
    } else {
      double value = 0;
      std::from_chars(part.data() + 1, part.data() + part.size(), value);
      const auto whole = static_cast<int64_t>(value);
      if (part[0] == 'r') block.repeats = whole;
      if (part[0] == 'k') block.kernel = whole;
      if (part[0] == 's') block.stride = whole;
      if (part[0] == 'c') block.channels = whole;
      if (part[0] == 'e') block.expansion = value;
    }
  }
  return block;
}

// The definitions of stages, separated by "|".
constexpr std::string_view kEfficientNet =
    "ds_r1_k3_s1_e1_c16_se0.25|ir_r2_k3_s2_e6_c24_se0.25|ir_r2_k5_s2_e6_c40_se0.25|"
    "ir_r3_k3_s2_e6_c80_se0.25|ir_r3_k5_s1_e6_c112_se0.25|ir_r4_k5_s2_e6_c192_se0.25|"
    "ir_r1_k3_s1_e6_c320_se0.25";
constexpr std::string_view kEfficientNetLite =
    "ds_r1_k3_s1_e1_c16|ir_r2_k3_s2_e6_c24|ir_r2_k5_s2_e6_c40|ir_r3_k3_s2_e6_c80|"
    "ir_r3_k5_s1_e6_c112|ir_r4_k5_s2_e6_c192|ir_r1_k3_s1_e6_c320";
constexpr std::string_view kEfficientNetV2Base =
    "cn_r1_k3_s1_e1_c16_skip|er_r2_k3_s2_e4_c32|er_r2_k3_s2_e4_c48|ir_r3_k3_s2_e4_c96_se0.25|"
    "ir_r5_k3_s1_e6_c112_se0.25|ir_r8_k3_s2_e6_c192_se0.25";
constexpr std::string_view kEfficientNetV2S =
    "cn_r2_k3_s1_e1_c24_skip|er_r4_k3_s2_e4_c48|er_r4_k3_s2_e4_c64|ir_r6_k3_s2_e4_c128_se0.25|"
    "ir_r9_k3_s1_e6_c160_se0.25|ir_r15_k3_s2_e6_c256_se0.25";
constexpr std::string_view kEfficientNetV2Rw =
    "er_r2_k3_s1_e1_c24|er_r4_k3_s2_e4_c48|er_r4_k3_s2_e4_c64|ir_r6_k3_s2_e4_c128_se0.25|"
    "ir_r9_k3_s1_e6_c160_se0.25|ir_r15_k3_s2_e6_c272_se0.25";
constexpr std::string_view kEfficientNetV2M =
    "cn_r3_k3_s1_e1_c24_skip|er_r5_k3_s2_e4_c48|er_r5_k3_s2_e4_c80|ir_r7_k3_s2_e4_c160_se0.25|"
    "ir_r14_k3_s1_e6_c176_se0.25|ir_r18_k3_s2_e6_c304_se0.25|ir_r5_k3_s1_e6_c512_se0.25";
constexpr std::string_view kEfficientNetV2L =
    "cn_r4_k3_s1_e1_c32_skip|er_r7_k3_s2_e4_c64|er_r7_k3_s2_e4_c96|ir_r10_k3_s2_e4_c192_se0.25|"
    "ir_r19_k3_s1_e6_c224_se0.25|ir_r25_k3_s2_e6_c384_se0.25|ir_r7_k3_s1_e6_c640_se0.25";
constexpr std::string_view kMobileNetV1 =
    "dsa_r1_k3_s1_c64|dsa_r2_k3_s2_c128|dsa_r2_k3_s2_c256|dsa_r6_k3_s2_c512|dsa_r2_k3_s2_c1024";
constexpr std::string_view kMobileNetV2 =
    "ds_r1_k3_s1_c16|ir_r2_k3_s2_e6_c24|ir_r3_k3_s2_e6_c32|ir_r4_k3_s2_e6_c64|"
    "ir_r3_k3_s1_e6_c96|ir_r3_k3_s2_e6_c160|ir_r1_k3_s1_e6_c320";
constexpr std::string_view kMobileNetV3Large =
    "ds_r1_k3_s1_e1_c16_nre|ir_r1_k3_s2_e4_c24_nre ir_r1_k3_s1_e3_c24_nre|"
    "ir_r3_k5_s2_e3_c40_se0.25_nre|"
    "ir_r1_k3_s2_e6_c80 ir_r1_k3_s1_e2.5_c80 ir_r2_k3_s1_e2.3_c80|ir_r2_k3_s1_e6_c112_se0.25|"
    "ir_r3_k5_s2_e6_c160_se0.25|cn_r1_k1_s1_c960";
constexpr std::string_view kMobileNetV3LargeMinimal =
    "ds_r1_k3_s1_e1_c16|ir_r1_k3_s2_e4_c24 ir_r1_k3_s1_e3_c24|ir_r3_k3_s2_e3_c40|"
    "ir_r1_k3_s2_e6_c80 ir_r1_k3_s1_e2.5_c80 ir_r2_k3_s1_e2.3_c80|ir_r2_k3_s1_e6_c112|"
    "ir_r3_k3_s2_e6_c160|cn_r1_k1_s1_c960";
constexpr std::string_view kMobileNetV3Small =
    "ds_r1_k3_s2_e1_c16_se0.25_nre|ir_r1_k3_s2_e4.5_c24_nre ir_r1_k3_s1_e3.67_c24_nre|"
    "ir_r1_k5_s2_e4_c40_se0.25 ir_r2_k5_s1_e6_c40_se0.25|ir_r2_k5_s1_e3_c48_se0.25|"
    "ir_r3_k5_s2_e6_c96_se0.25|cn_r1_k1_s1_c576";
constexpr std::string_view kMobileNetV3SmallMinimal =
    "ds_r1_k3_s2_e1_c16|ir_r1_k3_s2_e4.5_c24 ir_r1_k3_s1_e3.67_c24|"
    "ir_r1_k3_s2_e4_c40 ir_r2_k3_s1_e6_c40|ir_r2_k3_s1_e3_c48|ir_r3_k3_s2_e6_c96|"
    "cn_r1_k1_s1_c576";

struct MobileRow {
  std::string_view architecture, stages;
  double width = 1, depth = 1;  // multipliers
  int64_t stem = 32, head = 1280;
  Activation activation = Activation::kSilu;
  bool fixed_ends = false;   // neither stem and head nor the first and last stage are scaled
  bool pooled_head = false;  // MobileNetV3's
  bool tensorflow = false;   // its padding, and its epsilon of norms
  double least_share = 0.9;  // of a width after rounding
};
constexpr Activation kRelu6 = Activation::kRelu6, kHardSwish = Activation::kHardSwish;
// timm/models/efficientnet.py and mobilenetv3.py
const MobileRow kMobileRows[] = {
    {"efficientnet_b0", kEfficientNet, 1.0, 1.0},
    {"efficientnet_b1", kEfficientNet, 1.0, 1.1},
    {"efficientnet_b2", kEfficientNet, 1.1, 1.2},
    {"efficientnet_b3", kEfficientNet, 1.2, 1.4},
    {"efficientnet_b4", kEfficientNet, 1.4, 1.8},
    {"efficientnet_b5", kEfficientNet, 1.6, 2.2},
    {"efficientnet_b6", kEfficientNet, 1.8, 2.6},
    {"efficientnet_b7", kEfficientNet, 2.0, 3.1},
    {"efficientnet_b8", kEfficientNet, 2.2, 3.6},
    {"efficientnet_lite0", kEfficientNetLite, 1.0, 1.0, 32, 1280, kRelu6, true},
    {"efficientnet_lite1", kEfficientNetLite, 1.0, 1.1, 32, 1280, kRelu6, true},
    {"efficientnet_lite2", kEfficientNetLite, 1.1, 1.2, 32, 1280, kRelu6, true},
    {"efficientnet_lite3", kEfficientNetLite, 1.2, 1.4, 32, 1280, kRelu6, true},
    {"efficientnet_lite4", kEfficientNetLite, 1.4, 1.8, 32, 1280, kRelu6, true},
    {"efficientnetv2_b0", kEfficientNetV2Base, 1.0, 1.0, 32, 1280, Activation::kSilu, false, false,
     false, 0},
    {"efficientnetv2_b1", kEfficientNetV2Base, 1.0, 1.1, 32, 1280, Activation::kSilu, false, false,
     false, 0},
    {"efficientnetv2_b2", kEfficientNetV2Base, 1.1, 1.2, 32, 1280, Activation::kSilu, false, false,
     false, 0},
    {"efficientnetv2_b3", kEfficientNetV2Base, 1.2, 1.4, 32, 1280, Activation::kSilu, false, false,
     false, 0},
    {"efficientnetv2_rw_t", kEfficientNetV2S, 0.8, 0.9, 24},
    {"efficientnetv2_rw_s", kEfficientNetV2Rw, 1.0, 1.0, 24, 1792},
    {"efficientnetv2_s", kEfficientNetV2S, 1.0, 1.0, 24},
    {"efficientnetv2_m", kEfficientNetV2M, 1.0, 1.0, 24},
    {"efficientnetv2_l", kEfficientNetV2L, 1.0, 1.0, 32},
    {"mobilenetv1_100", kMobileNetV1, 1.0, 1.0, 32, 0, kRelu6},
    {"mobilenetv1_125", kMobileNetV1, 1.25, 1.0, 32, 0, kRelu6},
    {"mobilenetv2_035", kMobileNetV2, 0.35, 1.0, 32, 1280, kRelu6},
    {"mobilenetv2_050", kMobileNetV2, 0.5, 1.0, 32, 1280, kRelu6},
    {"mobilenetv2_075", kMobileNetV2, 0.75, 1.0, 32, 1280, kRelu6},
    {"mobilenetv2_100", kMobileNetV2, 1.0, 1.0, 32, 1280, kRelu6},
    {"mobilenetv2_140", kMobileNetV2, 1.4, 1.0, 32, 1280, kRelu6},
    {"mobilenetv2_110d", kMobileNetV2, 1.1, 1.2, 32, 1280, kRelu6, true},
    {"mobilenetv2_120d", kMobileNetV2, 1.2, 1.4, 32, 1280, kRelu6, true},
    {"mobilenetv3_large_075", kMobileNetV3Large, 0.75, 1, 16, 1280, kHardSwish, false, true},
    {"mobilenetv3_large_100", kMobileNetV3Large, 1.0, 1, 16, 1280, kHardSwish, false, true},
    {"mobilenetv3_large_150d", kMobileNetV3Large, 1.5, 1.2, 16, 1280, kHardSwish, false, true},
    {"mobilenetv3_large_minimal_100", kMobileNetV3LargeMinimal, 1.0, 1, 16, 1280, Activation::kRelu,
     false, true},
    {"mobilenetv3_small_minimal_100", kMobileNetV3SmallMinimal, 1.0, 1, 16, 1024, Activation::kRelu,
     false, true},
    {"mobilenetv3_small_050", kMobileNetV3Small, 0.5, 1, 16, 1024, kHardSwish, false, true},
    {"mobilenetv3_small_075", kMobileNetV3Small, 0.75, 1, 16, 1024, kHardSwish, false, true},
    {"mobilenetv3_small_100", kMobileNetV3Small, 1.0, 1, 16, 1024, kHardSwish, false, true},
};

struct Mobile {
  const MobileRow& row;
  const Config& arguments;

  int64_t Width(int64_t channels) const {
    return networks::MakeDivisible(static_cast<double>(channels) * Multiplier(), 8, 0,
                                   row.least_share);
  }
  double Multiplier() const { return arguments.Number("channel_multiplier", row.width); }
  double Depth() const { return arguments.Number("depth_multiplier", row.depth); }
};

// How often each block of a stage is repeated (_scale_stage_depth): a rounded share of the stage's
// blocks, distributed from the last definition on.
std::vector<int64_t> Repeats(const std::vector<BlockText>& blocks, double depth) {
  int64_t all = 0;
  for (const BlockText& block : blocks) all += block.repeats;
  auto scaled = static_cast<int64_t>(std::ceil(static_cast<double>(all) * depth));
  std::vector<int64_t> repeats(blocks.size());
  for (size_t i = blocks.size(); i-- > 0;) {
    const double share = static_cast<double>(blocks[i].repeats) / static_cast<double>(all);
    repeats[i] = std::max<int64_t>(
        1, static_cast<int64_t>(std::nearbyint(share * static_cast<double>(scaled))));
    all -= blocks[i].repeats;
    scaled -= repeats[i];
  }
  return repeats;
}

// The convolutions of a kind of block, by the parts of InvertedBlock.
struct BlockTensors {
  std::string_view kind, ours, conv, norm;
};
constexpr BlockTensors kBlockTensors[] = {
    {"cn", "expand", "conv", "bn1"},       {"ds", "depthwise", "conv_dw", "bn1"},
    {"ds", "project", "conv_pw", "bn2"},   {"dsa", "depthwise", "conv_dw", "bn1"},
    {"dsa", "project", "conv_pw", "bn2"},  {"er", "expand", "conv_exp", "bn1"},
    {"er", "project", "conv_pwl", "bn2"},  {"ir", "expand", "conv_pw", "bn1"},
    {"ir", "depthwise", "conv_dw", "bn2"}, {"ir", "project", "conv_pwl", "bn3"},
};

Program BuildMobile(const TimmFolder& timm, const MobileRow& row) {
  const Mobile mobile{row, timm.arguments};
  const double depth = mobile.Depth();
  if (!(mobile.Multiplier() > 0 && mobile.Multiplier() <= 64 && depth > 0 && depth <= 64))
    throw Error("bad-file", "the multipliers of channels and depths are {} and {}",
                mobile.Multiplier(), depth)
        .Expected("more than 0, at most 64");
  const auto padding =
      row.tensorflow ? PictureWindow::Padding::kSame : PictureWindow::Padding::kHalf;
  // A stem of MobileNetV3 keeps its width in small networks.
  const bool fixed_stem = row.fixed_ends || (row.pooled_head && mobile.Multiplier() < 0.75);
  networks::InvertedResidualConfig config{
      .stem = fixed_stem ? row.stem : mobile.Width(row.stem),
      .head = row.head,
      .pooled_head = row.pooled_head,
      .activation = row.activation,
      .padding = padding,
      .epsilon = timm.arguments.Number("bn_eps", row.tensorflow ? 1e-3 : 1e-5),
      .picture = timm.picture,
      .labels = timm.labels};
  if (row.pooled_head) {
    config.squeeze = Activation::kRelu;
    config.gate = Activation::kHardSigmoid;
  } else if (row.head > 0 && !row.fixed_ends) {
    config.head = mobile.Width(row.head);
    if (row.stages == kMobileNetV2) config.head = std::max(row.head, config.head);
  }
  TensorNameList names;
  names.Add("stem.conv", "conv_stem");
  names.Add("stem.norm", "bn1");
  names.Add("head.conv", "conv_head");
  names.Add("head.norm", "bn2");
  int64_t in = config.stem;
  const std::vector<std::string> stages = Split(row.stages, '|');
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    std::vector<BlockText> blocks;
    for (const std::string& text : Split(stages[stage], ' ')) blocks.push_back(ReadBlock(text));
    const bool fixed = row.fixed_ends && (stage == 0 || stage + 1 == stages.size());
    const std::vector<int64_t> repeats = Repeats(blocks, fixed ? 1 : depth);
    int64_t place = 0;
    for (size_t i = 0; i < blocks.size(); ++i)
      for (int64_t again = 0; again < repeats[i]; ++again, ++place) {
        const BlockText& text = blocks[i];
        const int64_t out = mobile.Width(text.channels);
        InvertedBlock block{.squeeze = text.squeeze,
                            .out = out,
                            .activated = text.kind == "dsa",
                            // Only the first block of a stage has a stride.
                            .stride = place == 0 ? text.stride : 1,
                            .activation = text.relu ? Activation::kRelu : row.activation,
                            .padding = padding};
        block.residual = text.skip && block.stride == 1 && in == out;
        if (text.kind == "cn") {
          block.expanded = out, block.expansion_kernel = text.kernel, block.out = 0;
        } else if (text.kind == "er" || text.kind == "ir") {
          block.expanded = networks::MakeDivisible(static_cast<double>(in) * text.expansion);
          (text.kind == "er" ? block.expansion_kernel : block.depthwise_kernel) = text.kernel;
        } else {
          block.depthwise_kernel = text.kernel;
        }
        const std::string ours = fmt::format("block.{}.", config.blocks.size()),
                          theirs = fmt::format("blocks.{}.{}.", stage, place);
        for (const BlockTensors& tensors : kBlockTensors)
          if (tensors.kind == text.kind) {
            names.Add(fmt::format("{}{}.conv", ours, tensors.ours),
                      fmt::format("{}{}", theirs, tensors.conv));
            names.Add(fmt::format("{}{}.norm", ours, tensors.ours),
                      fmt::format("{}{}", theirs, tensors.norm));
          }
        names.Add(ours + "squeeze.reduce", theirs + "se.conv_reduce");
        names.Add(ours + "squeeze.expand", theirs + "se.conv_expand");
        config.blocks.push_back(block);
        in = out;
      }
  }
  return Built(timm, names.rows(), config, networks::BuildInvertedResidualNetwork);
}

// Returns the row of an architecture; those with the prefix "tf_" were trained with TensorFlow.
std::optional<MobileRow> FindMobile(std::string_view architecture) {
  constexpr std::string_view kTensorflow = "tf_";
  const bool tensorflow = architecture.starts_with(kTensorflow);
  const std::string_view name = tensorflow ? architecture.substr(kTensorflow.size()) : architecture;
  for (const MobileRow& row : kMobileRows)
    if (row.architecture == name) {
      MobileRow found = row;
      found.tensorflow = tensorflow;
      return found;
    }
  return std::nullopt;
}

const TimmResNet kResNets[] = {
    {"resnet18", networks::ResidualConfig::Block::kBasic, {2, 2, 2, 2}},
    {"resnet18d", networks::ResidualConfig::Block::kBasic, {2, 2, 2, 2}, true},
    {"resnet34", networks::ResidualConfig::Block::kBasic, {3, 4, 6, 3}},
    {"resnet34d", networks::ResidualConfig::Block::kBasic, {3, 4, 6, 3}, true},
    {.architecture = "resnet26", .depths = {2, 2, 2, 2}},
    {.architecture = "resnet26d", .depths = {2, 2, 2, 2}, .deep = true},
    {.architecture = "resnet50"},
    {.architecture = "resnet50d", .deep = true},
    {.architecture = "resnet101", .depths = {3, 4, 23, 3}},
    {.architecture = "resnet101d", .depths = {3, 4, 23, 3}, .deep = true},
    {.architecture = "resnet152", .depths = {3, 8, 36, 3}},
    {.architecture = "resnet152d", .depths = {3, 8, 36, 3}, .deep = true},
    {.architecture = "resnet200d", .depths = {3, 24, 36, 3}, .deep = true},
    {.architecture = "wide_resnet50_2", .group_width = 128},
    {.architecture = "wide_resnet101_2", .depths = {3, 4, 23, 3}, .group_width = 128},
    {.architecture = "resnext50_32x4d", .groups = 32, .group_width = 4},
    {.architecture = "resnext50d_32x4d", .deep = true, .groups = 32, .group_width = 4},
    {.architecture = "resnext101_32x4d", .depths = {3, 4, 23, 3}, .groups = 32, .group_width = 4},
    {.architecture = "resnext101_32x8d", .depths = {3, 4, 23, 3}, .groups = 32, .group_width = 8},
    {.architecture = "resnext101_64x4d", .depths = {3, 4, 23, 3}, .groups = 64, .group_width = 4},
    {.architecture = "seresnet18",
     .block = networks::ResidualConfig::Block::kBasic,
     .depths = {2, 2, 2, 2},
     .squeeze = true},
    {.architecture = "seresnet34",
     .block = networks::ResidualConfig::Block::kBasic,
     .squeeze = true},
    {.architecture = "seresnet50", .squeeze = true},
    {.architecture = "seresnet101", .depths = {3, 4, 23, 3}, .squeeze = true},
    {.architecture = "seresnet152", .depths = {3, 8, 36, 3}, .squeeze = true},
    {.architecture = "seresnet152d", .depths = {3, 8, 36, 3}, .deep = true, .squeeze = true},
    {.architecture = "seresnext50_32x4d", .groups = 32, .group_width = 4, .squeeze = true},
    {.architecture = "seresnext101_32x4d",
     .depths = {3, 4, 23, 3},
     .groups = 32,
     .group_width = 4,
     .squeeze = true},
    {.architecture = "seresnext101_32x8d",
     .depths = {3, 4, 23, 3},
     .groups = 32,
     .group_width = 8,
     .squeeze = true},
};

constexpr TimmRow kConvNexts[] = {
    {"convnext_atto", R"({"depths": [2, 2, 6, 2], "dims": [40, 80, 160, 320]})"},
    {"convnext_atto_ols",
     R"({"depths": [2, 2, 6, 2], "dims": [40, 80, 160, 320], "stem_type": "overlap_tiered"})"},
    {"convnext_base", R"({"depths": [3, 3, 27, 3], "dims": [128, 256, 512, 1024]})"},
    {"convnext_femto", R"({"depths": [2, 2, 6, 2], "dims": [48, 96, 192, 384]})"},
    {"convnext_femto_ols",
     R"({"depths": [2, 2, 6, 2], "dims": [48, 96, 192, 384], "stem_type": "overlap_tiered"})"},
    {"convnext_large", R"({"depths": [3, 3, 27, 3], "dims": [192, 384, 768, 1536]})"},
    {"convnext_large_mlp",
     R"({"depths": [3, 3, 27, 3], "dims": [192, 384, 768, 1536], "head_hidden_size": 1536})"},
    {"convnext_nano", R"({"depths": [2, 2, 8, 2], "dims": [80, 160, 320, 640]})"},
    {"convnext_nano_ols",
     R"({"depths": [2, 2, 8, 2], "dims": [80, 160, 320, 640], "stem_type": "overlap"})"},
    {"convnext_pico", R"({"depths": [2, 2, 6, 2], "dims": [64, 128, 256, 512]})"},
    {"convnext_pico_ols",
     R"({"depths": [2, 2, 6, 2], "dims": [64, 128, 256, 512], "stem_type": "overlap_tiered"})"},
    {"convnext_small", R"({"depths": [3, 3, 27, 3], "dims": [96, 192, 384, 768]})"},
    {"convnext_tiny", R"({"depths": [3, 3, 9, 3], "dims": [96, 192, 384, 768]})"},
    {"convnext_tiny_hnf",
     R"({"depths": [3, 3, 9, 3], "dims": [96, 192, 384, 768], "head_norm_first": true})"},
    {"convnext_xlarge", R"({"depths": [3, 3, 27, 3], "dims": [256, 512, 1024, 2048]})"},
    {"convnext_xxlarge",
     R"({"depths": [3, 4, 30, 3], "dims": [384, 768, 1536, 3072], "norm_eps": 1e-5})"},
    {"convnextv2_atto", R"({"depths": [2, 2, 6, 2], "dims": [40, 80, 160, 320], "use_grn": true})"},
    {"convnextv2_base",
     R"({"depths": [3, 3, 27, 3], "dims": [128, 256, 512, 1024], "use_grn": true})"},
    {"convnextv2_femto",
     R"({"depths": [2, 2, 6, 2], "dims": [48, 96, 192, 384], "use_grn": true})"},
    {"convnextv2_huge",
     R"({"depths": [3, 3, 27, 3], "dims": [352, 704, 1408, 2816], "use_grn": true})"},
    {"convnextv2_large",
     R"({"depths": [3, 3, 27, 3], "dims": [192, 384, 768, 1536], "use_grn": true})"},
    {"convnextv2_nano",
     R"({"depths": [2, 2, 8, 2], "dims": [80, 160, 320, 640], "use_grn": true})"},
    {"convnextv2_pico",
     R"({"depths": [2, 2, 6, 2], "dims": [64, 128, 256, 512], "use_grn": true})"},
    {"convnextv2_small",
     R"({"depths": [3, 3, 27, 3], "dims": [96, 192, 384, 768], "use_grn": true})"},
    {"convnextv2_tiny",
     R"({"depths": [3, 3, 9, 3], "dims": [96, 192, 384, 768], "use_grn": true})"},
    {"test_convnext",
     R"({"depths": [1, 2, 4, 2], "dims": [24, 32, 48, 64], "norm_eps": 1e-5,
         "act_layer": "gelu_tanh"})"},
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
};

struct ArgumentsRow {
  std::span<const TimmRow> rows;
  Program (*build)(const TimmFolder& timm);
};
constexpr ArgumentsRow kByArguments[] = {{kConvNexts, BuildConvNext}, {kSwins, BuildSwin}};

// Reads the steps that timm/data/transforms_factory.py applies to pictures from the pretrained
// configuration.
networks::PictureInput ReadPicture(const PictureFolder& from, const Config& arguments) {
  constexpr int64_t kUsual = 224;
  networks::GridSize size = {kUsual, kUsual};
  int64_t channels = 3;
  std::optional<ImageProcessor> processor;
  if (from.json().kind("pretrained_cfg") == Config::Kind::kObject) {
    const Config pretrained = from.json().Object("pretrained_cfg");
    if (pretrained.has("input_size")) {
      const std::vector<int64_t> sides = pretrained.Ints("input_size");
      if (sides.size() != 3) from.Refuse(pretrained, "input_size", "channels, height and width");
      channels = sides[0];
      size = {sides[1], sides[2]};
    }
    if (pretrained.has("mean") && pretrained.has("std")) {
      const std::vector<double> mean = pretrained.Numbers("mean"), std = pretrained.Numbers("std");
      constexpr size_t kColours = 3;
      if (mean.size() != kColours || std.size() != kColours ||
          !std::ranges::all_of(std, [](double value) { return value > 0; }))
        from.Refuse(pretrained, "std", "three positive numbers, and three in \"mean\"");
      processor.emplace();
      processor->size = size;
      processor->image.scale.clear();
      processor->image.bias.clear();
      for (size_t i = 0; i < kColours; ++i) {
        processor->image.scale.push_back(static_cast<float>(1 / (255 * std[i])));
        processor->image.bias.push_back(static_cast<float>(-mean[i] / std[i]));
      }
      const double part = pretrained.Number("crop_pct", 0.875);
      if (!(part > 0 && part <= 1)) from.Refuse(pretrained, "crop_pct", "more than 0, at most 1");
      processor->description = fmt::format(
          "Scale pictures so that the shorter side has {} pixels ({}); then cut out their centre "
          "of "
          "{} x {} pixels.",
          static_cast<int64_t>(static_cast<double>(std::min(size.height, size.width)) / part),
          pretrained.Text("interpolation", "bilinear"), size.height, size.width);
    }
  }
  return from.Picture(processor, size, arguments.Int("in_chans", channels));
}

int64_t CountLabels(const PictureFolder& from) {
  const Config& json = from.json();
  if (json.has("num_classes")) return json.Int("num_classes");
  if (json.kind("pretrained_cfg") == Config::Kind::kObject &&
      json.Object("pretrained_cfg").has("num_classes"))
    return json.Object("pretrained_cfg").Int("num_classes");
  constexpr int64_t kImageNet = 1000;
  return kImageNet;
}

}  // namespace

const TimmResNet* FindTimmResNet(std::string_view architecture) {
  const auto row = std::ranges::find(kResNets, architecture, &TimmResNet::architecture);
  return row == std::end(kResNets) ? nullptr : row;
}

networks::ResidualConfig TimmResNetConfig(const TimmResNet& row) {
  using Config = networks::ResidualConfig;
  const bool basic = row.block == Config::Block::kBasic;
  Config config{.stem = row.deep ? Config::Stem::kDeep : Config::Stem::kSeven,
                .stem_widths = {64},
                .block = row.block,
                .depths = row.depths,
                .average_shortcut = row.deep,
                .squeeze = row.squeeze ? Config::Squeeze::kEnd : Config::Squeeze::kNone};
  if (row.deep) config.stem_widths = {32, 32, 64};
  constexpr int64_t kPlanes[] = {64, 128, 256, 512};
  for (int64_t planes : kPlanes) {
    config.widths.push_back(basic ? planes : 4 * planes);
    config.inner_widths.push_back(planes * row.group_width / 64 * row.groups);
    config.groups.push_back(row.groups);
  }
  return config;
}

std::span<const TensorName> TimmResNetNames() { return kResNetTensors; }

bool IsTimm(const Config& config) {
  const std::string type = config.Text("model_type", "");
  return (type.empty() || type == "timm_wrapper") &&
         config.kind("architecture") == Config::Kind::kText;
}

std::vector<std::string> TimmLabels(const Config& config) {
  if (config.kind("label_names") != Config::Kind::kList) return {};
  std::vector<std::string> labels = config.Texts("label_names");
  std::set<std::string> seen;
  for (size_t i = 0; i < labels.size(); ++i)
    if (!seen.insert(labels[i]).second) labels[i] += fmt::format(" ({})", i);
  return labels;
}

std::set<std::string> TimmArchitectures() {
  std::set<std::string> names;
  for (const TimmResNet& row : kResNets) names.emplace(row.architecture);
  for (const MobileRow& row : kMobileRows) names.emplace(row.architecture);
  for (const ArgumentsRow& family : kByArguments)
    for (const TimmRow& row : family.rows) names.emplace(row.architecture);
  return names;
}

Program ImportTimm(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                   std::vector<std::filesystem::path>* read) {
  const PictureFolder from(folder, options, diagnostics, read, "{}");
  const Config& json = from.json();
  // The name of the weights may follow that of the architecture.
  std::string architecture = json.Text("architecture");
  architecture = architecture.substr(0, architecture.find('.'));
  TimmFolder timm{.from = from, .architecture = architecture, .labels = CountLabels(from)};
  if (json.kind("model_args") == Config::Kind::kObject) timm.arguments = json.Object("model_args");
  timm.picture = ReadPicture(from, timm.arguments);
  if (json.Text("global_pool", "avg") != "avg") from.Refuse(json, "global_pool", "avg");
  if (timm.labels < 0) from.Refuse(json, "num_classes", "0 or more");
  if (FindTimmResNet(architecture)) return BuildResNet(timm);
  if (const auto row = FindMobile(architecture)) return BuildMobile(timm, *row);
  for (const ArgumentsRow& family : kByArguments)
    for (const TimmRow& row : family.rows)
      if (row.architecture == architecture) {
        timm.arguments = timm.arguments.WithDefaults(row.arguments);
        return family.build(timm);
      }
  throw Error("unsupported-architecture", "unsupported architecture \"{}\" of timm{}", architecture,
              DidYouMean(TimmArchitectures(), architecture))
      .At({json.file(), "key \"architecture\""});
}

}  // namespace mlc::safetensors
