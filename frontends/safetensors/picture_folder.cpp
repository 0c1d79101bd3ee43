#include "frontends/safetensors/picture_folder.h"

#include <fmt/ranges.h>

#include "frontends/safetensors/activation_names.h"

namespace mlc::safetensors {

namespace fs = std::filesystem;

PictureFolder::PictureFolder(const Folder& folder, const ImportOptions& options,
                             Diagnostics& diagnostics, std::vector<fs::path>* read,
                             std::string_view defaults)
    : folder_(folder),
      options_(options),
      diagnostics_(diagnostics),
      read_(read),
      json_(folder.config().WithDefaults(defaults)) {
  if (options.context)
    throw Error("usage", "option 'context' is for language models; this network reads pictures");
  if (!options.dims.empty())
    throw Error("bad-name", "option 'dim' {}: the network has no dynamic dimension",
                options.dims.begin()->first)
        .Help("option 'shape' pixel_values=1,3,H,W sets the size of the picture");
}

int PictureFolder::HeadOf(std::initializer_list<std::string_view> suffixes) const {
  const std::string architecture = folder_.architecture();
  std::vector<std::string> known;
  for (std::string_view suffix : suffixes) {
    if (architecture.ends_with(suffix)) return static_cast<int>(known.size());
    known.push_back(fmt::format("...{}", suffix));
  }
  if (architecture.empty() || architecture.ends_with("Model") || architecture.ends_with("Backbone"))
    return -1;
  json_.Refuse("architectures", fmt::format("{} or ...Model", fmt::join(known, ", ")));
}

int64_t PictureFolder::Labels() const {
  if (!json_.has("id2label")) return json_.Int("num_labels", 2);
  return static_cast<int64_t>(json_.TextMap("id2label").size());
}

networks::Activation PictureFolder::Activation(const std::string& key) const {
  return ActivationOf(json_, key);
}

networks::GridSize PictureFolder::OwnSize() const {
  constexpr const char* kKey = "image_size";
  constexpr int64_t kUsual = 224;
  switch (json_.kind(kKey)) {
    case Config::Kind::kNone:
      return {kUsual, kUsual};
    case Config::Kind::kList: {
      const std::vector<int64_t> sides = json_.Ints(kKey);
      if (sides.size() != 2) json_.Refuse(kKey, "height and width");
      return {sides[0], sides[1]};
    }
    default:
      return {json_.Int(kKey), json_.Int(kKey)};
  }
}

networks::PictureInput PictureFolder::Picture() const {
  return Picture(Processor(), OwnSize(), json_.Int("num_channels", 3));
}

}  // namespace mlc::safetensors
