// frontends/safetensors/picture_nets.h - imports folders of convolutional networks, of transformers on
// maps, and of networks that segment pictures or detect objects in them.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "frontends/safetensors/picture_folder.h"
#include "lib/networks/fastvit.h"
#include "lib/networks/hgnet.h"
#include "lib/networks/repvit.h"
#include "lib/networks/residual_network.h"
#include "lib/networks/window_transformer.h"

namespace mlc::safetensors {

bool IsPictureNet(const Config& config);
std::set<std::string> PictureNetModelTypes();
// Throws the errors of the networks.
Program ImportPictureNet(const Folder& folder, const ImportOptions& options,
                         Diagnostics& diagnostics, std::vector<std::filesystem::path>* read);

// A network by its model_type.
struct PictureNetRow {
  std::string_view model_type;
  std::string_view defaults;  // of the configuration class
  Program (*import)(const PictureFolder& from);
};
std::span<const PictureNetRow> ConvolutionNetRows();  // convolution_nets.cpp
std::span<const PictureNetRow> MapNetRows();          // map_nets.cpp
std::span<const PictureNetRow> DetectorRows();        // detectors.cpp
std::span<const PictureNetRow> SamRows();             // sam.cpp

// Folders of timm have an architecture, the name of a function, in the place of a model_type.
bool IsTimm(const Config& config);
std::set<std::string> TimmArchitectures();
std::vector<std::string> TimmLabels(const Config& config);  // label_names; none without
Program ImportTimm(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                   std::vector<std::filesystem::path>* read);

// The input of a network: that of its configuration, or of its backbone's.
template <class NetConfig>
const networks::PictureInput& PictureOf(const NetConfig& config) {
  if constexpr (requires { config.backbone; }) {
    return config.backbone.picture;
  } else {
    return config.picture;
  }
}
// Keeps only the outputs of these names, in this order; an empty list: all. Error "bad-name".
void SelectOutputs(Program& program, const std::vector<std::string>& names);

// Builds a network from the weights of a folder, all of which it must use but for those that
// `is_left_over` names.
template <class NetConfig>
Program BuiltFrom(const PictureFolder& from, std::vector<std::string> prefixes,
                  std::vector<TensorName> names, const NetConfig& config,
                  Program (*build)(const NetConfig&, const networks::NetworkWeights&, Diagnostics&),
                  bool (*is_left_over)(std::string_view name) = nullptr) {
  FolderWeights weights(from.folder(), std::move(prefixes), std::move(names));
  const networks::NetworkWeights found = weights.ForNetwork();
  Program program = build(config, found, from.diagnostics());
  weights.CheckAllUsed(is_left_over);
  DescribePictures(program, PictureOf(config));
  SelectOutputs(program, from.outputs());
  return program;
}

// Swin and Swin V2, also as the encoder of a decoder of texts (donut-swin, which has no last norm); the
// picture remains to be set.
networks::WindowTransformerConfig ReadSwin(const Config& json, std::string_view type);
std::span<const TensorName> SwinNames();
extern const std::string_view kSwinDefaults;

// timm's FastViTs, also as the towers of FastVLM: the arguments of an architecture (a JSON object; empty if it
// is none), their network, without activation and picture, and the names of its tensors.
std::string_view FastVitArguments(std::string_view architecture);
networks::FastVitConfig ReadFastVit(const Config& arguments);
const std::vector<TensorName>& FastVitTensors();

// The same of RepViTs, which may be the towers of EdgeTAM; the name may be followed by that of weights.
std::string_view RepVitArguments(std::string_view architecture);
networks::RepVitConfig ReadRepVit(const Config& arguments);
const std::vector<TensorName>& RepVitTensors();

// ResNets, also as parts of other networks: of transformers (resnet and rt_detr_resnet, with the
// defaults of their configuration classes), and timm's by name (none for other names).
networks::ResidualConfig ReadResNet(const Config& json);
std::span<const TensorName> ResNetNames();
// HGNetV2 with the defaults of its class, also as the backbone of D-FINE.
networks::HgNetConfig ReadHgNet(const Config& json);
std::span<const TensorName> HgNetNames();
extern const std::string_view kResNetDefaults;
std::optional<networks::ResidualConfig> TimmResNet(std::string_view architecture);
std::span<const TensorName> TimmResNetNames();

}  // namespace mlc::safetensors
