// Folders of timm (huggingface/pytorch-image-models), and its ResNets (timm/models/resnet.py).

#include "frontends/safetensors/timm.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "frontends/safetensors/activation_names.h"
#include "lib/support/edit_distance.h"

namespace mlc::safetensors {

namespace {

using networks::ResidualConfig;

constexpr TensorName kResNetTensors[] = {
    {"stem.0.conv", "conv1"},
    {"stem.0.norm", "bn1"},
    {"stage.{}.block.{}.unit.{}.conv", "layer{+1}.{}.conv{+1}"},
    {"stage.{}.block.{}.unit.{}.norm", "layer{+1}.{}.bn{+1}"},
    {"stage.{}.block.{}.shortcut.conv", "layer{+1}.{}.downsample.0"},
    {"stage.{}.block.{}.shortcut.norm", "layer{+1}.{}.downsample.1"},
    {"stage.{}.block.{}.squeeze.reduce", "layer{+1}.{}.se.fc1"},
    {"stage.{}.block.{}.squeeze.expand", "layer{+1}.{}.se.fc2"},
    {"stage.{}.block.{}.squeeze.along", "layer{+1}.{}.se.conv"},
    {"classifier", "fc"},
};
constexpr TensorName kDeepResNetTensors[] = {
    {"stem.0.conv", "conv1.0"},
    {"stem.0.norm", "conv1.1"},
    {"stem.1.conv", "conv1.3"},
    {"stem.1.norm", "conv1.4"},
    {"stem.2.conv", "conv1.6"},
    {"stem.2.norm", "bn1"},
    {"stem.pool.conv", "maxpool.0"},
    {"stem.pool.norm", "maxpool.1"},
    {"stage.{}.block.{}.unit.{}.conv", "layer{+1}.{}.conv{+1}"},
    {"stage.{}.block.{}.unit.{}.norm", "layer{+1}.{}.bn{+1}"},
    {"stage.{}.block.{}.shortcut.conv", "layer{+1}.{}.downsample.0"},
    {"stage.{}.block.{}.shortcut.norm", "layer{+1}.{}.downsample.1"},
    {"stage.{}.block.{}.squeeze.reduce", "layer{+1}.{}.se.fc1"},
    {"stage.{}.block.{}.squeeze.expand", "layer{+1}.{}.se.fc2"},
    {"stage.{}.block.{}.squeeze.along", "layer{+1}.{}.se.conv"},
    {"classifier", "fc"},
};

// Averaging, which comes before the convolution, is counted as a layer.
constexpr TensorName kAveragedShortcut[] = {
    {"stage.{}.block.{}.shortcut.conv", "layer{+1}.{}.downsample.1"},
    {"stage.{}.block.{}.shortcut.norm", "layer{+1}.{}.downsample.2"},
};

constexpr std::string_view kResNets[] = {
    "resnet{10t,14t,18,18d,26,26d,26t,34,34d,50,50c,50d,50s,50t,101,101c,101d,101s}",
    "resnet{152,152c,152d,152s,200,200d}",
    "wide_resnet{50,101}_2",
    "resnext50{,d}_32x4d",
    "resnext101_{32x4d,32x8d,32x16d,32x32d,64x4d}",
    "seresnet{18,34,50,50t,101,152,152d,200d,269d}",
    "seresnext26{d,t}_32x4d",
    "seresnext50_32x4d",
    "seresnext101_{32x4d,32x8d,64x4d}",
    "seresnext101d_32x8d",
    "ecaresnet{26t,50d,50t,101d,200d,269d}",
    "ecaresnext26t_32x4d",
    "resnetrs{50,101,152,200,270,350,420}",
};
// How deep the stages of a network are by its number of layers.
struct DepthRow {
  int64_t layers;
  std::vector<int64_t> depths;
  bool basic = false;  // blocks
};
const DepthRow kDepths[] = {
    {10, {1, 1, 1, 1}, true}, {14, {1, 1, 1, 1}},       {18, {2, 2, 2, 2}, true},
    {26, {2, 2, 2, 2}},       {34, {3, 4, 6, 3}, true}, {50, {3, 4, 6, 3}},
    {101, {3, 4, 23, 3}},     {152, {3, 8, 36, 3}},     {200, {3, 24, 36, 3}},
    {269, {3, 30, 48, 8}},    {270, {4, 29, 53, 4}},    {350, {4, 36, 72, 4}},
    {420, {4, 44, 87, 4}},
};

Program BuildResNet(const TimmFolder& timm) {
  CheckArguments(timm, {});
  ResidualConfig config = *TimmResNet(timm.architecture);
  config.picture = timm.picture;
  config.labels = timm.labels;
  const auto rows = config.stem == ResidualConfig::Stem::kSeven
                        ? std::span<const TensorName>(kResNetTensors)
                        : std::span<const TensorName>(kDeepResNetTensors);
  std::vector<TensorName> names(rows.begin(), rows.end());
  if (config.average_shortcut)
    names.insert(names.begin(), std::begin(kAveragedShortcut), std::end(kAveragedShortcut));
  return BuiltTimm(timm, std::move(names), config, networks::BuildResidualNetwork);
}

// Returns the size of pictures that the name of an architecture ends with; 224 without.
int64_t SideByName(std::string_view architecture) {
  constexpr int64_t kUsual = 224, kDinoV2 = 518;
  if (architecture.ends_with("_dinov2")) return kDinoV2;
  const size_t begin = architecture.find_last_not_of("0123456789") + 1;
  int64_t side = 0;
  std::from_chars(architecture.data() + begin, architecture.data() + architecture.size(), side);
  return side >= kUsual / 2 && side <= 1024 ? side : kUsual;
}

// Reads the steps that timm/data/transforms_factory.py applies to pictures from the pretrained
// configuration.
void ReadPicture(TimmFolder& timm) {
  const PictureFolder& from = timm.from;
  const int64_t side = SideByName(timm.architecture);
  networks::GridSize size = {side, side};
  int64_t channels = 3;
  std::optional<ImageProcessor> processor;
  if (from.json().kind("pretrained_cfg") == Config::Kind::kObject) {
    const Config pretrained = from.json().Object("pretrained_cfg");
    if (pretrained.has("input_size")) {
      const std::vector<int64_t> sides = pretrained.Ints("input_size");
      if (sides.size() != 3) pretrained.Refuse("input_size", "channels, height and width");
      channels = sides[0];
      size = {sides[1], sides[2]};
    }
    if (pretrained.has("mean") && pretrained.has("std")) {
      const std::vector<double> mean = pretrained.Numbers("mean"), std = pretrained.Numbers("std");
      constexpr size_t kColours = 3;
      if (mean.size() != kColours || std.size() != kColours ||
          !std::ranges::all_of(std, [](double value) { return value > 0; }))
        pretrained.Refuse("std", "three positive numbers, and three in \"mean\"");
      processor.emplace();
      processor->size = size;
      processor->image.scale.clear();
      processor->image.bias.clear();
      for (size_t i = 0; i < kColours; ++i) {
        processor->image.scale.push_back(static_cast<float>(1 / (255 * std[i])));
        processor->image.bias.push_back(static_cast<float>(-mean[i] / std[i]));
      }
      const double part = pretrained.Number("crop_pct", 0.875);
      if (!(part > 0 && part <= 1)) pretrained.Refuse("crop_pct", "more than 0, at most 1");
      processor->description = fmt::format(
          "Scale pictures so that the shorter side has {} pixels ({}); then cut out their centre "
          "of "
          "{} x {} pixels.",
          Truncated(static_cast<double>(std::min(size.height, size.width)) / part),
          pretrained.Text("interpolation", "bilinear"), size.height, size.width);
    }
  }
  timm.picture = from.Picture(processor, size, timm.arguments.Int("in_chans", channels));
  timm.trained = size;
  if (!timm.arguments.has("img_size")) return;
  if (timm.arguments.kind("img_size") != Config::Kind::kList) {
    timm.trained.height = timm.trained.width = timm.arguments.Int("img_size");
    return;
  }
  const std::vector<int64_t> sides = timm.arguments.Ints("img_size");
  if (sides.size() != 2) timm.arguments.Refuse("img_size", "height and width");
  timm.trained = {sides[0], sides[1]};
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

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string> Alternatives(std::string_view text) {
  const size_t open = text.find('{');
  if (open == text.npos) return {std::string(text)};
  const size_t close = text.find('}', open);
  const std::string_view inside = text.substr(open + 1, close - open - 1);
  const std::vector<std::string> behind = Alternatives(text.substr(close + 1));
  std::vector<std::string> all;
  for (size_t begin = 0; begin <= inside.size();) {
    const size_t end = std::min(inside.find(',', begin), inside.size());
    for (const std::string& rest : behind)
      all.push_back(
          fmt::format("{}{}{}", text.substr(0, open), inside.substr(begin, end - begin), rest));
    begin = end + 1;
  }
  return all;
}

void CheckArguments(const TimmFolder& timm, std::initializer_list<std::string_view> known) {
  // Arguments for training, and those that this file reads.
  constexpr std::string_view kOthers[] = {
      "in_chans",       "num_classes",    "img_size",         "global_pool",     "drop_rate",
      "drop_path_rate", "attn_drop_rate", "proj_drop_rate",   "patch_drop_rate", "pos_drop_rate",
      "weight_init",    "fix_init",       "dynamic_img_size", "strict_img_size", "zero_init_last",
      "init_values",    "bn_momentum",    "drop_block_rate",  "ls_init_value"};
  if (timm.from.json().kind("model_args") != Config::Kind::kObject) return;
  const Config given = timm.from.json().Object("model_args");
  for (const std::string& key : given.keys())
    if (std::ranges::find(known, key) == known.end() &&
        std::ranges::find(kOthers, key) == std::end(kOthers))
      given.Refuse(key, "the default of the architecture");
}

networks::Activation TimmActivation(const TimmFolder& timm, networks::Activation usual) {
  constexpr const char* kKey = "act_layer";
  if (!timm.arguments.has(kKey)) return usual;
  if (timm.arguments.Text(kKey) == "gelu_tanh") return networks::Activation::kGeluTanh;
  return ActivationOf(timm.arguments, kKey);
}

std::optional<ResidualConfig> TimmResNet(std::string_view architecture) {
  if (std::ranges::none_of(kResNets, [&](std::string_view names) {
        return std::ranges::count(Alternatives(names), architecture) > 0;
      }))
    return std::nullopt;
  const bool revised = architecture.starts_with("resnetrs");
  const size_t digits = architecture.find_first_of("0123456789");
  int64_t layers = 0, groups = 1, width = 64;
  const char* const end = architecture.data() + architecture.size();
  const char* after = std::from_chars(architecture.data() + digits, end, layers).ptr;
  const char letter = revised ? 'd' : after < end ? *after : '_';
  const auto row = std::ranges::find(kDepths, layers, &DepthRow::layers);
  const bool deep = letter == 'c' || letter == 'd' || letter == 's' || letter == 't';
  ResidualConfig config{
      .stem = deep ? ResidualConfig::Stem::kDeep : ResidualConfig::Stem::kSeven,
      .stem_widths = {64},
      .block = row->basic ? ResidualConfig::Block::kBasic : ResidualConfig::Block::kBottleneck,
      .depths = row->depths,
      .average_shortcut = letter == 'd' || letter == 't',
      .stem_convolves = revised};
  if (deep) config.stem_widths = {letter == 't' ? 24 : 32, 32, 64};
  if (letter == 's') config.stem_widths = {64, 64, 128};
  if (architecture.starts_with("wide_")) width *= 2;
  if (const size_t at = architecture.find("_32x"), many = architecture.find("_64x");
      at != architecture.npos || many != architecture.npos) {
    const size_t begin = std::min(at, many) + 1;
    const char* x = std::from_chars(architecture.data() + begin, end, groups).ptr;
    std::from_chars(x + 1, end, width);
  }
  if (architecture.starts_with("se") || revised) config.squeeze = ResidualConfig::Squeeze::kEnd;
  if (architecture.starts_with("eca")) config.squeeze = ResidualConfig::Squeeze::kAlong;
  constexpr int64_t kPlanes[] = {64, 128, 256, 512};
  for (int64_t planes : kPlanes) {
    config.widths.push_back(row->basic ? planes : 4 * planes);
    config.inner_widths.push_back(planes * width / 64 * groups);
    config.groups.push_back(groups);
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
  auto add = [&](const std::vector<std::string>& more) { names.insert(more.begin(), more.end()); };
  for (std::string_view row : kResNets) add(Alternatives(row));
  add(TimmMobileNames());
  for (auto families : {TimmConvolutions(), TimmTransformers(), TimmSized(), TimmRepVits()})
    for (const TimmFamily& family : families)
      for (const TimmRow& row : family.rows) add(Alternatives(row.architectures));
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
  if (timm.labels < 0) json.Refuse("num_classes", "0 or more");
  auto build = [&](Program (*network)(const TimmFolder&), std::string_view pool) {
    const std::string wanted = timm.arguments.Text("global_pool", std::string(pool));
    if (json.Text("global_pool", wanted) != wanted) json.Refuse("global_pool", wanted);
    if (pool == "avg" && wanted != pool) timm.arguments.Refuse("global_pool", "avg");
    ReadPicture(timm);
    return network(timm);
  };
  if (TimmResNet(architecture)) return build(BuildResNet, "avg");
  if (IsTimmMobile(architecture)) return build(BuildTimmMobile, "avg");
  for (auto families : {TimmConvolutions(), TimmTransformers(), TimmSized(), TimmRepVits()})
    for (const TimmFamily& family : families)
      for (const TimmRow& row : family.rows)
        if (std::ranges::count(Alternatives(row.architectures), architecture) > 0) {
          timm.arguments = timm.arguments.WithDefaults(row.arguments);
          return build(family.build, family.pool);
        }
  throw Error("unsupported-architecture", "unsupported architecture \"{}\" of timm{}", architecture,
              DidYouMean(TimmArchitectures(), architecture))
      .At({json.file(), "key \"architecture\""});
}

}  // namespace mlc::safetensors
