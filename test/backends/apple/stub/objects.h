// objects.h - declarations shared by the stub's Objective-C++ sources.
#pragma once

#import <CoreML/CoreML.h>

#include <memory>
#include <vector>

#include "test/backends/apple/stub/engine.h"
#include "test/backends/apple/stub/switches.h"

// An array with gaps, filled with values that no model computes.
struct MLStubArray {
  mlc::DType dtype = mlc::DType::kNone;
  mlc::Dims dims, strides;
  size_t offset = 0;  // bytes before the first element
  std::vector<std::byte> storage;
  size_t element() const { return mlc::ByteCount(dtype, 1); }
  std::byte* first() { return storage.data() + offset; }
};

struct MLStubOwner {
  std::shared_ptr<MLStubModel> model;
};

@interface MLMultiArray (Stub)
// Stored with gaps, or with an offset in `storage`.
+ (MLMultiArray*)arrayOf:(mlc::DType)dtype
                    dims:(const mlc::Dims&)dims
                  padded:(bool)padded
                  offset:(bool)offset;
- (mlc::Tensor)tensor;
- (void)setTensor:(const mlc::Tensor&)tensor;
@end
@interface MLModelDescription (Stub)
+ (MLModelDescription*)of:(std::shared_ptr<MLStubModel>)model;
@end
@interface MLState (Stub)
+ (MLState*)of:(std::shared_ptr<MLStubModel>)model;  // retained
@end

namespace mlc::stub {

OSType PixelFormat(const MLStubFeature& feature);
CVPixelBufferRef NewPixels(const Tensor& tensor, const MLStubFeature& feature);  // retained
Tensor FromPixels(CVPixelBufferRef buffer, bool bgr);  // uint8, or fp16 for half-precision formats

NSArray<id<MLComputeDeviceProtocol>>* AllDevices();
NSString* ToString(const std::string& text);
MLMultiArrayDataType DataType(DType dtype);
NSArray<NSNumber*>* Numbers(const Dims& dims);
// An error of the domain com.apple.CoreML with an underlying error.
NSError* MakeError(const std::string& words);
// Calls the handler on this thread or on another one (switch handler-thread). The work must own its
// data.
void Answer(std::function<void()> work);

}  // namespace mlc::stub
