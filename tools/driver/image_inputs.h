// tools/driver/image_inputs.h - image inputs: the option that declares them, and the conversion of
// pictures to tensors.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "lib/ir/import_options.h"

namespace mlc::driver {

// Parses the value of --image, "NAME=rgb|bgr|gray[,SCALE[,BIAS]]": the model receives pixel * SCALE
// + BIAS, each one number or one per channel, in the order of the layout. The keys "scale=",
// "bias=", "mean=" and "std=" are accepted, too: (pixel * SCALE - MEAN) / STD, where SCALE defaults
// to 1/255, or to 1 if a mean or std above 1 implies that they are in pixel units. Numbers may be
// fractions. Error "usage".
std::pair<std::string, ImportOptions::Image> ParseImageOption(const std::string& text);

// The inverse of ParseImageOption.
std::string ImageOption(const std::string& name, const ImportOptions::Image& image);

// Converts a numeric tensor to the pixels of an image input of shape [1, channels, height, width]:
// fp32 from 0 to 255. Accepts a picture [height, width, channels] in the order red, green, blue (or
// [height, width] for gray), optionally with a leading 1; or [1, channels, height, width] in the
// input's channel order. Error "bad-input".
Tensor ToPixels(const Tensor& tensor, const Value& input, const Port& port);

}  // namespace mlc::driver
