// tools/driver/foreign_files.h - files of formats that mlc knows but does not read, and the way from each to one that it does.
#pragma once

#include <filesystem>

#include "lib/support/byte_window.h"

namespace mlc::driver {

// Error "unknown-format" for a file or a folder that is given as a model and recognised as something
// else; returns if it is not recognised.
void RefuseForeignModel(const std::filesystem::path& path, ByteWindow& bytes);
void RefuseForeignFolder(const std::filesystem::path& path);
// The same for a file that is given as an input or another tensor.
void RefuseForeignTensor(const std::filesystem::path& path, ByteWindow& bytes);

}  // namespace mlc::driver
