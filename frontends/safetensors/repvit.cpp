// RepViTs of timm (timm/models/repvit.py), also as towers of EdgeTAM.

#include "lib/networks/repvit.h"

#include "frontends/safetensors/timm.h"

namespace mlc::safetensors {

namespace {

constexpr TimmRow kRepVits[] = {
    {"repvit_m1", R"({"embed_dim": [48, 96, 192, 384], "depth": [2, 2, 14, 2], "legacy": true})"},
    {"repvit_m2", R"({"embed_dim": [64, 128, 256, 512], "depth": [2, 2, 12, 2], "legacy": true})"},
    {"repvit_m3", R"({"embed_dim": [64, 128, 256, 512], "depth": [4, 4, 18, 2], "legacy": true})"},
    {"repvit_m0_9", R"({"embed_dim": [48, 96, 192, 384], "depth": [2, 2, 14, 2]})"},
    {"repvit_m1_0", R"({"embed_dim": [56, 112, 224, 448], "depth": [2, 2, 14, 2]})"},
    {"repvit_m1_1", R"({"embed_dim": [64, 128, 256, 512], "depth": [2, 2, 12, 2]})"},
    {"repvit_m1_5", R"({"embed_dim": [64, 128, 256, 512], "depth": [4, 4, 24, 4]})"},
    {"repvit_m2_3", R"({"embed_dim": [80, 160, 320, 640], "depth": [6, 6, 34, 2]})"},
};

// `stages` is how the folder names a stage.
void AddNames(TensorNameList& names, const std::string& stages) {
  auto pair = [&](const std::string& ours, const std::string& theirs) {
    names.Add(ours + ".conv", theirs + ".c");
    names.Add(ours + ".norm", theirs + ".bn");
  };
  auto block = [&](const std::string& ours, const std::string& theirs) {
    pair(ours + "mixer.large", theirs + "token_mixer.conv");
    pair(ours + "mixer.small", theirs + "token_mixer.conv1");
    names.Add(ours + "mixer.small.conv", theirs + "token_mixer.conv1");
    names.Add(ours + "mixer.norm", theirs + "token_mixer.bn");
    names.Add(ours + "squeeze.reduce", theirs + "se.fc1");
    names.Add(ours + "squeeze.expand", theirs + "se.fc2");
    pair(ours + "up", theirs + "channel_mixer.conv1");
    pair(ours + "down", theirs + "channel_mixer.conv2");
  };
  const std::string down = "stage.{}.down.", downsample = stages + "downsample.";
  block("stage.{}.block.{}.", stages + "blocks.{}.");
  block(down + "block.", downsample + "pre_block.");
  pair(down + "spatial", downsample + "spatial_downsample");
  pair(down + "channels", downsample + "channel_downsample");
  pair(down + "wide.up", downsample + "ffn.conv1");
  pair(down + "wide.down", downsample + "ffn.conv2");
}

TensorNameList RepVitNames() {
  TensorNameList names;
  names.Add("stem.{}.conv", "stem.conv{+1}.c");
  names.Add("stem.{}.norm", "stem.conv{+1}.bn");
  AddNames(names, "stages.{}.");
  AddNames(names, "stages_{}.");  // as a tower, whose stages are modules of their own
  for (auto [ours, theirs] : {std::pair("head.0.", "head.head."), {"head.1.", "head.head_dist."}}) {
    names.Add(std::string(ours) + "norm", std::string(theirs) + "bn");
    names.Add(std::string(ours) + "linear", std::string(theirs) + "l");
  }
  return names;
}

Program BuildRepVit(const TimmFolder& timm) {
  CheckArguments(timm, {"act_layer", "depth", "distillation", "embed_dim", "kernel_size", "legacy",
                        "mlp_ratio"});
  networks::RepVitConfig config = ReadRepVit(timm.arguments);
  config.activation = TimmActivation(timm, config.activation);
  config.picture = timm.picture;
  config.labels = timm.labels;
  return BuiltTimm(timm, RepVitTensors(), config, networks::BuildRepVit);
}

constexpr TimmFamily kFamilies[] = {{kRepVits, BuildRepVit}};

}  // namespace

std::span<const TimmFamily> TimmRepVits() { return kFamilies; }

const std::vector<TensorName>& RepVitTensors() {
  static const TensorNameList names = RepVitNames();
  return names.rows();
}

std::string_view RepVitArguments(std::string_view architecture) {
  for (const TimmRow& row : kRepVits)
    if (row.architectures == architecture.substr(0, architecture.find('.'))) return row.arguments;
  return {};
}

networks::RepVitConfig ReadRepVit(const Config& arguments) {
  return {.widths = arguments.Ints("embed_dim"),
          .depths = arguments.Ints("depth"),
          .kernel = arguments.Int("kernel_size", 3),
          .feed_forward = arguments.Int("mlp_ratio", 2),
          .outer_norm = !arguments.Bool("legacy", false)};
}

}  // namespace mlc::safetensors
