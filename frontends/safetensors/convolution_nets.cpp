#include <algorithm>
#include <cmath>
#include <span>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/picture_nets.h"
#include "lib/networks/convnext.h"
#include "lib/networks/inverted_residual_network.h"

namespace mlc::safetensors {

const std::string_view kResNetDefaults = R"({"embedding_size": 64,
    "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3], "layer_type": "bottleneck",
    "hidden_act": "relu", "downsample_in_first_stage": false, "downsample_in_bottleneck": false})";

namespace {

using networks::PictureWindow;

constexpr TensorName kResNetNames[] = {
    {"stem.0.conv", "embedder.embedder.convolution"},
    {"stem.0.norm", "embedder.embedder.normalization"},
    {"stem.{}.conv", "embedder.embedder.{}.convolution"},  // RT-DETR
    {"stem.{}.norm", "embedder.embedder.{}.normalization"},
    {"stage.{}.block.{}.unit.{}.conv", "encoder.stages.{}.layers.{}.layer.{}.convolution"},
    {"stage.{}.block.{}.unit.{}.norm", "encoder.stages.{}.layers.{}.layer.{}.normalization"},
    {"stage.{}.block.{}.shortcut.conv", "encoder.stages.{}.layers.{}.shortcut.convolution"},
    {"stage.{}.block.{}.shortcut.norm", "encoder.stages.{}.layers.{}.shortcut.normalization"},
    {"stage.{}.block.{}.shortcut.conv", "encoder.stages.{}.layers.{}.shortcut.1.convolution"},
    {"stage.{}.block.{}.shortcut.norm", "encoder.stages.{}.layers.{}.shortcut.1.normalization"},
    {"classifier", "classifier.1"},
};
// Squeeze and excitation take the place of layer 2.
constexpr TensorName kRegNetNames[] = {
    {"stage.{}.block.{}.unit.2.conv", "encoder.stages.{}.layers.{}.layer.3.convolution"},
    {"stage.{}.block.{}.unit.2.norm", "encoder.stages.{}.layers.{}.layer.3.normalization"},
    {"stage.{}.block.{}.squeeze.reduce", "encoder.stages.{}.layers.{}.layer.2.attention.0"},
    {"stage.{}.block.{}.squeeze.expand", "encoder.stages.{}.layers.{}.layer.2.attention.2"},
};
constexpr TensorName kConvNextNames[] = {
    {"stem.norm", "embeddings.layernorm"},
    {"stem", "embeddings.patch_embeddings"},
    {"stage.{}.downsample.norm", "encoder.stages.{}.downsampling_layer.0"},
    {"stage.{}.downsample.conv", "encoder.stages.{}.downsampling_layer.1"},
    {"stage.{}.block.{}.depthwise", "encoder.stages.{}.layers.{}.dwconv"},
    {"stage.{}.block.{}.norm", "encoder.stages.{}.layers.{}.layernorm"},
    {"stage.{}.block.{}.up", "encoder.stages.{}.layers.{}.pwconv1"},
    {"stage.{}.block.{}.response", "encoder.stages.{}.layers.{}.grn"},
    {"stage.{}.block.{}.down", "encoder.stages.{}.layers.{}.pwconv2"},
    {"stage.{}.block.{}.scale", "encoder.stages.{}.layers.{}.layer_scale_parameter"},
    {"norm", "layernorm"},
};
constexpr TensorName kDinoConvNextNames[] = {
    {"stem.norm", "stages.0.downsample_layers.1"},
    {"stem", "stages.0.downsample_layers.0"},
    {"stage.{}.downsample.norm", "stages.{}.downsample_layers.0"},
    {"stage.{}.downsample.conv", "stages.{}.downsample_layers.1"},
    {"stage.{}.block.{}.depthwise", "stages.{}.layers.{}.depthwise_conv"},
    {"stage.{}.block.{}.norm", "stages.{}.layers.{}.layer_norm"},
    {"stage.{}.block.{}.up", "stages.{}.layers.{}.pointwise_conv1"},
    {"stage.{}.block.{}.down", "stages.{}.layers.{}.pointwise_conv2"},
    {"stage.{}.block.{}.scale", "stages.{}.layers.{}.gamma"},
    {"norm", "layer_norm"},
};
constexpr TensorName kEfficientNetNames[] = {
    {"stem.conv", "embeddings.convolution"},
    {"stem.norm", "embeddings.batchnorm"},
    {"block.{}.expand.conv", "encoder.blocks.{}.expansion.expand_conv"},
    {"block.{}.expand.norm", "encoder.blocks.{}.expansion.expand_bn"},
    {"block.{}.depthwise.conv", "encoder.blocks.{}.depthwise_conv.depthwise_conv"},
    {"block.{}.depthwise.norm", "encoder.blocks.{}.depthwise_conv.depthwise_norm"},
    {"block.{}.squeeze", "encoder.blocks.{}.squeeze_excite"},
    {"block.{}.project.conv", "encoder.blocks.{}.projection.project_conv"},
    {"block.{}.project.norm", "encoder.blocks.{}.projection.project_bn"},
    {"head.conv", "encoder.top_conv"},
    {"head.norm", "encoder.top_bn"},
};
constexpr TensorName kHgNetNames[] = {
    {"stem.1.conv", "embedder.stem1.convolution"},
    {"stem.1.norm", "embedder.stem1.normalization"},
    {"stem.1.affine", "embedder.stem1.lab"},
    {"stem.2a.conv", "embedder.stem2a.convolution"},
    {"stem.2a.norm", "embedder.stem2a.normalization"},
    {"stem.2a.affine", "embedder.stem2a.lab"},
    {"stem.2b.conv", "embedder.stem2b.convolution"},
    {"stem.2b.norm", "embedder.stem2b.normalization"},
    {"stem.2b.affine", "embedder.stem2b.lab"},
    {"stem.3.conv", "embedder.stem3.convolution"},
    {"stem.3.norm", "embedder.stem3.normalization"},
    {"stem.3.affine", "embedder.stem3.lab"},
    {"stem.4.conv", "embedder.stem4.convolution"},
    {"stem.4.norm", "embedder.stem4.normalization"},
    {"stem.4.affine", "embedder.stem4.lab"},
    {"stage.{}.downsample.conv", "encoder.stages.{}.downsample.convolution"},
    {"stage.{}.downsample.norm", "encoder.stages.{}.downsample.normalization"},
    {"stage.{}.block.{}.layer.{}.{}.conv",
     "encoder.stages.{}.blocks.{}.layers.{}.conv{+1}.convolution"},
    {"stage.{}.block.{}.layer.{}.{}.norm",
     "encoder.stages.{}.blocks.{}.layers.{}.conv{+1}.normalization"},
    {"stage.{}.block.{}.layer.{}.{}.affine", "encoder.stages.{}.blocks.{}.layers.{}.conv{+1}.lab"},
    {"stage.{}.block.{}.layer.{}.conv", "encoder.stages.{}.blocks.{}.layers.{}.convolution"},
    {"stage.{}.block.{}.layer.{}.norm", "encoder.stages.{}.blocks.{}.layers.{}.normalization"},
    {"stage.{}.block.{}.layer.{}.affine", "encoder.stages.{}.blocks.{}.layers.{}.lab"},
    {"stage.{}.block.{}.join.{}.conv", "encoder.stages.{}.blocks.{}.aggregation.{}.convolution"},
    {"stage.{}.block.{}.join.{}.norm", "encoder.stages.{}.blocks.{}.aggregation.{}.normalization"},
    {"stage.{}.block.{}.join.{}.affine", "encoder.stages.{}.blocks.{}.aggregation.{}.lab"},
    {"classifier", "fc"},
};
constexpr std::string_view kHgNetDefaults =
    R"({"hidden_act": "relu", "stem_channels": [3, 32, 48],
        "stage_in_channels": [48, 128, 512, 1024], "stage_mid_channels": [48, 96, 192, 384],
        "stage_out_channels": [128, 512, 1024, 2048], "stage_num_blocks": [1, 1, 3, 1],
        "stage_downsample": [false, true, true, true],
        "stage_light_block": [false, false, true, true], "stage_kernel_size": [3, 3, 5, 5],
        "stage_numb_of_layers": [6, 6, 6, 6], "use_learnable_affine_block": false})";
constexpr std::string_view kClassification = "ForImageClassification",
                           kSegmentation = "ForSemanticSegmentation";

// Segmentation does not read the last convolution of MobileNetV2.
bool IsLastConvolution(std::string_view name) {
  return name.find("mobilenet_v2.conv_1x1.") != std::string_view::npos;
}

std::vector<TensorName> Names(std::span<const TensorName> rows) {
  return {rows.begin(), rows.end()};
}

Program ImportResNet(const PictureFolder& from) {
  networks::ResidualConfig config = ReadResNet(from.json());
  config.picture = from.Picture();
  config.labels = from.HasHead(kClassification) ? from.Labels() : 0;
  return BuiltFrom(from, {"resnet.", ""}, Names(kResNetNames), config,
                   networks::BuildResidualNetwork);
}

// In RegNet X and Y all three convolutions of a block have the same width (a bottleneck ratio of 1).
Program ImportRegNet(const PictureFolder& from) {
  const Config& json = from.json();
  const std::string type = json.Text("layer_type");
  if (type != "x" && type != "y") json.Refuse("layer_type", "x or y");
  networks::ResidualConfig config;
  config.stem = networks::ResidualConfig::Stem::kThree;
  config.stem_widths = {json.Int("embedding_size")};
  config.depths = json.Ints("depths");
  config.inner_widths = config.widths = json.Ints("hidden_sizes");
  const int64_t width = json.Int("groups_width");
  networks::CheckPositive({{"width of a group", width}});
  for (int64_t out : config.widths) config.groups.push_back(std::max<int64_t>(1, out / width));
  config.downsample_in_first_stage = json.Bool("downsample_in_first_stage");
  config.activation = from.Activation();
  config.picture = from.Picture();
  config.labels = from.HasHead(kClassification) ? from.Labels() : 0;
  std::vector<TensorName> names = Names(kResNetNames);
  if (type == "y") {
    config.squeeze = networks::ResidualConfig::Squeeze::kInside;
    names.insert(names.begin(), std::begin(kRegNetNames), std::end(kRegNetNames));
  }
  return BuiltFrom(from, {"regnet.", ""}, std::move(names), config, networks::BuildResidualNetwork);
}

Program ImportHgNet(const PictureFolder& from) {
  networks::HgNetConfig config = ReadHgNet(from.json());
  config.picture = from.Picture();
  config.labels = from.HasHead(kClassification) ? from.Labels() : 0;
  return BuiltFrom(from, {"hgnet_v2.", ""}, Names(kHgNetNames), config, networks::BuildHgNet);
}

networks::ConvNextConfig ReadConvNext(const PictureFolder& from) {
  const Config& json = from.json();
  networks::ConvNextConfig config;
  config.depths = json.Ints("depths");
  config.widths = json.Ints("hidden_sizes");
  config.patch = json.Int("patch_size", 4);
  config.activation = from.Activation();
  config.final_epsilon = json.Number("layer_norm_eps");
  config.picture = from.Picture();
  return config;
}

Program ImportConvNext(const PictureFolder& from) {
  networks::ConvNextConfig config = ReadConvNext(from);
  const std::string type = from.folder().model_type();
  config.response_norm = type == "convnextv2";
  config.labels = from.HasHead(kClassification) ? from.Labels() : 0;
  return BuiltFrom(from, {type + ".", ""}, Names(kConvNextNames), config, networks::BuildConvNext);
}

Program ImportDinoConvNext(const PictureFolder& from) {
  networks::ConvNextConfig config = ReadConvNext(from);
  config.epsilon = config.final_epsilon;
  config.tokens = true;
  if (from.HasHead(kClassification)) from.json().Refuse("architectures", "...Model");
  return BuiltFrom(from, {"model.", ""}, Names(kDinoConvNextNames), config,
                   networks::BuildConvNext);
}

int64_t AtLeastOne(const char* name, int64_t number) {
  networks::CheckPositive({{name, number}});
  return number;
}

Program ImportMobileNetV1(const PictureFolder& from) {
  const Config& json = from.json();
  const double multiplier = json.Number("depth_multiplier");
  const int64_t least = AtLeastOne("min_depth", json.Int("min_depth"));
  auto width = [&](int64_t depth) {
    const double scaled = static_cast<double>(depth) * multiplier;
    if (!(scaled >= 0 && scaled <= INT32_MAX)) json.Refuse("depth_multiplier", "a positive number");
    return std::max(static_cast<int64_t>(scaled), least);
  };
  const auto padding =
      json.Bool("tf_padding") ? PictureWindow::Padding::kSame : PictureWindow::Padding::kHalf;
  networks::InvertedResidualConfig config{.stem = width(32),
                                          .activation = from.Activation(),
                                          .padding = padding,
                                          .epsilon = json.Number("layer_norm_eps"),
                                          .picture = from.Picture()};
  config.labels = from.HasHead(kClassification) ? from.Labels() : 0;
  TensorNameList names;
  names.Add("stem.conv", "conv_stem.convolution");
  names.Add("stem.norm", "conv_stem.normalization");
  int64_t depth = 32;
  constexpr int64_t kStrides[] = {1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
  for (size_t i = 0; i < std::size(kStrides); ++i) {
    if (kStrides[i] == 2 || i == 0) depth *= 2;
    config.blocks.push_back({.depthwise_kernel = 3,
                             .out = width(depth),
                             .activated = true,
                             .stride = kStrides[i],
                             .activation = config.activation,
                             .padding = padding});
    for (auto [ours, theirs] : {std::pair("depthwise", 2 * i), {"project", 2 * i + 1}}) {
      names.Add(fmt::format("block.{}.{}.conv", i, ours),
                fmt::format("layer.{}.convolution", theirs));
      names.Add(fmt::format("block.{}.{}.norm", i, ours),
                fmt::format("layer.{}.normalization", theirs));
    }
  }
  return BuiltFrom(from, {"mobilenet_v1.", ""}, names.rows(), config,
                   networks::BuildInvertedResidualNetwork);
}

Program ImportMobileNetV2(const PictureFolder& from) {
  const Config& json = from.json();
  const double multiplier = json.Number("depth_multiplier"), ratio = json.Number("expand_ratio");
  const int64_t divisor = json.Int("depth_divisible_by"),
                least = AtLeastOne("min_depth", json.Int("min_depth"));
  auto rounded = [&](double width) {
    return networks::MakeDivisible(std::nearbyint(width), divisor, least);
  };
  auto scaled = [&](int64_t width) { return rounded(static_cast<double>(width) * multiplier); };
  const auto padding =
      json.Bool("tf_padding") ? PictureWindow::Padding::kSame : PictureWindow::Padding::kHalf;
  networks::InvertedResidualConfig config{.stem = scaled(32),
                                          .activation = from.Activation(),
                                          .padding = padding,
                                          .epsilon = json.Number("layer_norm_eps"),
                                          .picture = from.Picture()};
  config.head = json.Bool("finegrained_output") && multiplier < 1 ? 1280 : scaled(1280);
  const int head = from.HeadOf({kClassification, kSegmentation});
  config.segments = head == 1;
  config.labels = head >= 0 ? from.Labels() : 0;
  TensorNameList names;
  auto add = [&](const std::string& ours, const std::string& theirs) {
    names.Add(ours + ".conv", theirs + ".convolution");
    names.Add(ours + ".norm", theirs + ".normalization");
  };
  add("stem", "conv_stem.first_conv");
  add("head", "conv_1x1");
  add("segments.pool", "segmentation_head.conv_pool");
  add("segments.map", "segmentation_head.conv_aspp");
  add("segments.join", "segmentation_head.conv_projection");
  names.Add("segments.classifier", "segmentation_head.classifier.convolution");
  add("block.0.expand", "conv_stem.expand_1x1");
  add("block.0.depthwise", "conv_stem.conv_3x3");
  add("block.0.project", "conv_stem.reduce_1x1");
  // The first block belongs to the stem.
  constexpr int64_t kWidths[] = {16, 24, 24, 32, 32,  32,  64,  64, 64,
                                 64, 96, 96, 96, 160, 160, 160, 320};
  constexpr int64_t kStrides[] = {1, 2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1};
  const int64_t output_stride = json.Int("output_stride");
  int64_t in = config.stem, stride_so_far = 2, dilation = 1;
  for (size_t i = 0; i < std::size(kWidths); ++i) {
    networks::InvertedBlock block{.expanded = rounded(static_cast<double>(in) * ratio),
                                  .depthwise_kernel = 3,
                                  .out = scaled(kWidths[i]),
                                  .activation = config.activation,
                                  .padding = padding};
    if (i == 0) {
      block.expanded = json.Bool("first_layer_is_expansion") ? 0 : config.stem;
    } else {
      // Beyond the output stride, convolutions are dilated.
      if (stride_so_far == output_stride) {
        block.dilation = dilation;
        dilation *= kStrides[i];
      } else {
        block.stride = kStrides[i];
        stride_so_far *= block.stride;
      }
      block.residual = block.stride == 1 && in == block.out;
      for (auto [ours, theirs] : {std::pair("expand", "expand_1x1"),
                                  {"depthwise", "conv_3x3"},
                                  {"project", "reduce_1x1"}})
        add(fmt::format("block.{}.{}", i, ours), fmt::format("layer.{}.{}", i - 1, theirs));
    }
    in = block.out;
    config.blocks.push_back(block);
  }
  return BuiltFrom(from, {"mobilenet_v2.", ""}, names.rows(), config,
                   networks::BuildInvertedResidualNetwork,
                   config.segments ? IsLastConvolution : nullptr);
}

Program ImportEfficientNet(const PictureFolder& from) {
  const Config& json = from.json();
  const int64_t divisor = json.Int("depth_divisor");
  auto width = [&](int64_t filters) {
    return networks::MakeDivisible(static_cast<double>(filters) * json.Number("width_coefficient"),
                                   divisor);
  };
  networks::InvertedResidualConfig config{.stem = width(32),
                                          .head = width(1280),
                                          .activation = from.Activation(),
                                          .padding = PictureWindow::Padding::kKeras,
                                          .epsilon = json.Number("batch_norm_eps"),
                                          .picture = from.Picture()};
  config.pools_maximum = json.Text("pooling_type") == "max";
  if (!config.pools_maximum && json.Text("pooling_type") != "mean")
    json.Refuse("pooling_type", "mean or max");
  config.labels = from.HasHead(kClassification) ? from.Labels() : 0;
  const std::vector<int64_t> in = json.Ints("in_channels"), out = json.Ints("out_channels"),
                             kernels = json.Ints("kernel_sizes"), strides = json.Ints("strides"),
                             repeats = json.Ints("num_block_repeats"),
                             ratios = json.Ints("expand_ratios"),
                             centred = json.Ints("depthwise_padding");
  networks::CheckPositive("in_channels", in);
  networks::CheckPositive("out_channels", out);
  networks::CheckPositive("kernel_sizes", kernels);
  networks::CheckPositive("strides", strides);
  networks::CheckPositive("num_block_repeats", repeats);
  networks::CheckPositive("expand_ratios", ratios);
  for (const auto* list : {&out, &kernels, &strides, &repeats, &ratios})
    if (list->size() != in.size())
      json.Refuse("in_channels", "lists of the same length for all stages");
  for (size_t stage = 0; stage < in.size(); ++stage) {
    const double blocks =
        std::ceil(json.Number("depth_coefficient") * static_cast<double>(repeats[stage]));
    if (!(blocks >= 1 && blocks <= static_cast<double>(networks::kMaxLayers)))
      json.Refuse("depth_coefficient", "at most 1024 blocks in each stage");
    for (int64_t i = 0; i < static_cast<int64_t>(blocks); ++i) {
      const int64_t width_in = width(i == 0 ? in[stage] : out[stage]);
      networks::InvertedBlock block{.depthwise_kernel = kernels[stage],
                                    .squeeze = true,
                                    .out = width(out[stage]),
                                    .stride = i == 0 ? strides[stage] : 1,
                                    .activation = config.activation,
                                    .padding = config.padding};
      if (ratios[stage] != 1) block.expanded = width_in * ratios[stage];
      if (std::ranges::find(centred, static_cast<int64_t>(config.blocks.size())) != centred.end())
        block.padding = PictureWindow::Padding::kHalf;
      block.residual = i > 0;
      config.blocks.push_back(block);
    }
  }
  return BuiltFrom(from, {"efficientnet.", ""}, Names(kEfficientNetNames), config,
                   networks::BuildInvertedResidualNetwork);
}

constexpr std::string_view kConvNextDefaults = R"({"depths": [3, 3, 9, 3],
    "hidden_sizes": [96, 192, 384, 768], "patch_size": 4, "hidden_act": "gelu",
    "layer_norm_eps": 1e-12, "image_size": 224})";
const PictureNetRow kConvolutionNetRows[] = {
    {"convnext", kConvNextDefaults, ImportConvNext},
    {"convnextv2", kConvNextDefaults, ImportConvNext},
    {"dinov3_convnext",
     R"({"depths": [3, 3, 9, 3], "hidden_sizes": [96, 192, 384, 768], "hidden_act": "gelu",
         "layer_norm_eps": 1e-6, "image_size": 224})",
     ImportDinoConvNext},
    {"efficientnet",
     R"({"image_size": 600, "width_coefficient": 2.0, "depth_coefficient": 3.1,
         "depth_divisor": 8, "kernel_sizes": [3, 3, 5, 3, 5, 5, 3],
         "in_channels": [32, 16, 24, 40, 80, 112, 192],
         "out_channels": [16, 24, 40, 80, 112, 192, 320], "depthwise_padding": [],
         "strides": [1, 2, 2, 2, 1, 2, 1], "num_block_repeats": [1, 2, 2, 3, 3, 4, 1],
         "expand_ratios": [1, 6, 6, 6, 6, 6, 6], "hidden_act": "swish", "pooling_type": "mean",
         "batch_norm_eps": 0.001})",
     ImportEfficientNet},
    {"hgnet_v2", kHgNetDefaults, ImportHgNet},
    {"mobilenet_v1",
     R"({"image_size": 224, "depth_multiplier": 1.0, "min_depth": 8, "hidden_act": "relu6",
         "tf_padding": true, "layer_norm_eps": 0.001})",
     ImportMobileNetV1},
    {"mobilenet_v2",
     R"({"image_size": 224, "depth_multiplier": 1.0, "depth_divisible_by": 8, "min_depth": 8,
         "expand_ratio": 6, "output_stride": 32, "first_layer_is_expansion": true,
         "finegrained_output": true, "hidden_act": "relu6", "tf_padding": true,
         "layer_norm_eps": 0.001})",
     ImportMobileNetV2},
    {"regnet",
     R"({"embedding_size": 32, "hidden_sizes": [128, 192, 512, 1088], "depths": [2, 6, 12, 2],
         "groups_width": 64, "layer_type": "y", "hidden_act": "relu",
         "downsample_in_first_stage": true})",
     ImportRegNet},
    {"resnet", kResNetDefaults, ImportResNet},
};

}  // namespace

networks::ResidualConfig ReadResNet(const Config& json) {
  using Config = networks::ResidualConfig;
  const bool deep = json.Text("model_type", "") == "rt_detr_resnet";
  const int64_t embedding = json.Int("embedding_size");
  const std::string type = json.Text("layer_type");
  if (type != "basic" && type != "bottleneck")
    throw Error("unsupported-architecture", "\"{}\" is \"{}\"", json.KeyPath("layer_type"), type)
        .At({json.file(), fmt::format("key \"{}\"", json.KeyPath("layer_type"))})
        .Expected("basic or bottleneck");
  constexpr int64_t kReduction = 4;  // of a bottleneck
  Config config{.stem = deep ? Config::Stem::kDeep : Config::Stem::kSeven,
                .block = type == "basic" ? Config::Block::kBasic : Config::Block::kBottleneck,
                .depths = json.Ints("depths"),
                .widths = json.Ints("hidden_sizes"),
                .downsample_in_first_stage = json.Bool("downsample_in_first_stage"),
                .stride_in_first_unit = json.Bool("downsample_in_bottleneck"),
                .average_shortcut = deep,
                .shortcut_in_first_stage = deep && type == "basic",
                .activation = ActivationOf(json, "hidden_act"),
                // The convolutions within blocks do not read the key (modeling_resnet.py).
                .inner_activation = networks::Activation::kRelu};
  config.stem_widths = {embedding};
  if (deep) config.stem_widths = {embedding / 2, embedding / 2, embedding};
  for (int64_t width : config.widths) {
    config.inner_widths.push_back(type == "basic" ? width : width / kReduction);
    config.groups.push_back(1);
  }
  return config;
}

networks::HgNetConfig ReadHgNet(const Config& given) {
  const Config json = given.WithDefaults(kHgNetDefaults);
  networks::HgNetConfig config;
  config.activation = ActivationOf(json, "hidden_act");
  config.affine = json.Bool("use_learnable_affine_block");
  auto refuse = [&](const char* key, const std::string& expected) {
    throw Error("bad-file", "\"{}\" is {}", json.KeyPath(key), json.Json(key))
        .At({json.file(), fmt::format("key \"{}\"", json.KeyPath(key))})
        .Expected("{}", expected);
  };
  const std::vector<int64_t> stem = json.Ints("stem_channels"),
                             widths = json.Ints("stage_in_channels");
  if (stem.size() != 3) refuse("stem_channels", "three numbers");
  config.stem = stem[1], config.stem_out = stem[2];
  config.stages.resize(widths.size());
  auto read = [&](const char* key, auto set) {
    const std::vector<int64_t> values = json.Ints(key);
    if (values.size() != widths.size()) refuse(key, fmt::format("{} numbers", widths.size()));
    for (size_t i = 0; i < values.size(); ++i) set(config.stages[i], values[i]);
  };
  using Stage = networks::HgNetStage;
  read("stage_in_channels", [](Stage& stage, int64_t value) { stage.in = value; });
  read("stage_mid_channels", [](Stage& stage, int64_t value) { stage.inner = value; });
  read("stage_out_channels", [](Stage& stage, int64_t value) { stage.out = value; });
  read("stage_num_blocks", [](Stage& stage, int64_t value) { stage.blocks = value; });
  read("stage_kernel_size", [](Stage& stage, int64_t value) { stage.kernel = value; });
  read("stage_numb_of_layers", [](Stage& stage, int64_t value) { stage.layers = value; });
  auto read_flags = [&](const char* key, bool Stage::*flag) {
    const std::vector<bool> values = json.Bools(key);
    if (values.size() != widths.size()) refuse(key, fmt::format("{} flags", widths.size()));
    for (size_t i = 0; i < values.size(); ++i) config.stages[i].*flag = values[i];
  };
  read_flags("stage_downsample", &Stage::downsample);
  read_flags("stage_light_block", &Stage::light);
  return config;
}
std::span<const TensorName> HgNetNames() { return kHgNetNames; }

std::span<const TensorName> ResNetNames() { return kResNetNames; }
std::span<const PictureNetRow> ConvolutionNetRows() { return kConvolutionNetRows; }

}  // namespace mlc::safetensors
