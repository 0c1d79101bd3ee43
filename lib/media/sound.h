// lib/media/sound.h - sounds in files: WAV.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "lib/ir/tensor.h"

namespace mlc::media {

struct Sound {
  Tensor samples;    // fp32 in -1..1, [samples] with one channel, otherwise [channels, samples]
  int64_t rate = 0;  // samples per second
};

bool IsSound(std::span<const std::byte> bytes);

// Reads integers of 8 to 32 bits, which are divided by the magnitude of the least one, and floats of
// 32 or 64 bits, which are returned as stored. Error "bad-file" for other codecs and damaged files.
Sound ReadSound(const std::filesystem::path& path);
// The same for the bytes of a file; errors have no location.
Sound DecodeSound(std::span<const std::byte> bytes);

}  // namespace mlc::media
