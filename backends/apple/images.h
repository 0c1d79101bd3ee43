// backends/apple/images.h - tensors [1, channels, height, width] of numbers from 0 to 255 as CVPixelBuffers and back.
//
// A pixel buffer of colours is BGRA, whatever the order of the model's channels, into which Core ML brings it; of the
// tensor, the order is the model's.
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

// 1 (gray) or 3. Error "schema-mismatch" for a format that this code does not know.
int64_t Channels(OSType format);
// fp16, or uint8.
DType ChannelType(OSType format);
// Of any type of numbers; where channels are bytes they are rounded, and cut off at 0 and 255. `bgr`: the order of the tensor's channels. Error
// "runtime-failed" where there is no buffer.
PixelBuffer ToPixels(const Tensor& tensor, OSType format, bool bgr);
// Of ChannelType.
Tensor ToTensor(CVPixelBufferRef buffer, bool bgr);

}  // namespace mlc::apple
