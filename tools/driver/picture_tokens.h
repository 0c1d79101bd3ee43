// tools/driver/picture_tokens.h - pictures in the text of a language model: the function `vision` turns
// them into rows that take the place of tokens (lib/networks/vision_language.h). What the metadata of
// such a program say is described in frontends/safetensors/vision_language.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/media/picture.h"
#include "tools/driver/model.h"
#include "tools/driver/picture_text.h"
#include "tools/driver/run_tokens.h"

namespace mlc::driver {

// Whether the program has the functions embed_tokens, embeds and vision, and says which token stands for
// a row of a picture.
bool ReadsPictures(const Program& program);

// Rows of a picture, and how they stand in a text.
struct PictureTokens {
  int32_t token = 0;  // that stands for a row
  Tensor rows;        // fp32 [N, width]
  Tensor deepstack;   // fp32 [layers, N, width], added after the first layers; empty: none
  // Rows and columns of a picture, for models whose tokens have places in three directions.
  std::optional<std::pair<int64_t, int64_t>> grid;
  enum class Sight : uint8_t {
    kCausal,
    kPrompt,   // the first tokens see each other both ways
    kPicture,  // the tokens of a picture do
  } sight = Sight::kCausal;
  int64_t window = 0;  // of layers with a window, for kPicture
  // The tiles before the whole picture; 0 x 0: there are none.
  int64_t tile_rows = 0, tile_columns = 0;

  // Rows of the whole picture, and of each tile.
  int64_t rows_of_one() const { return rows.dims()[0] / (tile_rows * tile_columns + 1); }
};

// Computes the rows of a picture: a picture file, or a .npy file with pixels uint8 [height, width, 3], or
// [tiles, height, width, 3], or, if the input is an array, with numbers as the model expects them,
// [..., 3, height, width]. If the model takes tiles, a picture that is a whole number of times as large as
// the input is cut into them, row by row, and the whole picture in the size of a tile follows; tiles in a
// file, whose last is the whole, are a square, or else one row. Throws the errors of ReadInput and of
// predicting, and Error "usage" for a picture if the model takes an array of numbers.
PictureTokens ReadPictureTokens(Model& model, const std::filesystem::path& path, media::Fit fit);

// Returns options with the size of a picture file, for ImportOptions::picture; as they are if there is no file
// or it is not one picture.
ModelOptions ForPicture(ModelOptions options, const std::filesystem::path& path);

// Returns a text with the only placeholder replaced by the text of the picture (PictureText), which precedes
// a text without one; a text that has all tokens of the picture is returned as it is. Error "bad-input" for
// several placeholders.
std::string WithTextOf(const PictureTokens& picture, const PictureText& how,
                       const std::string& token, std::string text);

// Returns the tokens with each single token of a picture replaced by as many as the picture has rows;
// tokens that have as many already are returned as they are. Error "bad-input" for another number.
std::vector<int32_t> WithRowsOf(const PictureTokens& picture, std::vector<int32_t> tokens);

// Feeds tokens and rows of a picture to the functions embed_tokens and embeds.
class PictureFeeder {
 public:
  PictureFeeder(PictureTokens picture, const Function& embed, const Function& embeds)
      : picture_(std::move(picture)), embed_(embed), embeds_(embeds) {}

  // Returns fp32 [tokens, vocabulary] for tokens that follow `seen` earlier ones. Error "bad-input" if
  // there are more tokens of pictures than rows.
  Tensor Append(const Predict& embed, const Predict& predict, std::span<const int32_t> tokens,
                int64_t seen);
  void Forget();  // begins again

 private:
  // `size` is the number of tokens of the functions, of which the last are padding; likewise below.
  Tensor AppendPart(const Predict& embed, const Predict& predict, std::span<const int32_t> tokens,
                    int64_t seen, int64_t size);
  Tensor Embedded(const Predict& embed, std::span<const int32_t> tokens, int64_t size);
  // The rows for the first layers, of tokens whose pictures begin at row `first`.
  Tensor Deepstack(std::span<const int32_t> tokens, int64_t first, int64_t size) const;
  std::vector<int32_t> Places(std::span<const int32_t> tokens, int64_t size);
  Tensor Mask(int64_t count, int64_t seen, int64_t window) const;
  // For a fixed context.
  Tensor FixedMask(int64_t count, int64_t seen, int64_t size, int64_t context) const;

  PictureTokens picture_;
  const Function &embed_, &embeds_;
  int64_t used_ = 0;  // rows
  int64_t placed_ = 0, next_ = 0,
          base_ = 0;          // rows that have places; the next place; that of a picture
  std::vector<int32_t> all_;  // tokens so far
};

}  // namespace mlc::driver
