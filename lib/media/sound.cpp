// The format: Microsoft's "Multimedia Programming Interface and Data Specifications 1.0", and "Multiple Channel Audio Data and WAVE
// Files" for WAVE_FORMAT_EXTENSIBLE. Numbers are little-endian.
#include "lib/media/sound.h"

#include <bit>
#include <cmath>
#include <optional>

#include "lib/support/error.h"
#include "lib/support/mapped_file.h"

namespace fs = std::filesystem;

namespace mlc::media {
namespace {

constexpr unsigned kInteger = 1, kFloat = 3, kExtensible = 0xfffe;

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t Number(std::span<const std::byte> bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << 8 * i;
  return value;
}

struct Layout {
  unsigned codec = 0, bits = 0;
  int64_t channels = 0, rate = 0;
};

Layout LayoutOf(std::span<const std::byte> chunk) {
  constexpr size_t kPlain = 16, kExtended = 40, kCodecInGuid = 24;
  if (chunk.size() < kPlain) throw Error("bad-file", "the WAV file has a damaged header");
  Layout layout{.codec = static_cast<unsigned>(Number(chunk, 0, 2)),
                .bits = static_cast<unsigned>(Number(chunk, 14, 2)),
                .channels = static_cast<int64_t>(Number(chunk, 2, 2)),
                .rate = static_cast<int64_t>(Number(chunk, 4, 4))};
  if (layout.codec == kExtensible && chunk.size() >= kExtended)
    layout.codec = static_cast<unsigned>(Number(chunk, kCodecInGuid, 2));
  const unsigned bits = layout.bits;
  const bool known = layout.codec == kInteger ? bits == 8 || bits == 16 || bits == 24 || bits == 32
                     : layout.codec == kFloat ? bits == 32 || bits == 64
                                              : false;
  if (!known || layout.channels < 1)
    throw Error("bad-file", "the WAV file has codec {} with {} bits and {} channels", layout.codec,
                bits, layout.channels)
        .Expected(
            "integers (codec 1) of 8, 16, 24 or 32 bits, or floats (codec 3) of 32 or 64 bits")
        .Help("convert it: ffmpeg -i IN.wav -c:a pcm_s16le OUT.wav");
  return layout;
}

float SampleOf(const Layout& layout, uint64_t bits) {
  if (layout.codec == kFloat)
    return layout.bits == 32 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                             : static_cast<float>(std::bit_cast<double>(bits));
  // 8 bits are unsigned, others signed.
  const double half = std::ldexp(1.0, static_cast<int>(layout.bits) - 1);
  double value = static_cast<double>(bits);
  if (layout.bits == 8)
    value -= half;
  else if (value >= half)
    value -= 2 * half;
  return static_cast<float>(value / half);
}

}  // namespace

bool IsSound(std::span<const std::byte> bytes) {
  const std::string_view text = TextOf(bytes);
  return text.size() >= 12 && (text.starts_with("RIFF") || text.starts_with("RF64")) &&
         text.substr(8, 4) == "WAVE";
}

Sound DecodeSound(std::span<const std::byte> bytes) {
  if (!IsSound(bytes)) throw Error("bad-file", "the file is no WAV file");
  if (TextOf(bytes).starts_with("RF64"))
    throw Error("resource-limit", "the sound has more than 4 GiB").Help("cut it into parts");
  std::optional<Layout> layout;
  std::span<const std::byte> data;
  // Chunks: a name of four letters, the size, and contents that are padded to an even size.
  for (size_t at = 12; at + 8 <= bytes.size() && (!layout || data.empty());) {
    const std::string_view name = TextOf(bytes.subspan(at, 4));
    uint64_t size = Number(bytes, at + 4, 4);
    const uint64_t rest = bytes.size() - at - 8;
    // Programs that write to a pipe do not know the size.
    if (name == "data" && (size == 0 || size == UINT32_MAX)) size = rest;
    if (size > rest)
      throw Error("bad-file", "the WAV file ends in its chunk \"{}\", which has {} of {} bytes",
                  name, rest, size);
    const std::span<const std::byte> chunk = bytes.subspan(at + 8, size);
    if (name == "fmt ") layout = LayoutOf(chunk);
    if (name == "data") data = chunk;
    at += 8 + size + size % 2;
  }
  if (!layout) throw Error("bad-file", "the WAV file has no chunk \"fmt \"");
  const size_t width = layout->bits / 8;
  const int64_t channels = layout->channels;
  const auto count = static_cast<int64_t>(data.size() / width) / channels;
  if (count == 0) throw Error("bad-file", "the WAV file has no samples");
  std::vector<float> samples(static_cast<size_t>(count * channels));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t c = 0; c < channels; ++c)
      samples[static_cast<size_t>(c * count + i)] =
          SampleOf(*layout, Number(data, static_cast<size_t>(i * channels + c) * width, width));
  return {Tensor::Of(channels == 1 ? Dims{count} : Dims{channels, count}, samples), layout->rate};
}

Sound ReadSound(const fs::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  try {
    return DecodeSound(file->bytes());
  } catch (Error& error) {
    throw error.At({path.string(), ""});
  }
}

}  // namespace mlc::media
