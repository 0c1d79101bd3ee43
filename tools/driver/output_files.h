// tools/driver/output_files.h - single outputs in files that users name.
#pragma once

#include <filesystem>
#include <string>

#include "lib/ir/program.h"

namespace mlc::driver {

struct OutputToFile {
  const Port* port = nullptr;
  std::filesystem::path path;
  double scale = 1;  // of the values of a picture
};

// Parses "NAME=FILE" or, for a picture, "NAME=FILE,SCALE", where SCALE is a number or a fraction.
// Reports conflicts with existing files. Errors "usage", "bad-name", and those of Staging.
OutputToFile ParseOutputFile(const std::string& text, const Function& function);

// Writes a tensor as .npy, or as a picture: an image output, or an array [height, width],
// [channels, height, width] or [height, width, channels] with one or three channels, optionally with
// a leading 1. Its values times the scale are rounded to 0..255. Error "bad-input" if the tensor is
// no picture, has values that are not finite, or none above 1 and no scale.
void Write(const OutputToFile& file, const Tensor& tensor);

}  // namespace mlc::driver
