// Arrays, pixel buffers and feature values.
#include <algorithm>
#include <cstring>
#include <thread>

#include "backends/apple/strided.h"
#include "test/backends/apple/stub/objects.h"

using mlc::Dims;
using mlc::DType;
using mlc::Tensor;
using mlc::apple::CopyStrided;
using mlc::stub::Counted;
using mlc::stub::Is;

namespace mlc::stub {

NSString* ToString(const std::string& text) { return [NSString stringWithUTF8String:text.c_str()]; }

MLMultiArrayDataType DataType(DType dtype) {
  return dtype == DType::kFp64   ? MLMultiArrayDataTypeDouble
         : dtype == DType::kFp32 ? MLMultiArrayDataTypeFloat32
         : dtype == DType::kFp16 ? MLMultiArrayDataTypeFloat16
                                 : MLMultiArrayDataTypeInt32;
}

NSArray<NSNumber*>* Numbers(const Dims& dims) {
  NSMutableArray<NSNumber*>* numbers = [NSMutableArray array];
  for (int64_t dim : dims) [numbers addObject:[NSNumber numberWithLongLong:dim]];
  return numbers;
}

NSError* MakeError(const std::string& words) {
  NSError* below = [NSError errorWithDomain:NSPOSIXErrorDomain
                                       code:5
                                   userInfo:@{NSLocalizedDescriptionKey : @"the deeper cause"}];
  return [NSError
      errorWithDomain:@"com.apple.CoreML"
                 code:3
             userInfo:@{NSLocalizedDescriptionKey : ToString(words), NSUnderlyingErrorKey : below}];
}

void Answer(std::function<void()> work) {
  auto run = [work = std::move(work)] {
    @autoreleasepool {
      work();
    }
  };
  if (Is("handler-thread"))
    std::thread(run).detach();
  else
    run();
}

namespace {

DType FromDataType(MLMultiArrayDataType type) {
  return type == MLMultiArrayDataTypeDouble    ? DType::kFp64
         : type == MLMultiArrayDataTypeFloat32 ? DType::kFp32
         : type == MLMultiArrayDataTypeFloat16 ? DType::kFp16
                                               : DType::kInt32;
}

// Strides with rows padded by three elements; a single row has gaps between its elements.
Dims PaddedStrides(const Dims& dims) {
  if (dims.empty()) return {};
  if (dims.size() == 1) return {2};
  Dims longer = dims;
  longer.back() += 3;
  return StridesOf(longer);
}

size_t Room(const Dims& dims, const Dims& strides) {
  return static_cast<size_t>(mlc::apple::Extent(dims, strides));
}

void Allocate(MLStubArray& array, DType dtype, const Dims& dims, bool padded, bool offset) {
  array.dtype = dtype;
  array.dims = dims;
  array.strides = padded ? PaddedStrides(dims) : StridesOf(dims);
  array.offset = offset ? 5 * array.element() : 0;
  // Unwritten elements are NaN or -1 (bytes 0xff), so that tests notice them.
  array.storage.assign(array.offset + Room(dims, array.strides) * array.element(), std::byte{0xff});
}

}  // namespace
}  // namespace mlc::stub

@implementation MLMultiArray
- (instancetype)initWithShape:(NSArray<NSNumber*>*)shape
                     dataType:(MLMultiArrayDataType)dataType
                        error:(NSError**)error {
  self = [super init];
  if (!self) return nil;
  _array = new MLStubArray;
  ++Counted().arrays;
  Dims dims;
  for (NSNumber* number in shape) dims.push_back([number longLongValue]);
  if (Is("no-memory")) {
    if (error) *error = mlc::stub::MakeError("no memory");
    [self release];
    return nil;
  }
  mlc::stub::Allocate(*_array, mlc::stub::FromDataType(dataType), dims, Is("pad-arrays"), false);
  return self;
}
- (instancetype)initWithDataPointer:(void*)dataPointer
                              shape:(NSArray<NSNumber*>*)shape
                           dataType:(MLMultiArrayDataType)dataType
                            strides:(NSArray<NSNumber*>*)strides
                        deallocator:(void (^)(void* bytes))deallocator
                              error:(NSError**)error {
  [NSException raise:NSInvalidArgumentException format:@"an array over memory of the caller's"];
  return nil;
}
- (void)dealloc {
  if (_array) {
    // Later reads see values that no model computes.
    std::fill(_array->storage.begin(), _array->storage.end(), std::byte{0xee});
    delete _array;
    --Counted().arrays;
  }
  [super dealloc];
}
- (MLMultiArrayDataType)dataType {
  DType dtype = _array->dtype;
  return dtype == DType::kFp64   ? MLMultiArrayDataTypeDouble
         : dtype == DType::kFp32 ? MLMultiArrayDataTypeFloat32
         : dtype == DType::kFp16 ? MLMultiArrayDataTypeFloat16
                                 : MLMultiArrayDataTypeInt32;
}
- (NSArray<NSNumber*>*)shape {
  return mlc::stub::Numbers(_array->dims);
}
- (NSArray<NSNumber*>*)strides {
  return mlc::stub::Numbers(_array->strides);
}
- (NSInteger)count {
  return mlc::ElementCount(_array->dims);
}
- (void*)dataPointer {
  return _array->first();
}
- (void)getBytesWithHandler:(void (^)(const void* bytes, NSInteger size))handler {
  const size_t size = _array->storage.size() - _array->offset;
  if (!Is("moved-bytes")) return handler(_array->first(), size);
  std::vector<std::byte> moved(_array->first(), _array->first() + size);
  handler(moved.data(), size);
  std::fill(moved.begin(), moved.end(), std::byte{0xee});
}
- (void)getMutableBytesWithHandler:(void (^)(void* mutableBytes, NSInteger size,
                                             NSArray<NSNumber*>* strides))handler {
  if (!Is("mutable-strides"))
    return handler(_array->first(), _array->storage.size() - _array->offset, [self strides]);
  // Memory other than that described by strides and dataPointer.
  MLStubArray other;
  mlc::stub::Allocate(other, _array->dtype, _array->dims, true, true);
  CopyStrided(_array->dims, other.element(), _array->first(), _array->strides, other.first(),
              other.strides);
  handler(other.first(), other.storage.size() - other.offset, mlc::stub::Numbers(other.strides));
  CopyStrided(_array->dims, other.element(), other.first(), other.strides, _array->first(),
              _array->strides);
}
@end

@implementation MLMultiArray (Stub)
+ (MLMultiArray*)arrayOf:(DType)dtype
                    dims:(const Dims&)dims
                  padded:(bool)padded
                  offset:(bool)offset {
  MLMultiArray* array = [[[MLMultiArray alloc] init] autorelease];
  array->_array = new MLStubArray;
  ++Counted().arrays;
  mlc::stub::Allocate(*array->_array, dtype, dims, padded, offset);
  return array;
}
- (Tensor)tensor {
  std::byte* to = nullptr;
  Tensor tensor = Tensor::Allocate(_array->dtype, _array->dims, &to);
  CopyStrided(_array->dims, _array->element(), _array->first(), _array->strides, to,
              mlc::StridesOf(_array->dims));
  return tensor;
}
- (void)setTensor:(const Tensor&)tensor {
  mlc::Pin<std::byte> from = tensor.bytes();
  CopyStrided(_array->dims, _array->element(), from.data(), mlc::StridesOf(_array->dims),
              _array->first(), _array->strides);
}
@end

// --- Core Video ---

struct __CVBuffer {
  std::atomic<int> references{1};
  size_t width, height, row_bytes;
  OSType format;
  int locks = 0;
  std::vector<unsigned char> bytes;
};

const CFStringRef kCVPixelBufferIOSurfacePropertiesKey = (CFStringRef) @"IOSurfaceProperties";

CVReturn CVPixelBufferCreate(CFAllocatorRef, size_t width, size_t height, OSType format,
                             CFDictionaryRef, CVPixelBufferRef* made) {
  const size_t pixel = format == kCVPixelFormatType_OneComponent8        ? 1
                       : format == kCVPixelFormatType_OneComponent16Half ? 2
                                                                         : 4;
  if (Is("no-memory")) return kCVReturnError;
  auto* buffer = new __CVBuffer;
  ++Counted().buffers;
  buffer->width = width;
  buffer->height = height;
  buffer->format = format;
  buffer->row_bytes = (width * pixel + 63) / 64 * 64;  // row alignment as in hardware
  buffer->bytes.assign(buffer->row_bytes * height, 0xee);
  *made = buffer;
  return kCVReturnSuccess;
}
CVPixelBufferRef CVPixelBufferRetain(CVPixelBufferRef buffer) {
  if (buffer) ++buffer->references;
  return buffer;
}
void CVPixelBufferRelease(CVPixelBufferRef buffer) {
  if (!buffer || --buffer->references) return;
  delete buffer;
  --Counted().buffers;
}
CVReturn CVPixelBufferLockBaseAddress(CVPixelBufferRef buffer, CVPixelBufferLockFlags) {
  ++buffer->locks;
  return kCVReturnSuccess;
}
CVReturn CVPixelBufferUnlockBaseAddress(CVPixelBufferRef buffer, CVPixelBufferLockFlags) {
  return --buffer->locks < 0 ? kCVReturnInvalidArgument : kCVReturnSuccess;
}
// Null unless it is locked.
void* CVPixelBufferGetBaseAddress(CVPixelBufferRef buffer) {
  return buffer->locks > 0 ? buffer->bytes.data() : nullptr;
}
size_t CVPixelBufferGetBytesPerRow(CVPixelBufferRef buffer) { return buffer->row_bytes; }
size_t CVPixelBufferGetWidth(CVPixelBufferRef buffer) { return buffer->width; }
size_t CVPixelBufferGetHeight(CVPixelBufferRef buffer) { return buffer->height; }
OSType CVPixelBufferGetPixelFormatType(CVPixelBufferRef buffer) { return buffer->format; }

namespace mlc::stub {

OSType PixelFormat(const MLStubFeature& feature) {
  if (feature.port.feature != Port::Feature::kImageGray) return kCVPixelFormatType_32BGRA;
  return feature.port.dtype == DType::kFp16 ? kCVPixelFormatType_OneComponent16Half
                                            : kCVPixelFormatType_OneComponent8;
}

CVPixelBufferRef NewPixels(const Tensor& tensor, const MLStubFeature& feature) {
  const Dims& dims = tensor.dims();
  const bool gray = dims[1] == 1, bgr = feature.port.feature == Port::Feature::kImageBgr;
  CVPixelBufferRef buffer = nullptr;
  if (CVPixelBufferCreate(nullptr, dims[3], dims[2], PixelFormat(feature), nullptr, &buffer) !=
      kCVReturnSuccess)
    return nullptr;
  if (buffer->format == kCVPixelFormatType_OneComponent16Half) {
    for (int64_t y = 0; y < dims[2]; ++y)
      tensor.Cast(DType::kFp16)
          .Read(y * dims[3], dims[3],
                reinterpret_cast<std::byte*>(buffer->bytes.data() + y * buffer->row_bytes));
    return buffer;
  }
  const std::vector<double> values = tensor.Doubles();
  for (int64_t y = 0; y < dims[2]; ++y)
    for (int64_t x = 0; x < dims[3]; ++x)
      for (int64_t c = 0; c < dims[1]; ++c) {
        const int64_t place = gray ? x : 4 * x + (bgr ? c : 2 - c);
        const double value = values[(c * dims[2] + y) * dims[3] + x];
        buffer->bytes[y * buffer->row_bytes + place] =
            static_cast<unsigned char>(std::clamp(value + 0.5, 0.0, 255.0));
      }
  return buffer;
}

Tensor FromPixels(CVPixelBufferRef buffer, bool bgr) {
  const bool gray = buffer->format == kCVPixelFormatType_OneComponent8;
  const bool argb = buffer->format == kCVPixelFormatType_32ARGB;
  const Dims dims = {1, gray ? 1 : 3, static_cast<int64_t>(buffer->height),
                     static_cast<int64_t>(buffer->width)};
  if (buffer->format == kCVPixelFormatType_OneComponent16Half) {
    std::vector<std::byte> halves;
    for (int64_t y = 0; y < dims[2]; ++y) {
      auto* row = reinterpret_cast<std::byte*>(buffer->bytes.data() + y * buffer->row_bytes);
      halves.insert(halves.end(), row, row + 2 * dims[3]);
    }
    return Tensor::Owned(DType::kFp16, {1, 1, dims[2], dims[3]}, std::move(halves));
  }
  std::vector<uint8_t> values;
  for (int64_t c = 0; c < dims[1]; ++c)
    for (int64_t y = 0; y < dims[2]; ++y)
      for (int64_t x = 0; x < dims[3]; ++x) {
        const int64_t red_first = bgr ? 2 - c : c;
        const int64_t place = gray ? x : 4 * x + (argb ? 1 + red_first : 2 - red_first);
        values.push_back(buffer->bytes[y * buffer->row_bytes + place]);
      }
  return Tensor::Of(dims, values);
}

}  // namespace mlc::stub

// --- Feature values ---

@implementation MLFeatureValue
+ (instancetype)of:(MLFeatureType)type object:(id)object {
  MLFeatureValue* value = [[[MLFeatureValue alloc] init] autorelease];
  ++Counted().values;
  value->_type = type;
  value->_object = [object retain];
  return value;
}
+ (instancetype)featureValueWithInt64:(int64_t)value {
  return [self of:MLFeatureTypeInt64 object:[NSNumber numberWithLongLong:value]];
}
+ (instancetype)featureValueWithDouble:(double)value {
  return [self of:MLFeatureTypeDouble object:[NSNumber numberWithDouble:value]];
}
+ (instancetype)featureValueWithString:(NSString*)value {
  return [self of:MLFeatureTypeString object:value];
}
+ (instancetype)featureValueWithMultiArray:(MLMultiArray*)value {
  return [self of:MLFeatureTypeMultiArray object:value];
}
+ (instancetype)featureValueWithDictionary:(NSDictionary*)value error:(NSError**)error {
  return [self of:MLFeatureTypeDictionary object:value];
}
+ (instancetype)featureValueWithPixelBuffer:(CVPixelBufferRef)pixels {
  MLFeatureValue* value = [self of:MLFeatureTypeImage object:nil];
  value->_pixels = CVPixelBufferRetain(pixels);
  return value;
}
- (void)dealloc {
  --Counted().values;
  [_object release];
  CVPixelBufferRelease(_pixels);
  [super dealloc];
}
- (MLFeatureType)type {
  return _type;
}
- (int64_t)int64Value {
  return [_object longLongValue];
}
- (double)doubleValue {
  return [_object doubleValue];
}
- (NSString*)stringValue {
  return _object;
}
- (MLMultiArray*)multiArrayValue {
  return _object;
}
- (NSDictionary*)dictionaryValue {
  return _object;
}
- (CVPixelBufferRef)imageBufferValue {
  return _pixels;
}
@end

@implementation MLDictionaryFeatureProvider
- (instancetype)initWithDictionary:(NSDictionary<NSString*, id>*)dictionary error:(NSError**)error {
  self = [super init];
  if (self) _values = [dictionary copy];
  return self;
}
- (void)dealloc {
  [_values release];
  [super dealloc];
}
- (NSSet<NSString*>*)featureNames {
  return [NSSet setWithArray:[_values allKeys]];
}
- (MLFeatureValue*)featureValueForName:(NSString*)featureName {
  return [_values objectForKey:featureName];
}
@end
