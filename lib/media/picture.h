// lib/media/picture.h - pictures in files: PNG, JPEG, and binary PPM and PGM.
//
// A picture is a tensor of uint8, [height, width, 3] in the order red, green, blue, or [height, width] in gray. Colours are numbers as
// stored: colour profiles and gamma are not applied. Files have at most 8 bits per channel, and no transparent pixels, because what
// lies behind these is unknown. Pixels are limited to 512 MiB.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "lib/ir/tensor.h"

namespace mlc::media {

// By content, and by the extension of a name: .png, .jpg, .jpeg, .ppm or .pgm.
bool IsPicture(std::span<const std::byte> bytes);
bool HasPictureName(const std::filesystem::path& path);

// The picture as viewers show it: the orientation that cameras store in JPEG files is applied. Errors
// "bad-file" and "resource-limit" with a location.
Tensor ReadPicture(const std::filesystem::path& path);
// The same for the bytes of a file; errors have no location.
Tensor DecodePicture(std::span<const std::byte> bytes);

// Writes a file in the format of its extension; JPEG with quality 95 and all of the colour. The file
// appears only once it is complete. Error "usage" for other extensions, and those of Staging.
void WritePicture(const std::filesystem::path& path, const Tensor& picture);

// Scales a picture with Pillow's bilinear filter, to the bit: a triangle as wide as a pixel of the
// smaller picture, first along rows, then along columns, with coefficients in fixed point.
Tensor Scaled(const Tensor& picture, int64_t height, int64_t width);

enum class Fit {
  kNone,
  kStretch,  // scaled in both directions
  kCrop,     // scaled so that it covers the size, then cut on two sides alike
};
// Returns a picture of this size. Error "bad-input" with kNone if it has another one.
Tensor Fitted(const Tensor& picture, int64_t height, int64_t width, Fit fit);

}  // namespace mlc::media
