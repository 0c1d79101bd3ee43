#include "backends/apple/images.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/apple/coreml_errors.h"

namespace mlc::apple {
namespace {

// The byte offsets of the channels in a pixel: red, green, blue, or only gray.
struct FormatRow {
  OSType format;
  int channels, bytes;
  int place[3];
  DType dtype = DType::kUint8;  // type of a channel
};
constexpr FormatRow kFormats[] = {
    {kCVPixelFormatType_32BGRA, 3, 4, {2, 1, 0}},
    {kCVPixelFormatType_32ARGB, 3, 4, {1, 2, 3}},
    {kCVPixelFormatType_OneComponent8, 1, 1, {0, 0, 0}},
    {kCVPixelFormatType_OneComponent16Half, 1, 2, {0, 0, 0}, DType::kFp16},
};

const FormatRow& RowOf(OSType format) {
  for (const FormatRow& row : kFormats)
    if (row.format == format) return row;
  throw Error("schema-mismatch", "unsupported pixel format {:#x}", format)
      .Expected("BGRA, ARGB, 8-bit or 16-bit gray");
}

// Locks the memory of the pixels during its lifetime.
class Locked {
 public:
  Locked(CVPixelBufferRef buffer, CVPixelBufferLockFlags flags) : buffer_(buffer), flags_(flags) {
    CVReturn status = CVPixelBufferLockBaseAddress(buffer, flags);
    if (status != kCVReturnSuccess)
      throw Error("runtime-failed", "Core Video cannot lock the pixels: status {}", status);
    base_ = static_cast<std::byte*>(CVPixelBufferGetBaseAddress(buffer));
    row_bytes_ = CVPixelBufferGetBytesPerRow(buffer);
  }
  Locked(const Locked&) = delete;
  ~Locked() { CVPixelBufferUnlockBaseAddress(buffer_, flags_); }
  std::byte* row(int64_t y) const { return base_ + y * row_bytes_; }

 private:
  CVPixelBufferRef buffer_;
  CVPixelBufferLockFlags flags_;
  std::byte* base_;
  size_t row_bytes_;  // rows may be padded
};

// Calls fn(offset in the buffer, element of the tensor) for each channel of each pixel.
template <class F>
void ForEach(const FormatRow& row, const Locked& pixels, int64_t height, int64_t width, bool bgr,
             F fn) {
  for (int c = 0; c < row.channels; ++c) {
    const int place = row.place[bgr ? row.channels - 1 - c : c];
    for (int64_t y = 0; y < height; ++y) {
      std::byte* bytes = pixels.row(y) + place;
      for (int64_t x = 0; x < width; ++x) fn(bytes + x * row.bytes, (c * height + y) * width + x);
    }
  }
}

}  // namespace

int64_t Channels(OSType format) { return RowOf(format).channels; }
DType ChannelType(OSType format) { return RowOf(format).dtype; }

PixelBuffer ToPixels(const Tensor& tensor, OSType format, bool bgr) {
  const FormatRow& row = RowOf(format);
  const int64_t height = tensor.dims()[2], width = tensor.dims()[3];
  // Core ML expects buffers that can be shared with the GPU.
  NSDictionary* attributes =
      [NSDictionary dictionaryWithObject:[NSDictionary dictionary]
                                  forKey:(__bridge NSString*)kCVPixelBufferIOSurfacePropertiesKey];
  CVPixelBufferRef made = nullptr;
  CVReturn status = CVPixelBufferCreate(kCFAllocatorDefault, width, height, format,
                                        (__bridge CFDictionaryRef)attributes, &made);
  if (status != kCVReturnSuccess || !made)
    throw Error("runtime-failed", "Core Video cannot create a buffer of {} x {} pixels: status {}",
                width, height, status);
  PixelBuffer buffer(made);
  Locked pixels(made, 0);
  if (row.dtype == DType::kFp16) {
    const Pin<std::byte> halves = tensor.Cast(DType::kFp16).bytes();
    ForEach(row, pixels, height, width, bgr, [&](std::byte* place, int64_t element) {
      std::memcpy(place, halves.data() + 2 * element, 2);
    });
    return buffer;
  }
  const Pin<float> values = tensor.Cast(DType::kFp32).data<float>();
  if (row.bytes == 4)
    for (int64_t y = 0; y < height; ++y) std::fill_n(pixels.row(y), width * 4, std::byte{255});
  ForEach(row, pixels, height, width, bgr, [&](std::byte* byte, int64_t element) {
    const float value = std::nearbyint(values[element]);
    *byte = std::byte(value > 0 ? std::min(value, 255.0f) : 0.0f);  // NaN becomes 0
  });
  return buffer;
}

Tensor ToTensor(CVPixelBufferRef buffer, bool bgr) {
  const FormatRow& row = RowOf(CVPixelBufferGetPixelFormatType(buffer));
  const auto height = static_cast<int64_t>(CVPixelBufferGetHeight(buffer));
  const auto width = static_cast<int64_t>(CVPixelBufferGetWidth(buffer));
  Locked pixels(buffer, kCVPixelBufferLock_ReadOnly);
  std::byte* to = nullptr;
  const size_t size = ByteCount(row.dtype, 1);
  Tensor tensor = Tensor::Allocate(row.dtype, {1, row.channels, height, width}, &to);
  ForEach(row, pixels, height, width, bgr, [&](const std::byte* place, int64_t element) {
    std::memcpy(to + element * size, place, size);
  });
  return tensor;
}

}  // namespace mlc::apple
