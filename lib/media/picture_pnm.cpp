#include <algorithm>
#include <cctype>
#include <charconv>

#include "lib/media/picture_formats.h"
#include "lib/support/error.h"

namespace mlc::media {

void CheckSize(int64_t height, int64_t width, int64_t channels) {
  constexpr int64_t kMost = int64_t{512} << 20, kMostSide = int64_t{1} << 24;
  if (height > kMostSide || width > kMostSide || height * width > kMost / channels)
    throw Error("resource-limit", "the picture has {} x {} pixels", width, height)
        .Expected("at most 512 MiB of pixels");
}

Tensor DecodePnm(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto fail = [](std::string_view what) { return Error("bad-file", "the picture has {}", what); };
  size_t at = 2;
  auto number = [&] {  // skips white space and comments
    while (at < text.size() &&
           (std::isspace(static_cast<unsigned char>(text[at])) || text[at] == '#'))
      at = text[at] == '#' ? std::min(text.find('\n', at), text.size()) : at + 1;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc() || value < 1) throw fail("a damaged header");
    at = static_cast<size_t>(end - text.data());
    return value;
  };
  const int64_t width = number(), height = number(), most = number();
  if (most > 255) throw fail(fmt::format("values up to {}, expected at most 255", most));
  Dims dims = {height, width};
  if (text[1] == '6') dims.push_back(3);
  CheckSize(height, width, text[1] == '6' ? 3 : 1);
  const int64_t size = ElementCount(dims);
  if (++at > text.size() || static_cast<int64_t>(text.size() - at) < size)
    throw fail("fewer pixels than its header says");
  const auto first = bytes.begin() + static_cast<ptrdiff_t>(at);
  std::vector<std::byte> pixels(first, first + size);
  if (most < 255)
    for (std::byte& pixel : pixels)
      pixel = std::byte(std::min<int64_t>(255, std::to_integer<int64_t>(pixel) * 255 / most));
  return Tensor::Owned(DType::kUint8, std::move(dims), std::move(pixels));
}

std::string EncodePnm(const Tensor& picture) {
  const Pin<uint8_t> pixels = picture.data<uint8_t>();
  return fmt::format("{}\n{} {}\n255\n", picture.rank() == 3 ? "P6" : "P5", picture.dims()[1],
                     picture.dims()[0]) +
         std::string(reinterpret_cast<const char*>(pixels.span().data()), pixels.span().size());
}

}  // namespace mlc::media
