// backends/apple/images.h - converts tensors [1, channels, height, width] with values from 0 to 255
// to CVPixelBuffers and back.
//
// Colour buffers are always BGRA, and Core ML converts them to the channel order of the model.
// Tensors have the order of the model, too.
#pragma once

#import <CoreML/CoreML.h>
#import <CoreVideo/CoreVideo.h>

#include <memory>
#include <type_traits>

#include "lib/ir/tensor.h"

namespace mlc::apple {

struct ReleaseBuffer {
  void operator()(CVPixelBufferRef buffer) const { CVPixelBufferRelease(buffer); }
};
using PixelBuffer = std::unique_ptr<std::remove_pointer_t<CVPixelBufferRef>, ReleaseBuffer>;

// 1 (gray) or 3. Error "schema-mismatch" for an unknown format.
int64_t Channels(OSType format);
// fp16 or uint8.
DType ChannelType(OSType format);
// Accepts any numeric type; for byte channels, values are rounded and clamped to 0 and 255. `bgr`
// is the channel order of the tensor. Error "runtime-failed" if the buffer cannot be created.
PixelBuffer ToPixels(const Tensor& tensor, OSType format, bool bgr);
// The result has the type ChannelType.
Tensor ToTensor(CVPixelBufferRef buffer, bool bgr);

}  // namespace mlc::apple
