#include "tools/mlc/picture.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lib/engine/random.h"
#include "lib/ir/given.h"

namespace mlc {

OnnxOptions::Image ParseImage(const std::string& text) {
  auto fail = [&](std::string what) {
    return Error("usage", fmt::format("--image: \"{}\" {}", text, what))
        .Expected(
            "rgb, bgr or gray; then SCALE; then BIAS: pixel * SCALE + BIAS, e.g. rgb,0.0039,0")
        .Help("SCALE and BIAS are one number, or three of each for rgb and bgr");
  };
  OnnxOptions::Image image;
  std::string layout = text.substr(0, text.find(','));
  if (layout == "bgr")
    image.feature = Port::Feature::kImageBgr;
  else if (layout == "gray")
    image.feature = Port::Feature::kImageGray;
  else if (layout != "rgb")
    throw fail("begins with no known layout");
  std::vector<float> numbers;
  for (size_t at = layout.size(); at < text.size();) {
    const char* begin = text.c_str() + at + 1;
    char* end = nullptr;
    numbers.push_back(std::strtof(begin, &end));
    at = static_cast<size_t>(end - text.c_str());
    if (end == begin || !std::isfinite(numbers.back()) || (at < text.size() && text[at] != ','))
      throw fail("has something else than a number behind a comma");
  }
  size_t count = numbers.size();
  bool gray = image.feature == Port::Feature::kImageGray;
  if (count > 2 && (gray || (count != 4 && count != 6)))
    throw fail(fmt::format("has {} numbers", count));
  size_t scales = count == 6 ? 3 : std::min<size_t>(count, 1);
  if (scales) image.scale.assign(numbers.begin(), numbers.begin() + scales);
  if (count > scales) image.bias.assign(numbers.begin() + scales, numbers.end());
  return image;
}

bool IsPicture(std::span<const std::byte> bytes) {
  return bytes.size() > 2 && bytes[0] == std::byte('P') &&
         (bytes[1] == std::byte('5') || bytes[1] == std::byte('6')) &&
         std::isspace(static_cast<unsigned char>(bytes[2]));
}

Tensor ReadPicture(const std::filesystem::path& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  auto fail = [&](std::string_view what) {
    return Error("bad-file", fmt::format("a picture with {}", what)).At({path.string(), ""});
  };
  size_t at = 2;
  auto number = [&] {  // behind white space and comments
    while (at < bytes.size() &&
           (std::isspace(static_cast<unsigned char>(bytes[at])) || bytes[at] == '#'))
      at = bytes[at] == '#' ? std::min(bytes.find('\n', at), bytes.size()) : at + 1;
    int64_t value = 0;
    auto [end, error] = std::from_chars(bytes.data() + at, bytes.data() + bytes.size(), value);
    if (error != std::errc() || value < 1) throw fail("a damaged header");
    at = static_cast<size_t>(end - bytes.data());
    return value;
  };
  int64_t width = number(), height = number(), most = number();
  if (most > 255) throw fail(fmt::format("values up to {}, expected 255 at most", most));
  Dims dims = {height, width};
  if (bytes[1] == '6') dims.push_back(3);
  int64_t size = ElementCount(dims);
  if (++at > bytes.size() || static_cast<int64_t>(bytes.size() - at) < size)
    throw fail("fewer pixels than its header says");
  std::vector<std::byte> pixels(file->bytes().begin() + at, file->bytes().begin() + at + size);
  if (most < 255)
    for (std::byte& pixel : pixels)
      pixel = std::byte(std::min<int64_t>(255, std::to_integer<int64_t>(pixel) * 255 / most));
  return Tensor::Owned(DType::kUint8, dims, std::move(pixels));
}

namespace {
// [1, channels, height, width] of an image input; open sizes are those of the given tensor.
Dims PixelDims(const Shape& shape, int64_t channels, const Dims& given) {
  size_t height = given.size() == 4 ? (given[1] == channels ? 2 : 1)
                  : given.size() == 3 && channels == 1 && given[0] == 1 ? 1
                                                                        : 0;
  Dims dims = {1, channels};
  for (size_t d = 2; d < 4; ++d) {
    size_t from = height + d - 2;
    dims.push_back(shape[d].is_constant() ? shape[d].constant()
                   : from < given.size()  ? given[from]
                                          : 0);
  }
  return dims;
}
}  // namespace

Tensor ToPixels(const Tensor& tensor, const Value& input, const Port& port) {
  const int64_t channels = port.feature == Port::Feature::kImageGray ? 1 : 3;
  Dims dims = tensor.dims(), want = PixelDims(input.type.shape, channels, dims);
  const int64_t height = want[2], width = want[3];
  // Core ML's images have pixels of 8 bits.
  Tensor pixels = TakeGiven(tensor, DType::kUint8, DType::kFp32,
                            {"bad-input", fmt::format("image \"{}\"", port.source_name)});
  if (dims == want) return pixels;
  Tensor picture = pixels;
  if (channels == 1 && (dims == Dims{height, width} || dims == Dims{1, height, width}))
    picture = pixels.Reshaped({height, width, 1});
  else if (dims == Dims{1, height, width, channels})
    picture = pixels.Reshaped({height, width, channels});
  if (picture.dims() != Dims{height, width, channels})
    throw Error("bad-input", fmt::format("image \"{}\" is given as [{}]", port.source_name,
                                         fmt::join(dims, ", ")))
        .Expected(fmt::format("[{0}, {1}, {2}] or [1, {2}, {0}, {1}]", height, width, channels));
  Tensor planes = picture.Transposed({2, 0, 1});
  std::vector<float> ordered;
  for (int64_t c = 0; c < channels; ++c) {
    int64_t plane = port.feature == Port::Feature::kImageBgr ? channels - 1 - c : c;
    std::span<const float> data =
        planes.data<float>().subspan(plane * height * width, height * width);
    ordered.insert(ordered.end(), data.begin(), data.end());
  }
  return Tensor::Of(want, ordered);
}

Tensor RandomPixels(const Dims& dims, uint64_t seed, uint64_t stream) {
  Tensor normal = RandomTensor(DType::kFp32, dims, seed, stream);
  std::vector<float> pixels;
  for (float x : normal.data<float>())
    pixels.push_back(std::clamp(std::round(127.5f + 50 * x), 0.0f, 255.0f));
  return Tensor::Of(dims, pixels);
}

}  // namespace mlc
