#include <png.h>

#include <algorithm>
#include <memory>

#include "lib/media/picture_formats.h"
#include "lib/support/error.h"

namespace mlc::media {
namespace {

// libpng's simplified interface.
struct Image : png_image {
  Image() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~Image() { png_image_free(this); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
};

}  // namespace

Tensor DecodePng(std::span<const std::byte> bytes) {
  Image image;
  auto check = [&](int done) {
    if (!done) throw Error("bad-file", "the PNG file is damaged: {}", image.message);
  };
  check(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()));
  if (image.format & PNG_FORMAT_FLAG_LINEAR)
    throw Error("bad-file", "the PNG file has 16 bits per channel")
        .Expected("at most 8")
        .Help("convert it: magick IN.png -depth 8 OUT.png");
  const bool colour = image.format & PNG_FORMAT_FLAG_COLOR;
  const bool alpha = image.format & PNG_FORMAT_FLAG_ALPHA;
  const int64_t height = image.height, width = image.width;
  const int64_t kept = colour ? 3 : 1, channels = kept + alpha;
  CheckSize(height, width, channels);
  image.format = (colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY) | (alpha ? PNG_FORMAT_FLAG_ALPHA : 0);
  std::vector<std::byte> pixels(static_cast<size_t>(height * width * channels));
  check(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr));
  if (alpha) {
    std::vector<std::byte> opaque;
    opaque.reserve(static_cast<size_t>(height * width * kept));
    for (size_t at = 0; at < pixels.size(); at += static_cast<size_t>(channels)) {
      if (pixels[at + static_cast<size_t>(kept)] != std::byte(255))
        throw Error("bad-file", "the picture has transparent pixels")
            .Expected("a picture without transparency")
            .Help("put it on a background: magick IN.png -background white -flatten OUT.png");
      opaque.insert(opaque.end(), pixels.begin() + static_cast<ptrdiff_t>(at),
                    pixels.begin() + static_cast<ptrdiff_t>(at) + kept);
    }
    pixels = std::move(opaque);
  }
  Dims dims = {height, width};
  if (colour) dims.push_back(3);
  return Tensor::Owned(DType::kUint8, std::move(dims), std::move(pixels));
}

std::string EncodePng(const Tensor& picture) {
  Image image;
  image.height = static_cast<png_uint_32>(picture.dims()[0]);
  image.width = static_cast<png_uint_32>(picture.dims()[1]);
  image.format = picture.rank() == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  const Pin<uint8_t> pixels = picture.data<uint8_t>();
  auto check = [&](int done) {
    if (!done) throw Error("resource-limit", "the picture cannot be written: {}", image.message);
  };
  png_alloc_size_t size = 0;
  check(png_image_write_get_memory_size(image, size, 0, pixels.span().data(), 0, nullptr));
  std::string bytes(size, '\0');
  check(
      png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.span().data(), 0, nullptr));
  bytes.resize(size);
  return bytes;
}

}  // namespace mlc::media
