// lib/media/picture_formats.h - coders and decoders of the formats of lib/media/picture.h. Errors have no location.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lib/ir/tensor.h"

namespace mlc::media {

// Error "resource-limit" for more than 512 MiB of pixels.
void CheckSize(int64_t height, int64_t width, int64_t channels);

Tensor DecodePng(std::span<const std::byte> bytes);
std::string EncodePng(const Tensor& picture);
Tensor DecodeJpeg(std::span<const std::byte> bytes);
std::string EncodeJpeg(const Tensor& picture);
// Binary PPM and PGM.
Tensor DecodePnm(std::span<const std::byte> bytes);
std::string EncodePnm(const Tensor& picture);

}  // namespace mlc::media
