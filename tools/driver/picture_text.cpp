#include "tools/driver/picture_text.h"

#include <nlohmann/json.hpp>

#include "lib/support/error.h"
#include "lib/support/json_text.h"

namespace mlc::driver {

namespace {

constexpr char kEntry[] = "mlc.image_text";

std::string Replaced(std::string text, std::string_view field, const std::string& by) {
  for (size_t at = 0; (at = text.find(field, at)) != text.npos; at += by.size())
    text.replace(at, field.size(), by);
  return text;
}

}  // namespace

std::string PictureText::Written(const std::string& token, int64_t count, int64_t rows,
                                 int64_t columns) const {
  std::string image;
  for (int64_t i = 0; i < count; ++i) image += token;
  if (rows == 0 || columns == 0) return Replaced(picture, "{image}", image);
  std::string tiles;
  for (int64_t row = 1; row <= rows; ++row) {
    for (int64_t column = 1; column <= columns; ++column) {
      const std::string placed = Replaced(Replaced(tile, "{row}", std::to_string(row)), "{column}",
                                          std::to_string(column));
      tiles += Replaced(placed, "{image}", image);
    }
    tiles += end_of_row;
  }
  return Replaced(Replaced(tiled, "{image}", image), "{tiles}", tiles);
}

PictureText PictureTextOf(const Program& program, const std::string& token) {
  PictureText text;
  for (const auto& [name, value] : program.interface.metadata) {
    if (name != kEntry) continue;
    const nlohmann::ordered_json json = ParseJsonIfValid(value);
    if (!json.is_object())
      throw Error("bad-file", "the metadata entry {} is not a JSON object", kEntry);
    for (const auto& [key, member] : {std::pair{"placeholder", &text.placeholder},
                                      {"inserted", &text.inserted},
                                      {"picture", &text.picture},
                                      {"tiled", &text.tiled},
                                      {"tile", &text.tile},
                                      {"end_of_row", &text.end_of_row},
                                      {"behind", &text.behind}}) {
      const auto found = json.find(key);
      if (found == json.end()) continue;
      if (!found->is_string())
        throw Error("bad-file", "\"{}\" of the metadata entry {} is not a text", key, kEntry);
      *member = found->get<std::string>();
    }
    text.in_front = json.contains("behind");
  }
  if (text.placeholder.empty()) text.placeholder = token;
  if (text.inserted.empty()) text.inserted = text.placeholder;
  return text;
}

}  // namespace mlc::driver
