// tools/driver/picture.h - image inputs: the option that declares them, and pictures as their tensors.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "lib/ir/import_options.h"

namespace mlc {

// "NAME=rgb|bgr|gray[,SCALE[,BIAS]]" as the value of --image: the model gets pixel * SCALE + BIAS,
// each one number or one per channel, in the order of the layout. Also "scale=", "bias=", "mean=", "std=": (pixel * SCALE -
// MEAN) / STD, where SCALE is 1/255 by default, or 1 where a mean or std above 1 shows that they are of pixels.
// A number may be a fraction. Error "usage".
std::pair<std::string, ImportOptions::Image> ParseImageOption(const std::string& text);

// As ParseImageOption takes it.
std::string ImageOption(const std::string& name, const ImportOptions::Image& image);

// Binary PPM and PGM files (P6, P5) with up to 8 bits: uint8 [height, width, 3] or [height, width].
// Error "bad-file".
bool IsPicture(std::span<const std::byte> bytes);
Tensor ReadPicture(const std::filesystem::path& path);

// What an image input of shape [1, channels, height, width] gets, fp32 from 0 to 255, of a tensor
// of numbers: a picture [height, width, channels] in the order red, green, blue (or [height, width]
// for gray), perhaps with a 1 in front; or [1, channels, height, width] in the order of the
// input. Error "bad-input".
Tensor ToPixels(const Tensor& tensor, const Value& input, const Port& port);

}  // namespace mlc
