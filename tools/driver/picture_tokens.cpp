#include "tools/driver/picture_tokens.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "lib/ir/concat_slice.h"
#include "lib/support/mapped_file.h"
#include "tools/driver/input_files.h"
#include "tools/driver/supplied_tensors.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

constexpr char kEmbed[] = "embed_tokens", kEmbeds[] = "embeds", kVision[] = "vision";

const Function* FunctionNamed(const Program& program, std::string_view name) {
  for (const auto& function : program.functions)
    if (function->name == name) return function.get();
  return nullptr;
}

const std::string* Entry(const Program& program, std::string_view key) {
  for (const auto& [name, value] : program.interface.metadata)
    if (name == key) return &value;
  return nullptr;
}

// Returns the numbers of a list such as "4,6"; none if one is not a positive number.
std::vector<int64_t> Numbers(const std::string& text) {
  std::vector<int64_t> numbers;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0 || (next < end && *next != ',')) return {};
    numbers.push_back(number);
    at = next < end ? next + 1 : end;
  }
  return numbers;
}

int64_t NumberOf(const Program& program, std::string_view key) {
  const std::string* text = Entry(program, key);
  const std::vector<int64_t> numbers = text ? Numbers(*text) : std::vector<int64_t>();
  return numbers.size() == 1 ? numbers[0] : -1;
}

// The inputs of function `vision` for a file: tiles row by row, and the whole picture.
struct Tiles {
  std::vector<Tensor> parts;
  int64_t rows = 0, columns = 0;
};

// Tiles in a file have no places.
Tiles InSquare(std::vector<Tensor> parts) {
  const auto count = std::ssize(parts) - 1;
  const int64_t side = std::lround(std::sqrt(static_cast<double>(count)));
  const bool square = side * side == count;
  return {std::move(parts), square ? side : 1, square ? side : count};
}

Tiles TilesOf(const fs::path& path, const Port& port, const Value& input, media::Fit fit,
              bool takes_tiles) {
  const int64_t height = input.type.shape[2].constant(), width = input.type.shape[3].constant();
  const Tensor given = ReadTensor(path);
  if (IsFloat(given.dtype())) {
    const Dims dims = given.dims();
    if (given.rank() < 4 || dims.end()[-1] != width || dims.end()[-2] != height ||
        dims.end()[-3] != input.type.shape[1].constant())
      return {{ToInputType(given, input, port)}};
    const int64_t tiles = given.size() / (dims.end()[-3] * height * width);
    const Tensor all = given.Reshaped({tiles, dims.end()[-3], height, width});
    std::vector<Tensor> parts;
    for (int64_t tile = 0; tile < tiles; ++tile)
      parts.push_back(ToInputType(all.Rows(tile, tile + 1), input, port));
    return InSquare(std::move(parts));
  }
  auto planes = [&](const Tensor& tile) {
    return ToInputType(tile.Transposed({2, 0, 1}).Reshaped({1, 3, height, width}), input, port);
  };
  const bool image = port.feature != Port::Feature::kMultiArray && given.dtype() == DType::kUint8;
  std::vector<Tensor> parts;
  if (image && given.rank() == 4 && given.dims() == Dims{given.dims()[0], height, width, 3}) {
    for (int64_t tile = 0; tile < given.dims()[0]; ++tile)
      parts.push_back(planes(given.Rows(tile, tile + 1).Reshaped({height, width, 3})));
    return InSquare(std::move(parts));
  }
  const bool tiled = given.dtype() == DType::kUint8 && given.rank() == 3 && given.dims()[2] == 3 &&
                     given.dims()[0] % height == 0 && given.dims()[1] % width == 0 &&
                     given.dims()[0] * given.dims()[1] > height * width;
  if (!takes_tiles || !tiled || !image || fit != media::Fit::kNone)
    return {{ToInputType(ReadInput(path, port, input, fit), input, port)}};
  const int64_t rows = given.dims()[0] / height, columns = given.dims()[1] / width;
  const Pin<uint8_t> pixels = given.data<uint8_t>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      std::byte* out = nullptr;
      Tensor tile = Tensor::Allocate(DType::kUint8, {height, width, 3}, &out);
      for (int64_t y = 0; y < height; ++y)
        std::memcpy(out + y * width * 3,
                    pixels.data() + ((row * height + y) * columns + column) * width * 3,
                    static_cast<size_t>(width * 3));
      parts.push_back(planes(tile));
    }
  parts.push_back(planes(media::Scaled(given, height, width)));
  return {std::move(parts), rows, columns};
}

}  // namespace

bool ReadsPictures(const Program& program) {
  return FunctionNamed(program, kEmbed) && FunctionNamed(program, kEmbeds) &&
         FunctionNamed(program, kVision) && NumberOf(program, "mlc.image_token") >= 0;
}

ModelOptions ForPicture(ModelOptions options, const fs::path& path) {
  std::error_code ignored;
  if (path.empty() || !fs::is_regular_file(path, ignored)) return options;
  const Tensor given = ReadTensor(path);
  if (given.dtype() == DType::kUint8 && (given.rank() == 2 || given.rank() == 3))
    options.import.picture = {given.dims()[0], given.dims()[1]};
  return options;
}

PictureTokens ReadPictureTokens(Model& model, const fs::path& path, media::Fit fit) {
  const Program& program = *model.program();
  const Function* vision = FunctionNamed(program, kVision);
  if (!ReadsPictures(program) || InputPorts(*vision).size() != 1 ||
      InputPorts(*vision)[0].value.type.rank() != 4)
    throw Error("usage", "--picture: the model does not read pictures beside a text")
        .Expected("a model with the functions embed_tokens, embeds and vision");
  const auto [port, input] = InputPorts(*vision)[0];
  if (port.feature == Port::Feature::kMultiArray &&
      media::IsPicture(MappedFile::Open(path)->bytes()))
    throw NoImageInput(model.path(), *vision);
  const bool takes_tiles = PictureTextOf(program, "").takes_tiles();
  if (fit == media::Fit::kNone && Entry(program, "mlc.image_size")) fit = media::Fit::kStretch;
  const Tiles tiles = TilesOf(path, port, input, fit, takes_tiles);
  const std::unique_ptr<runtime::GuardedModel> instance = model.Load(*vision);
  std::vector<Tensor> rows, deepstack;
  for (const Tensor& tile : tiles.parts) {
    const std::map<std::string, Tensor> outputs = instance->Run({{input.name, tile}}).outputs;
    const Tensor& found = outputs.at(vision->outputs[0].name);
    if (vision->outputs.size() > 1)
      deepstack.push_back(outputs.at(vision->outputs[1].name).Cast(DType::kFp32).InMemory());
    const Dims& dims = found.dims();
    rows.push_back(
        found.Cast(DType::kFp32).Reshaped({found.size() / dims.back(), dims.back()}).InMemory());
  }
  PictureTokens picture{.token = static_cast<int32_t>(NumberOf(program, "mlc.image_token")),
                        .rows = Join(rows, 0).InMemory(),
                        .tile_rows = tiles.rows,
                        .tile_columns = tiles.columns};
  if (!deepstack.empty()) picture.deepstack = Join(deepstack, 1).InMemory();
  if (const std::string* grid = Entry(program, "mlc.image_grid"))
    if (const std::vector<int64_t> sizes = Numbers(*grid);
        sizes.size() == 2 && sizes[0] > 0 && sizes[1] > 0)
      picture.grid = {sizes[0], sizes[1]};
  if (const std::string* mask = Entry(program, "mlc.image_mask"))
    picture.sight =
        *mask == "prompt" ? PictureTokens::Sight::kPrompt : PictureTokens::Sight::kPicture;
  picture.window = std::max<int64_t>(0, NumberOf(program, "mlc.image_window"));
  return picture;
}

std::string WithTextOf(const PictureTokens& picture, const PictureText& how,
                       const std::string& token, std::string text) {
  auto count = [&](const std::string& part) {
    int64_t found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
    return found;
  };
  const int64_t rows = picture.rows.dims()[0];
  if (rows > 1 && count(token) == rows) return text;
  const std::string written =
      how.Written(token, picture.rows_of_one(), picture.tile_rows, picture.tile_columns);
  const int64_t places = count(how.placeholder);
  if (places > 1)
    throw Error("bad-input", "the text has {} places for a picture ({})", places, how.placeholder)
        .Expected("one, for the picture that is given");
  if (places == 0) text.insert(0, how.inserted);
  return text.replace(text.find(how.placeholder), how.placeholder.size(), written);
}

std::vector<int32_t> WithRowsOf(const PictureTokens& picture, std::vector<int32_t> tokens) {
  const auto count = std::ranges::count(tokens, picture.token), rows = picture.rows.dims()[0];
  if (count == rows) return tokens;
  if (count != 1)
    throw Error("bad-input", "the text has {} tokens {} for a picture of {} rows", count,
                picture.token, rows)
        .Expected("one, or {}", rows);
  const auto place = std::ranges::find(tokens, picture.token);
  tokens.insert(place, static_cast<size_t>(rows - 1), picture.token);
  return tokens;
}

void PictureFeeder::Forget() {
  used_ = placed_ = next_ = base_ = 0;
  all_.clear();
}

Tensor PictureFeeder::Embedded(const Predict& embed, std::span<const int32_t> tokens,
                               int64_t size) {
  const std::string& name = InputPorts(embed_)[0].value.name;
  std::vector<int32_t> ids(tokens.begin(), tokens.end());
  ids.resize(static_cast<size_t>(size), 0);
  const Tensor found =
      embed({{name, Tensor::Of<int32_t>({1, size}, ids)}}).at(embed_.outputs[0].name);
  std::vector<float> values(static_cast<size_t>(found.size()));
  found.Cast(DType::kFp32).Read(0, found.size(), reinterpret_cast<std::byte*>(values.data()));
  const auto width = static_cast<size_t>(found.dims().back());
  const Pin<float> rows = picture_.rows.data<float>();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != picture_.token) continue;
    if (used_ == picture_.rows.dims()[0])
      throw Error("bad-input", "the text has more tokens {} than the picture has rows ({})",
                  picture_.token, used_);
    std::copy_n(rows.data() + static_cast<size_t>(used_++) * width, width,
                values.data() + i * width);
  }
  return Tensor::Of<float>(found.dims(), values);
}

Tensor PictureFeeder::Deepstack(std::span<const int32_t> tokens, int64_t first,
                                int64_t size) const {
  const Dims& dims = picture_.deepstack.dims();
  const auto width = static_cast<size_t>(dims[2]);
  std::vector<float> values(static_cast<size_t>(dims[0] * size) * width, 0);
  const Pin<float> rows = picture_.deepstack.data<float>();
  for (int64_t layer = 0; layer < dims[0]; ++layer)
    for (int64_t i = 0, row = first; i < std::ssize(tokens); ++i)
      if (tokens[static_cast<size_t>(i)] == picture_.token)
        std::copy_n(rows.data() + static_cast<size_t>(layer * dims[1] + row++) * width, width,
                    values.data() + static_cast<size_t>(layer * size + i) * width);
  return Tensor::Of<float>({dims[0], size, dims[2]}, values);
}

// Follows transformers' modeling_qwen2_vl.py, get_rope_index: a picture is at one time, in rows and columns,
// and the text goes on behind the greatest of its places.
std::vector<int32_t> PictureFeeder::Places(std::span<const int32_t> tokens, int64_t size) {
  const auto [rows, columns] = picture_.grid.value_or(std::pair<int64_t, int64_t>{1, 1});
  const auto count = static_cast<size_t>(size);
  std::vector<int32_t> places(3 * count, 0);
  for (size_t i = 0; i < tokens.size(); ++i) {
    int64_t time = next_, row = next_, column = next_;
    if (tokens[i] == picture_.token) {
      const int64_t at = placed_++ % (rows * columns);
      if (at == 0) base_ = next_;
      time = base_;
      row = base_ + at / columns;
      column = base_ + at % columns;
      next_ = at + 1 == rows * columns ? base_ + std::max(rows, columns) : next_;
    } else {
      ++next_;
    }
    places[i] = static_cast<int32_t>(time);
    places[count + i] = static_cast<int32_t>(row);
    places[2 * count + i] = static_cast<int32_t>(column);
  }
  return places;
}

Tensor PictureFeeder::Mask(int64_t count, int64_t seen, int64_t window) const {
  constexpr float kHidden = -4e4f;  // lib/networks/decoder.h
  const int64_t end = seen + count;
  std::vector<float> mask(static_cast<size_t>(count * end), 0);
  if (picture_.sight == PictureTokens::Sight::kCausal)
    return Tensor::Of<float>({1, 1, count, end}, mask);
  // The pictures that tokens belong to: neighbours of the same kind.
  std::vector<int64_t> block(static_cast<size_t>(end), -1);
  for (int64_t i = 0, last = -1; i < end; ++i) {
    if (all_[static_cast<size_t>(i)] != picture_.token) continue;
    const bool goes_on = i > 0 && all_[static_cast<size_t>(i - 1)] == picture_.token;
    block[static_cast<size_t>(i)] = last = goes_on ? last : i;
  }
  const bool prompt = picture_.sight == PictureTokens::Sight::kPrompt && seen == 0;
  for (int64_t q = 0; q < count; ++q)
    for (int64_t k = 0; k < end; ++k) {
      const int64_t at = seen + q, own = block[static_cast<size_t>(at)];
      const bool before = k <= at && (window == 0 || at - k < window);
      const bool together = picture_.sight == PictureTokens::Sight::kPicture && own >= 0 &&
                            own == block[static_cast<size_t>(k)];
      if (!before && !prompt && !together) mask[static_cast<size_t>(q * end + k)] = kHidden;
    }
  return Tensor::Of<float>({1, 1, count, end}, mask);
}

Tensor PictureFeeder::FixedMask(int64_t count, int64_t seen, int64_t size, int64_t context) const {
  constexpr float kHidden = -4e4f;  // lib/networks/decoder.h
  std::vector<float> mask(static_cast<size_t>(size * context), kHidden);
  for (int64_t i = 0; i < count; ++i) std::fill_n(mask.begin() + i * context, seen + i + 1, 0.0f);
  return Tensor::Of<float>({1, 1, size, context}, mask);
}

Tensor PictureFeeder::Append(const Predict& embed, const Predict& predict,
                             std::span<const int32_t> tokens, int64_t seen) {
  const auto count = static_cast<int64_t>(tokens.size());
  all_.resize(static_cast<size_t>(seen));
  all_.insert(all_.end(), tokens.begin(), tokens.end());
  Dim declared(count);
  for (const auto& [port, value] : InputPorts(embeds_))
    if (value.name == "inputs_embeds") declared = value.type.shape[1];
  // As few calls as possible, each with the smallest size that holds its tokens.
  const int64_t most = declared.Bounds(embeds_.symbols).high;
  std::vector<Tensor> rows;
  for (int64_t first = 0; first < count; first += most) {
    const int64_t part = std::min(most, count - first);
    rows.push_back(AppendPart(embed, predict,
                              tokens.subspan(static_cast<size_t>(first), static_cast<size_t>(part)),
                              seen + first, SizeFor(embeds_, declared, part)));
  }
  return rows.size() == 1 ? rows[0] : Join(rows, 0).InMemory();
}

Tensor PictureFeeder::AppendPart(const Predict& embed, const Predict& predict,
                                 std::span<const int32_t> tokens, int64_t seen, int64_t size) {
  const auto count = static_cast<int64_t>(tokens.size());
  const int64_t first = used_;
  const Tensor embedded = Embedded(embed, tokens, size);
  std::map<std::string, Tensor> inputs;
  for (const auto& [port, value] : InputPorts(embeds_)) {
    const DType dtype = value.type.dtype;
    const Shape& shape = value.type.shape;
    if (value.name == "inputs_embeds")
      inputs[value.name] = embedded.Cast(dtype);
    else if (value.name == "deepstack_embeds" && picture_.deepstack)
      inputs[value.name] = Deepstack(tokens, first, size).Cast(dtype);
    else if (value.name == "causalMask" && shape[3].is_constant())
      inputs[value.name] = FixedMask(count, seen, size, shape[3].constant()).Cast(dtype);
    else if (value.name == "causalMask")
      inputs[value.name] = Mask(count, seen, 0).Cast(dtype);
    else if (value.name == "windowMask")
      inputs[value.name] = Mask(count, seen, picture_.window).Cast(dtype);
    else if (value.name == "position_ids")
      inputs[value.name] = Tensor::Of<int32_t>({3, size}, Places(tokens, size));
  }
  const Tensor logits = predict(inputs).at("logits");
  return logits.Cast(DType::kFp32).Reshaped({size, logits.dims().back()}).Rows(0, count).InMemory();
}

}  // namespace mlc::driver
