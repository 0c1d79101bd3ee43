// frontends/safetensors/vision_language.h - imports folders of models that read pictures and texts as
// Programs with the functions of lib/networks/decoder.h and vision_language.h.
//
// The metadata of the program say how pictures and texts meet:
//
//   mlc.image_token   the token that stands for one row of image_features
//   mlc.image_text    how a picture stands in a text: a JSON object with members of PictureText
//                     (tools/driver/picture_text.h); without it, its tokens take the place of one
//   mlc.image_grid    "ROWS,COLUMNS" of image_features, for models with places in three directions
//   mlc.image_size    "of the picture": the size of the input follows from ImportOptions::picture, which
//                     is scaled to it
//   mlc.image_window  the number of tokens that a token sees in layers with a window
//   mlc.image_mask    "prompt" or "picture": what sees each other both ways
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "frontends/safetensors/folder.h"
#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc::safetensors {

bool IsVisionLanguage(const Config& config);
Program ImportVisionLanguage(const Folder& folder, const ImportOptions& options,
                             Diagnostics& diagnostics, std::vector<std::filesystem::path>* read);

}  // namespace mlc::safetensors
