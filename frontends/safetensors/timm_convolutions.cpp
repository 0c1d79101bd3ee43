// Convolutional networks of timm other than ResNets, EfficientNets and MobileNets.

#include <algorithm>
#include <charconv>
#include <cmath>

#include "frontends/safetensors/timm.h"
#include "lib/networks/convnext.h"
#include "lib/networks/densenet.h"
#include "lib/networks/fastvit.h"
#include "lib/networks/inverted_residual_network.h"
#include "lib/networks/residual_network.h"
#include "lib/networks/vgg.h"

namespace mlc::safetensors {

namespace {

using networks::Activation;

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
constexpr TensorName kRegNetTensors[] = {
    {"stem.0.conv", "stem.conv"},
    {"stem.0.norm", "stem.bn"},
    {"stage.{}.block.{}.unit.{}.conv", "s{+1}.b{+1}.conv{+1}.conv"},
    {"stage.{}.block.{}.unit.{}.norm", "s{+1}.b{+1}.conv{+1}.bn"},
    {"stage.{}.block.{}.shortcut.conv", "s{+1}.b{+1}.downsample.conv"},
    {"stage.{}.block.{}.shortcut.norm", "s{+1}.b{+1}.downsample.bn"},
    {"stage.{}.block.{}.squeeze.reduce", "s{+1}.b{+1}.se.fc1"},
    {"stage.{}.block.{}.squeeze.expand", "s{+1}.b{+1}.se.fc2"},
    {"classifier", "head.fc"},
};
constexpr TensorName kDenseNetTensors[] = {
    {"stem.{}.conv", "features.conv{}"},
    {"stem.{}.norm", "features.norm{}"},
    {"block.{}.layer.{}.{}.conv", "features.denseblock{+1}.denselayer{+1}.conv{+1}"},
    {"block.{}.layer.{}.{}.norm", "features.denseblock{+1}.denselayer{+1}.norm{+1}"},
    {"transition.{}", "features.transition{+1}"},
    {"norm", "features.norm5"},
    {"classifier", "classifier"},
};

Program BuildConvNext(const TimmFolder& timm) {
  const Config& args = timm.arguments;
  CheckArguments(timm, {"act_layer", "depths", "dims", "head_hidden_size", "head_norm_first",
                        "kernel_sizes", "norm_eps", "patch_size", "stem_type", "use_grn"});
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
  config.activation = TimmActivation(timm, config.activation);
  std::vector<TensorName> names(std::begin(kConvNextTensors), std::end(kConvNextTensors));
  if (const std::string stem = args.Text("stem_type", "patch"); stem != "patch") {
    if (stem != "overlap" && stem != "overlap_tiered")
      args.Refuse("stem_type", "patch, overlap or overlap_tiered");
    networks::CheckPositive("dims", config.widths);
    config.overlap_width = stem == "overlap"
                               ? config.widths[0]
                               : networks::MakeDivisible(static_cast<double>(config.widths[0] / 2));
    names.insert(names.begin(), std::begin(kOverlappingStem), std::end(kOverlappingStem));
  }
  return BuiltTimm(timm, std::move(names), config, networks::BuildConvNext);
}

// The widths of blocks follow a line, rounded to powers of a ratio; blocks of one width are a stage
// (Radosavovic et al. 2020, section 3.3).
void ReadStages(const TimmFolder& timm, networks::ResidualConfig& config) {
  const Config& args = timm.arguments;
  const double first = args.Number("w0"), slope = args.Number("wa"), ratio = args.Number("wm");
  const int64_t depth = args.Int("depth"), group = args.Int("group_size");
  networks::CheckPositive({{"depth", depth}, {"size of a group", group}});
  constexpr double kMost = 1 << 16;
  if (depth > networks::kMaxLayers) args.Refuse("depth", "at most 1024");
  if (!(first >= 1 && first < kMost)) args.Refuse("w0", "1 to 65536");
  if (!(slope >= 0 && slope < kMost)) args.Refuse("wa", "0 to 65536");
  if (!(ratio > 1 && ratio < kMost)) args.Refuse("wm", "more than 1, at most 65536");
  constexpr int64_t kQuantum = 8;
  for (int64_t i = 0; i < depth; ++i) {
    const double exact = first + slope * static_cast<double>(i),
                 power = std::nearbyint(std::log(exact / first) / std::log(ratio)),
                 rounded = std::nearbyint(first * std::pow(ratio, power) / kQuantum) * kQuantum;
    if (!(rounded < INT32_MAX)) args.Refuse("wa", "smaller widths");
    const auto width = static_cast<int64_t>(rounded);
    if (!config.widths.empty() && config.widths.back() == width) {
      ++config.depths.back();
    } else {
      config.widths.push_back(width);
      config.depths.push_back(1);
    }
  }
  for (int64_t& width : config.widths) {
    const int64_t size = std::min(group, std::max<int64_t>(width, 1));
    const double groups = static_cast<double>(width) / static_cast<double>(size);
    // torchvision rounds in another way.
    width = args.has("group_min_ratio") ? networks::MakeDivisible(static_cast<double>(width), size,
                                                                  0, args.Number("group_min_ratio"))
                                        : static_cast<int64_t>(std::nearbyint(groups)) * size;
    config.groups.push_back(width / size);
  }
  config.inner_widths = config.widths;
}

Program BuildRegNet(const TimmFolder& timm) {
  CheckArguments(timm, {"act_layer", "depth", "group_min_ratio", "group_size", "se_ratio",
                        "stem_width", "w0", "wa", "wm"});
  using networks::ResidualConfig;
  ResidualConfig config{.stem = ResidualConfig::Stem::kThree,
                        .stem_widths = {timm.arguments.Int("stem_width", 32)},
                        .downsample_in_first_stage = true,
                        .squeeze = timm.arguments.Number("se_ratio", 0) > 0
                                       ? ResidualConfig::Squeeze::kInside
                                       : ResidualConfig::Squeeze::kNone,
                        .activation = TimmActivation(timm, Activation::kRelu),
                        .picture = timm.picture,
                        .labels = timm.labels};
  ReadStages(timm, config);
  return BuiltTimm(timm, {std::begin(kRegNetTensors), std::end(kRegNetTensors)}, config,
                   networks::BuildResidualNetwork);
}

TensorNameList FastVitNames() {
  TensorNameList names;
  auto pair = [&](const std::string& ours, const std::string& theirs) {
    names.Add(ours + ".conv", theirs + ".conv");
    names.Add(ours + ".norm", theirs + ".bn");
  };
  auto squeeze = [&](const std::string& ours, const std::string& theirs) {
    names.Add(ours + ".squeeze.reduce", theirs + ".se.fc1");
    names.Add(ours + ".squeeze.expand", theirs + ".se.fc2");
  };
  const std::string stage = "stage.{}.", stages = "stages.{}.", block = "stage.{}.block.{}.",
                    blocks = "stages.{}.blocks.{}.", down = stages + "downsample.proj.0";
  for (const auto& [ours, theirs] : {std::pair<std::string, std::string>("stem.{}", "stem.{}"),
                                     {stage + "down.1", stages + "downsample.proj.1"},
                                     {block + "mixer.norm", blocks + "token_mixer.norm"},
                                     {block + "mixer.mixer", blocks + "token_mixer.mixer"},
                                     {"final", "final_conv"}}) {
    pair(ours + ".branch.{}", theirs + ".conv_kxk.{}");
    pair(ours + ".scale", theirs + ".conv_scale");
    names.Add(ours + ".identity", theirs + ".identity");
    names.Add(ours + ".fused", theirs + ".reparam_conv");
    squeeze(ours, theirs);
  }
  pair(stage + "down.large", down + ".large_conv");
  pair(stage + "down.small", down + ".small_conv");
  names.Add(stage + "down.fused", down + ".reparam_conv");
  squeeze(stage + "down", down);
  names.Add(stage + "positions.fused", stages + "pos_emb.reparam_conv");
  names.Add(stage + "positions", stages + "pos_emb.pos_enc");
  names.Add(block + "mixer.fused", blocks + "token_mixer.reparam_conv");
  names.Add(block + "mixer.scale", blocks + "token_mixer.layer_scale.gamma");
  names.Add(block + "attention_norm", blocks + "norm");
  names.Add(block + "qkv", blocks + "token_mixer.qkv");
  names.Add(block + "attention", blocks + "token_mixer.proj");
  names.Add(block + "attention_scale", blocks + "layer_scale_1.gamma");
  pair(block + "spread", blocks + "mlp.conv");
  names.Add(block + "up", blocks + "mlp.fc1");
  names.Add(block + "down", blocks + "mlp.fc2");
  names.Add(block + "scale", blocks + "layer_scale.gamma");
  names.Add(block + "scale", blocks + "layer_scale_2.gamma");
  names.Add("classifier", "head.fc");
  return names;
}

Program BuildFastVit(const TimmFolder& timm) {
  CheckArguments(timm, {"act_layer", "cls_ratio", "down_patch_size", "embed_dims", "inference_mode",
                        "layer_scale_init_value", "layers", "lkc_use_act", "mlp_ratios",
                        "repmixer_kernel_size", "se_downsamples", "token_mixers"});
  networks::FastVitConfig config = ReadFastVit(timm.arguments);
  config.activation = TimmActivation(timm, Activation::kGelu);
  config.picture = timm.picture;
  config.labels = timm.labels;
  return BuiltTimm(timm, FastVitTensors(), config, networks::BuildFastVit);
}

struct VggRow {
  std::string_view layers;
  std::vector<int64_t> depths;
};
const VggRow kVggs[] = {{"11", {1, 1, 2, 2, 2}},
                        {"13", {2, 2, 2, 2, 2}},
                        {"16", {2, 2, 3, 3, 3}},
                        {"19", {2, 2, 4, 4, 4}}};

Program BuildVgg(const TimmFolder& timm) {
  CheckArguments(timm, {"act_layer", "mlp_ratio"});
  constexpr size_t kDigits = 3;  // begin behind "vgg"
  const auto row = std::ranges::find(kVggs, timm.architecture.substr(kDigits, 2), &VggRow::layers);
  networks::VggConfig config{.depths = row->depths,
                             .widths = {64, 128, 256, 512, 512},
                             .normed = timm.architecture.ends_with("_bn"),
                             .activation = TimmActivation(timm, Activation::kRelu),
                             .picture = timm.picture,
                             .labels = timm.labels};
  const double inner = static_cast<double>(config.hidden) * timm.arguments.Number("mlp_ratio", 1);
  if (!(inner >= 1 && inner <= INT32_MAX))
    timm.arguments.Refuse("mlp_ratio", "a small positive number");
  config.inner = static_cast<int64_t>(inner);
  TensorNameList names;
  names.Add("head.{}", "pre_logits.fc{+1}");
  names.Add("classifier", "head.fc");
  // Layers without weights are counted, too.
  int64_t layer = 0, next = 0;
  for (int64_t depth : config.depths) {
    for (int64_t i = 0; i < depth; ++i, ++next) {
      names.Add(fmt::format("conv.{}", next), fmt::format("features.{}", layer));
      names.Add(fmt::format("norm.{}", next), fmt::format("features.{}", layer + 1));
      layer += config.normed ? 3 : 2;
    }
    ++layer;
  }
  return BuiltTimm(timm, names.rows(), config, networks::BuildVgg);
}

Program BuildDenseNet(const TimmFolder& timm) {
  const Config& args = timm.arguments;
  CheckArguments(timm, {"act_layer", "block_config", "bn_size", "growth_rate"});
  networks::DenseNetConfig config{.growth = args.Int("growth_rate"),
                                  .bottleneck = args.Int("bn_size", 4),
                                  .depths = args.Ints("block_config"),
                                  .deep = args.Text("stem_type", "") == "deep",
                                  .activation = TimmActivation(timm, Activation::kRelu),
                                  .picture = timm.picture,
                                  .labels = timm.labels};
  return BuiltTimm(timm, {std::begin(kDenseNetTensors), std::end(kDenseNetTensors)}, config,
                   networks::BuildDenseNet);
}

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
    {"test_convnext3",
     R"({"depths": [1, 1, 1, 1], "dims": [32, 64, 96, 128], "norm_eps": 1e-5,
         "act_layer": "silu"})"},
    {"test_convnext2",
     R"({"depths": [1, 1, 1, 1], "dims": [32, 64, 96, 128], "norm_eps": 1e-5,
         "act_layer": "gelu_tanh"})"},
    {"test_convnext",
     R"({"depths": [1, 2, 4, 2], "dims": [24, 32, 48, 64], "norm_eps": 1e-5,
         "act_layer": "gelu_tanh"})"},
};
constexpr TimmRow kRegNets[] = {
    {"regnetx_002", R"({"w0": 24, "wa": 36.44, "wm": 2.49, "group_size": 8, "depth": 13})"},
    {"regnetx_004", R"({"w0": 24, "wa": 24.48, "wm": 2.54, "group_size": 16, "depth": 22})"},
    {"regnetx_004_tv",
     R"({"w0": 24, "wa": 24.48, "wm": 2.54, "group_size": 16, "depth": 22,
         "group_min_ratio": 0.9})"},
    {"regnetx_006", R"({"w0": 48, "wa": 36.97, "wm": 2.24, "group_size": 24, "depth": 16})"},
    {"regnetx_008", R"({"w0": 56, "wa": 35.73, "wm": 2.28, "group_size": 16, "depth": 16})"},
    {"regnetx_016", R"({"w0": 80, "wa": 34.01, "wm": 2.25, "group_size": 24, "depth": 18})"},
    {"regnetx_032", R"({"w0": 88, "wa": 26.31, "wm": 2.25, "group_size": 48, "depth": 25})"},
    {"regnetx_040", R"({"w0": 96, "wa": 38.65, "wm": 2.43, "group_size": 40, "depth": 23})"},
    {"regnetx_064", R"({"w0": 184, "wa": 60.83, "wm": 2.07, "group_size": 56, "depth": 17})"},
    {"regnetx_080", R"({"w0": 80, "wa": 49.56, "wm": 2.88, "group_size": 120, "depth": 23})"},
    {"regnetx_120", R"({"w0": 168, "wa": 73.36, "wm": 2.37, "group_size": 112, "depth": 19})"},
    {"regnetx_160", R"({"w0": 216, "wa": 55.59, "wm": 2.1, "group_size": 128, "depth": 22})"},
    {"regnetx_320", R"({"w0": 320, "wa": 69.86, "wm": 2.0, "group_size": 168, "depth": 23})"},
    {"regnety_002",
     R"({"w0": 24, "wa": 36.44, "wm": 2.49, "group_size": 8, "depth": 13, "se_ratio": 0.25})"},
    {"regnety_004",
     R"({"w0": 48, "wa": 27.89, "wm": 2.09, "group_size": 8, "depth": 16, "se_ratio": 0.25})"},
    {"regnety_006",
     R"({"w0": 48, "wa": 32.54, "wm": 2.32, "group_size": 16, "depth": 15, "se_ratio": 0.25})"},
    {"regnety_008",
     R"({"w0": 56, "wa": 38.84, "wm": 2.4, "group_size": 16, "depth": 14, "se_ratio": 0.25})"},
    {"regnety_008_tv",
     R"({"w0": 56, "wa": 38.84, "wm": 2.4, "group_size": 16, "depth": 14, "se_ratio": 0.25,
         "group_min_ratio": 0.9})"},
    {"regnety_016",
     R"({"w0": 48, "wa": 20.71, "wm": 2.65, "group_size": 24, "depth": 27, "se_ratio": 0.25})"},
    {"regnety_032",
     R"({"w0": 80, "wa": 42.63, "wm": 2.66, "group_size": 24, "depth": 21, "se_ratio": 0.25})"},
    {"regnety_040",
     R"({"w0": 96, "wa": 31.41, "wm": 2.24, "group_size": 64, "depth": 22, "se_ratio": 0.25})"},
    {"regnety_064",
     R"({"w0": 112, "wa": 33.22, "wm": 2.27, "group_size": 72, "depth": 25, "se_ratio": 0.25})"},
    {"regnety_080",
     R"({"w0": 192, "wa": 76.82, "wm": 2.19, "group_size": 56, "depth": 17, "se_ratio": 0.25})"},
    {"regnety_080_tv",
     R"({"w0": 192, "wa": 76.82, "wm": 2.19, "group_size": 56, "depth": 17,
         "se_ratio": 0.25, "group_min_ratio": 0.9})"},
    {"regnety_120",
     R"({"w0": 168, "wa": 73.36, "wm": 2.37, "group_size": 112, "depth": 19, "se_ratio": 0.25})"},
    {"regnety_160",
     R"({"w0": 200, "wa": 106.23, "wm": 2.48, "group_size": 112, "depth": 18, "se_ratio": 0.25})"},
    {"regnety_320",
     R"({"w0": 232, "wa": 115.89, "wm": 2.53, "group_size": 232, "depth": 20, "se_ratio": 0.25})"},
    {"regnety_640",
     R"({"w0": 352, "wa": 147.48, "wm": 2.4, "group_size": 328, "depth": 20, "se_ratio": 0.25})"},
    {"regnety_1280",
     R"({"w0": 456, "wa": 160.83, "wm": 2.52, "group_size": 264, "depth": 27, "se_ratio": 0.25})"},
    {"regnety_2560",
     R"({"w0": 640, "wa": 230.83, "wm": 2.53, "group_size": 373, "depth": 27, "se_ratio": 0.25})"},
};
constexpr TimmRow kVggRows[] = {{"vgg{11,13,16,19}{,_bn}", "{}"}};
constexpr TimmRow kDenseNets[] = {
    {"densenet121", R"({"growth_rate": 32, "block_config": [6, 12, 24, 16]})"},
    {"densenet161", R"({"growth_rate": 48, "block_config": [6, 12, 36, 24]})"},
    {"densenet169", R"({"growth_rate": 32, "block_config": [6, 12, 32, 32]})"},
    {"densenet201", R"({"growth_rate": 32, "block_config": [6, 12, 48, 32]})"},
    {"densenet264d",
     R"({"growth_rate": 48, "block_config": [6, 12, 64, 48], "stem_type": "deep"})"},
};
constexpr TimmRow kFastVits[] = {
    {"fastvit_t8",
     R"({"layers": [2, 2, 4, 2], "embed_dims": [48, 96, 192, 384],
         "mlp_ratios": [3, 3, 3, 3]})"},
    {"fastvit_t12",
     R"({"layers": [2, 2, 6, 2], "embed_dims": [64, 128, 256, 512],
         "mlp_ratios": [3, 3, 3, 3]})"},
    {"fastvit_s12",
     R"({"layers": [2, 2, 6, 2], "embed_dims": [64, 128, 256, 512],
         "mlp_ratios": [4, 4, 4, 4]})"},
    {"fastvit_sa12",
     R"({"layers": [2, 2, 6, 2], "embed_dims": [64, 128, 256, 512],
         "mlp_ratios": [4, 4, 4, 4],
         "token_mixers": ["repmixer", "repmixer", "repmixer", "attention"]})"},
    {"fastvit_sa24",
     R"({"layers": [4, 4, 12, 4], "embed_dims": [64, 128, 256, 512],
         "mlp_ratios": [4, 4, 4, 4],
         "token_mixers": ["repmixer", "repmixer", "repmixer", "attention"]})"},
    {"fastvit_sa36",
     R"({"layers": [6, 6, 18, 6], "embed_dims": [64, 128, 256, 512],
         "mlp_ratios": [4, 4, 4, 4],
         "token_mixers": ["repmixer", "repmixer", "repmixer", "attention"]})"},
    {"fastvit_ma36",
     R"({"layers": [6, 6, 18, 6], "embed_dims": [76, 152, 304, 608],
         "mlp_ratios": [4, 4, 4, 4],
         "token_mixers": ["repmixer", "repmixer", "repmixer", "attention"]})"},
    {"fastvit_mci0",
     R"({"layers": [2, 6, 10, 2], "embed_dims": [64, 128, 256, 512],
         "mlp_ratios": [3, 3, 3, 3],
         "token_mixers": ["repmixer", "repmixer", "repmixer", "attention"],
         "se_downsamples": [false, false, true, true], "lkc_use_act": true})"},
    {"fastvit_mci1",
     R"({"layers": [4, 12, 20, 4], "embed_dims": [64, 128, 256, 512],
         "mlp_ratios": [3, 3, 3, 3],
         "token_mixers": ["repmixer", "repmixer", "repmixer", "attention"],
         "se_downsamples": [false, false, true, true], "lkc_use_act": true})"},
    {"fastvit_mci2",
     R"({"layers": [4, 12, 24, 4], "embed_dims": [80, 160, 320, 640],
         "mlp_ratios": [3, 3, 3, 3],
         "token_mixers": ["repmixer", "repmixer", "repmixer", "attention"],
         "se_downsamples": [false, false, true, true], "lkc_use_act": true})"},
    {"fastvit_mci3",
     R"({"layers": [2, 12, 24, 4, 2], "embed_dims": [96, 192, 384, 768, 1536],
         "mlp_ratios": [4, 4, 4, 4, 4], "lkc_use_act": true, "channel_norms": true,
         "token_mixers": ["repmixer", "repmixer", "repmixer", "attention", "attention"]})"},
    {"fastvit_mci4",
     R"({"layers": [2, 12, 24, 4, 4], "embed_dims": [128, 256, 512, 1024, 2048],
         "mlp_ratios": [4, 4, 4, 4, 4], "lkc_use_act": true, "channel_norms": true,
         "token_mixers": ["repmixer", "repmixer", "repmixer", "attention", "attention"]})"},
};
constexpr TimmFamily kConvolutions[] = {{kConvNexts, BuildConvNext},
                                        {kDenseNets, BuildDenseNet},
                                        {kFastVits, BuildFastVit},
                                        {kRegNets, BuildRegNet},
                                        {kVggRows, BuildVgg}};

}  // namespace

std::span<const TimmFamily> TimmConvolutions() { return kConvolutions; }

const std::vector<TensorName>& FastVitTensors() {
  static const TensorNameList names = FastVitNames();
  return names.rows();
}

std::string_view FastVitArguments(std::string_view architecture) {
  for (const TimmRow& row : kFastVits)
    if (row.architectures == architecture) return row.arguments;
  return {};
}

networks::FastVitConfig ReadFastVit(const Config& args) {
  networks::FastVitConfig config{.kernel = args.Int("repmixer_kernel_size", 3),
                                 .down_kernel = args.Int("down_patch_size", 7),
                                 .down_activated = args.Bool("lkc_use_act", false),
                                 .channel_norms = args.Bool("channel_norms", false),
                                 .final_ratio = args.Number("cls_ratio", 2)};
  const std::vector<int64_t> depths = args.Ints("layers"), widths = args.Ints("embed_dims");
  const std::vector<double> ratios = args.Numbers("mlp_ratios");
  std::vector<std::string> mixers(depths.size(), "repmixer");
  if (args.has("token_mixers")) mixers = args.Texts("token_mixers");
  std::vector<bool> squeezes(depths.size());
  if (args.has("se_downsamples")) squeezes = args.Bools("se_downsamples");
  for (size_t size : {widths.size(), ratios.size(), mixers.size(), squeezes.size()})
    if (size != depths.size())
      args.Refuse("layers", "as many numbers as the other lists have members");
  for (size_t i = 0; i < depths.size(); ++i) {
    if (mixers[i] != "repmixer" && mixers[i] != "attention")
      args.Refuse("token_mixers", "repmixer or attention");
    config.stages.push_back({.depth = depths[i],
                             .width = widths[i],
                             .feed_forward = ratios[i],
                             .downsample = i > 0,
                             .squeezed = squeezes[i],
                             .attention = mixers[i] == "attention"});
  }
  return config;
}

}  // namespace mlc::safetensors
