#include "lib/media/picture.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "lib/media/picture_formats.h"
#include "lib/support/atomic_install.h"
#include "lib/support/error.h"
#include "lib/support/mapped_file.h"

namespace fs = std::filesystem;

namespace mlc::media {
namespace {

struct Format {
  std::string_view name, magic;
  std::string_view extensions[2];
  Tensor (*decode)(std::span<const std::byte> bytes);
  std::string (*encode)(const Tensor& picture);
};
constexpr Format kFormats[] = {
    {"PNG", "\x89PNG\r\n\x1a\n", {".png"}, DecodePng, EncodePng},
    {"JPEG", "\xff\xd8\xff", {".jpg", ".jpeg"}, DecodeJpeg, EncodeJpeg},
    {"PPM", "P6", {".ppm"}, DecodePnm, EncodePnm},
    {"PGM", "P5", {".pgm"}, DecodePnm, EncodePnm},
};

const Format* FormatOf(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Format& format : kFormats) {
    if (!text.starts_with(format.magic)) continue;
    const size_t end = format.magic.size();
    // Two letters begin other files, too.
    if (end > 2 || (text.size() > end && std::isspace(static_cast<unsigned char>(text[end]))))
      return &format;
  }
  return nullptr;
}

const Format* FormatNamed(const fs::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Format& format : kFormats)
    for (const std::string_view known : format.extensions)
      if (!known.empty() && known == extension) return &format;
  return nullptr;
}

// Weights of the pixels that make one pixel of a scaled picture.
struct Taps {
  int64_t first = 0;
  std::vector<int64_t> weights;  // in units of 2^-kBits
};
constexpr int kBits = 22;  // Pillow's PRECISION_BITS

std::vector<Taps> TapsFor(int64_t from, int64_t to) {
  std::vector<Taps> all(static_cast<size_t>(to));
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(scale, 1.0);
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<int64_t>(static_cast<int64_t>(centre - reach + 0.5), 0);
    const auto last = std::min<int64_t>(static_cast<int64_t>(centre + reach + 0.5), from);
    std::vector<double> weights;
    double sum = 0;
    for (int64_t x = first; x < last; ++x) {
      // As Pillow multiplies: a division would round differently.
      const double distance = (static_cast<double>(x) - centre + 0.5) * (1 / reach);
      weights.push_back(std::max(1 - std::fabs(distance), 0.0));
      sum += weights.back();
    }
    Taps& taps = all[i];
    taps.first = first;
    for (const double weight : weights)
      taps.weights.push_back(static_cast<int64_t>(0.5 + weight / sum * (1 << kBits)));
  }
  return all;
}

uint8_t Rounded(int64_t sum) {
  return static_cast<uint8_t>(std::clamp<int64_t>(sum >> kBits, 0, 255));
}

struct Size {
  int64_t height, width, channels;
};
Size SizeOf(const Tensor& picture) {
  const Dims& dims = picture.dims();
  MLC_CHECK(picture.dtype() == DType::kUint8 && (dims.size() == 2 || dims.size() == 3),
            "the tensor is no picture");
  return {dims[0], dims[1], dims.size() == 3 ? dims[2] : 1};
}

Tensor PictureOf(Size size, std::vector<std::byte> pixels) {
  Dims dims = {size.height, size.width};
  if (size.channels == 3) dims.push_back(3);
  return Tensor::Owned(DType::kUint8, std::move(dims), std::move(pixels));
}

}  // namespace

bool IsPicture(std::span<const std::byte> bytes) { return FormatOf(bytes) != nullptr; }
bool HasPictureName(const fs::path& path) { return FormatNamed(path) != nullptr; }

Tensor DecodePicture(std::span<const std::byte> bytes) {
  const Format* format = FormatOf(bytes);
  if (!format)
    throw Error("bad-file", "the file is no picture").Expected("PNG, JPEG, or binary PPM or PGM");
  return format->decode(bytes);
}

Tensor ReadPicture(const fs::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  try {
    return DecodePicture(file->bytes());
  } catch (Error& error) {
    throw error.At({path.string(), ""});
  }
}

void WritePicture(const fs::path& path, const Tensor& picture) {
  const Format* format = FormatNamed(path);
  if (!format)
    throw Error("usage", "\"{}\" has no extension of a picture", path.string())
        .Expected(".png, .jpg, .ppm or .pgm");
  WriteFile(path, format->encode(picture));
}

Tensor Scaled(const Tensor& picture, int64_t height, int64_t width) {
  const Size from = SizeOf(picture);
  const Size to{height, width, from.channels};
  CheckSize(height, width, from.channels);
  const Pin<uint8_t> pin = picture.data<uint8_t>();
  const std::span<const uint8_t> source = pin.span();
  const int64_t channels = from.channels;
  const std::vector<Taps> columns = TapsFor(from.width, width), rows = TapsFor(from.height, height);
  constexpr int64_t kHalf = int64_t{1} << (kBits - 1);
  std::vector<uint8_t> wide(static_cast<size_t>(from.height * width * channels));
  for (int64_t y = 0; y < from.height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c) {
        int64_t sum = kHalf;
        for (size_t t = 0; t < columns[x].weights.size(); ++t)
          sum +=
              columns[x].weights[t] *
              source[(y * from.width + columns[x].first + static_cast<int64_t>(t)) * channels + c];
        wide[(y * width + x) * channels + c] = Rounded(sum);
      }
  const int64_t row = width * channels;
  std::vector<std::byte> pixels(static_cast<size_t>(height * row));
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < row; ++x) {
      int64_t sum = kHalf;
      for (size_t t = 0; t < rows[y].weights.size(); ++t)
        sum += rows[y].weights[t] * wide[(rows[y].first + static_cast<int64_t>(t)) * row + x];
      pixels[y * row + x] = std::byte(Rounded(sum));
    }
  return PictureOf(to, std::move(pixels));
}

Tensor Fitted(const Tensor& picture, int64_t height, int64_t width, Fit fit) {
  const Size size = SizeOf(picture);
  if (size.height == height && size.width == width) return picture;
  if (fit == Fit::kStretch) return Scaled(picture, height, width);
  if (fit == Fit::kNone)
    throw Error("bad-input", "the picture has {} x {} pixels", size.width, size.height)
        .Expected("{} x {}", width, height)
        .Help("pass option 'fit', crop or stretch, to scale pictures");
  // The side that is shorter, relative to what is wanted, gets its size exactly.
  const double scale = std::max(static_cast<double>(height) / static_cast<double>(size.height),
                                static_cast<double>(width) / static_cast<double>(size.width));
  auto scaled = [&](int64_t of, int64_t least) {
    return std::max(least, static_cast<int64_t>(std::llround(scale * static_cast<double>(of))));
  };
  const Tensor covering = Scaled(picture, scaled(size.height, height), scaled(size.width, width));
  const Size whole = SizeOf(covering);
  const int64_t top = (whole.height - height) / 2, left = (whole.width - width) / 2;
  const Pin<uint8_t> pin = covering.data<uint8_t>();
  std::vector<std::byte> pixels;
  for (int64_t y = 0; y < height; ++y) {
    const auto row =
        std::as_bytes(pin.span())
            .subspan(static_cast<size_t>(((top + y) * whole.width + left) * whole.channels),
                     static_cast<size_t>(width * whole.channels));
    pixels.insert(pixels.end(), row.begin(), row.end());
  }
  return PictureOf({height, width, size.channels}, std::move(pixels));
}

}  // namespace mlc::media
