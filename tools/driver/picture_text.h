// tools/driver/picture_text.h - how a picture stands in a text: the processors of transformers replace the
// placeholder that a chat template writes by the tokens of a picture, which differ from model to model.
#pragma once

#include <cstdint>
#include <string>

#include "lib/ir/program.h"

namespace mlc::driver {

// Read from the entry mlc.image_text of a program's metadata (frontends/safetensors/vision_language.h).
struct PictureText {
  std::string placeholder;  // in chat templates, and in prompts
  std::string inserted;     // the placeholder with what surrounds it, for a text without one
  // The text of a picture. {image} stands for the tokens of a picture, or of one tile.
  std::string picture = "{image}";
  // That of a picture in tiles: {tiles} stands for `tile` for each, with {row} and {column} from 1 on, and
  // `end_of_row` after each row. Empty: the model takes no tiles.
  std::string tiled, tile, end_of_row;
  // The tokens of a picture precede the prompt, with the token that begins a text, and `behind`.
  bool in_front = false;
  std::string behind;

  bool takes_tiles() const { return !tiled.empty(); }
  // Returns the text of a picture of rows x columns tiles and the whole, or of the whole alone (0 x 0), of
  // which each has `count` tokens spelled `token`.
  std::string Written(const std::string& token, int64_t count, int64_t rows, int64_t columns) const;
};

// Without the entry, the text of a picture is its tokens, and `token`, the spelling of one, is the
// placeholder. Error "bad-file" for an entry that is no JSON object of texts.
PictureText PictureTextOf(const Program& program, const std::string& token);

}  // namespace mlc::driver
