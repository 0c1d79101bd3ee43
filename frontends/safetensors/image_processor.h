// frontends/safetensors/image_processor.h - what the image processor of a Hugging Face folder does
// to pictures (preprocessor_config.json).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontends/safetensors/config.h"
#include "lib/ir/import_options.h"
#include "lib/networks/model_ports.h"
#include "lib/networks/position_grid.h"

namespace mlc::safetensors {

struct ImageProcessor {
  // Rescaling and normalisation, which become part of the model.
  ImportOptions::Image image;
  // The size of all pictures after resizing and cropping; none: it depends on the picture.
  std::optional<networks::GridSize> size;
  // The least and the most pixels, if the processor keeps the proportions of pictures (Qwen).
  std::optional<std::pair<int64_t, int64_t>> pixels;
  // Sentences on the resizing and cropping, which remain to the app; empty: none.
  std::string description;
};

// Reads preprocessor_config.json, or the image processor of processor_config.json, with the defaults
// of the class that it names; nothing if the folder has neither. `read`, if not null, receives the
// file. Errors "bad-file", "unsupported-architecture".
std::optional<ImageProcessor> ReadImageProcessor(const std::filesystem::path& folder,
                                                 std::vector<std::filesystem::path>* read);

// Returns the size that such a processor gives to a picture: multiples of `unit` about as large. Error
// "bad-input" for a picture that is too narrow.
networks::GridSize KeptProportions(networks::GridSize picture, int64_t unit,
                                   std::pair<int64_t, int64_t> pixels);

// Returns the input of pictures of a model. Without option 'shape', they have the size `own`, or
// that of the image processor. The input is an image if the folder has an image processor or option
// 'image' declares one, and an array with option 'io' tensor. Errors "usage", "bad-name",
// "input-shape".
networks::PictureInput PictureInputOf(const std::optional<ImageProcessor>& processor,
                                      networks::GridSize own, int64_t channels,
                                      const ImportOptions& options);
// Says in the metadata of a package what the app does to pictures.
void DescribePictures(Program& program, const networks::PictureInput& picture);

// Returns the class labels of config.json (id2label) in order; none if there are none, or only
// numbers (LABEL_0). Equal labels get their numbers.
std::vector<std::string> LabelsOf(const Config& config);

}  // namespace mlc::safetensors
