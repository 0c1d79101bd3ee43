// lib/networks/model_ports.h - inputs and outputs of networks, named as in their source.
#pragma once

#include <optional>
#include <string>

#include "lib/ir/builder.h"
#include "lib/ir/import_options.h"
#include "lib/networks/position_grid.h"

namespace mlc::networks {

// The input of pictures [1, channels, height, width].
struct PictureInput {
  std::string name = "pixel_values";
  GridSize size;
  int64_t channels = 3;
  // An image, scaled and shifted inside the model; none: an array of numbers as the model expects
  // them.
  std::optional<ImportOptions::Image> image;
  std::string description;  // what the app does to a picture before
};
// Returns the pixels as the model expects them.
Value* AddPictureInput(Builder& b, Function& function, const PictureInput& picture);
// Adds an input of token ids, int32 [1, tokens].
Value* AddTokenInput(Function& function, const char* name, const Symbol& sizes);
// Gives the value the name, and makes it the next output, which the source has in fp32. The caller
// sets the outputs of the body.
void AddOutput(Function& function, Value* value, const std::string& name);

}  // namespace mlc::networks
