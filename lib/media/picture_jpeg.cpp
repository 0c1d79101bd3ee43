#include <turbojpeg.h>

#include <algorithm>
#include <memory>

#include "lib/media/picture_formats.h"
#include "lib/support/error.h"

namespace mlc::media {
namespace {

struct Closed {
  void operator()(tjhandle handle) const { tjDestroy(handle); }
};
using Handle = std::unique_ptr<void, Closed>;

// The orientation that Exif stores, 1 to 8; 1 if there is none. Facts: Exif 2.3, section 4.6.4, and
// TIFF 6.0, section 2.
int OrientationOf(std::span<const std::byte> bytes) {
  constexpr unsigned kScan = 0xda, kApp1 = 0xe1;
  auto at = [&](size_t i) { return i < bytes.size() ? std::to_integer<unsigned>(bytes[i]) : 0; };
  // The segments before the first scan: 0xff, marker, size including itself.
  size_t segment = 2, size = 0;
  for (;; segment += 2 + size) {
    if (at(segment) != 0xff || at(segment + 1) == kScan) return 1;
    size = at(segment + 2) << 8 | at(segment + 3);
    if (size < 2 || segment + 2 + size > bytes.size()) return 1;
    const std::string_view text(reinterpret_cast<const char*>(&bytes[segment + 2]), size);
    if (at(segment + 1) == kApp1 && text.substr(2).starts_with(std::string_view("Exif\0", 6)))
      break;
  }
  const size_t tiff = segment + 10, end = segment + 2 + size;
  const bool little = at(tiff) == 'I';
  auto number = [&](size_t offset, int count) {
    unsigned value = 0;
    for (int i = 0; i < count; ++i)
      value |= (offset + i < end ? at(offset + i) : 0) << 8 * (little ? i : count - 1 - i);
    return value;
  };
  constexpr unsigned kOrientation = 0x0112;
  const size_t directory = tiff + number(tiff + 4, 4);
  if (directory >= end) return 1;
  const unsigned entries = number(directory, 2);
  for (unsigned i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + size_t{12} * i;
    if (entry + 12 > end) return 1;
    if (number(entry, 2) != kOrientation) continue;
    const unsigned value = number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

// Turns a picture as its orientation says.
std::vector<std::byte> Upright(const std::vector<std::byte>& pixels, int64_t height, int64_t width,
                               int64_t channels, int orientation) {
  const bool turned = orientation >= 5;
  // The rows of the stored picture are read from the bottom, and its columns from the right, for some
  // orientations.
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const int64_t rows = turned ? width : height, columns = turned ? height : width;
  std::vector<std::byte> upright;
  upright.reserve(pixels.size());
  for (int64_t y = 0; y < rows; ++y)
    for (int64_t x = 0; x < columns; ++x) {
      int64_t row = turned ? x : y, column = turned ? y : x;
      if (from_bottom) row = height - 1 - row;
      if (from_right) column = width - 1 - column;
      const auto pixel = pixels.begin() + (row * width + column) * channels;
      upright.insert(upright.end(), pixel, pixel + channels);
    }
  return upright;
}

}  // namespace

Tensor DecodeJpeg(std::span<const std::byte> bytes) {
  const Handle handle(tjInitDecompress());
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, sampling = 0, colours = 0;
  auto damaged = [&] {
    return Error("bad-file", "the JPEG file is damaged: {}", tjGetErrorStr2(handle.get()));
  };
  if (tjDecompressHeader3(handle.get(), data, bytes.size(), &width, &height, &sampling, &colours))
    throw damaged();
  if (colours == TJCS_CMYK || colours == TJCS_YCCK)
    throw Error("bad-file", "the JPEG file has the colours of a printer (CMYK)")
        .Expected("RGB or gray")
        .Help("convert it: magick IN.jpg -colorspace sRGB OUT.jpg");
  const bool gray = colours == TJCS_GRAY;
  int64_t rows = height, columns = width;
  const int64_t channels = gray ? 1 : 3;
  CheckSize(rows, columns, channels);
  std::vector<std::byte> pixels(static_cast<size_t>(rows * columns * channels));
  // A file with thousands of scans would take minutes.
  constexpr int kFlags = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
  const int failed = tjDecompress2(handle.get(), data, bytes.size(),
                                   reinterpret_cast<unsigned char*>(pixels.data()), width, 0,
                                   height, gray ? TJPF_GRAY : TJPF_RGB, kFlags);
  // Some cameras write superfluous bytes, which lose nothing.
  const bool harmless = tjGetErrorCode(handle.get()) == TJERR_WARNING &&
                        std::string_view(tjGetErrorStr2(handle.get())).find("extraneous bytes") !=
                            std::string_view::npos;
  if (failed && !harmless) throw damaged();
  if (const int orientation = OrientationOf(bytes); orientation > 1) {
    pixels = Upright(pixels, rows, columns, channels, orientation);
    if (orientation >= 5) std::swap(rows, columns);
  }
  Dims dims = {rows, columns};
  if (!gray) dims.push_back(3);
  return Tensor::Owned(DType::kUint8, std::move(dims), std::move(pixels));
}

std::string EncodeJpeg(const Tensor& picture) {
  constexpr int kQuality = 95;
  const Handle handle(tjInitCompress());
  const bool gray = picture.rank() == 2;
  const Pin<uint8_t> pixels = picture.data<uint8_t>();
  unsigned char* made = nullptr;
  unsigned long size = 0;
  const int failed =
      tjCompress2(handle.get(), pixels.span().data(), static_cast<int>(picture.dims()[1]), 0,
                  static_cast<int>(picture.dims()[0]), gray ? TJPF_GRAY : TJPF_RGB, &made, &size,
                  gray ? TJSAMP_GRAY : TJSAMP_444, kQuality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, decltype(&tjFree)> kept(made, &tjFree);
  if (failed)
    throw Error("resource-limit", "the picture cannot be written: {}",
                tjGetErrorStr2(handle.get()));
  return std::string(reinterpret_cast<const char*>(made), size);
}

}  // namespace mlc::media
