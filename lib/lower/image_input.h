// lib/lower/image_input.h - inputs that are images.
#pragma once

#include <string_view>

#include "lib/ir/builder.h"
#include "lib/ir/import_options.h"

namespace mlc::lower {

// Adds an input of pixels [1, channels, height, width], fp32 from 0 to 255, and its port, of which
// the caller sets what concerns the source. Returns pixel * scale + bias, in fp32.
Value* AddImageInput(Builder& b, Function& function, std::string_view name, const Shape& shape,
                     const ImportOptions::Image& image);

}  // namespace mlc::lower
