#include "backends/apple/arrays.h"

#include <fmt/ranges.h>

#include <atomic>

#include "backends/apple/coreml_errors.h"
#include "backends/apple/strided.h"

namespace mlc::apple {
namespace {

struct TypeRow {
  MLMultiArrayDataType type;
  DType dtype;
};
constexpr TypeRow kTypes[] = {
    {MLMultiArrayDataTypeDouble, DType::kFp64},
    {MLMultiArrayDataTypeFloat32, DType::kFp32},
    {MLMultiArrayDataTypeFloat16, DType::kFp16},
    {MLMultiArrayDataTypeInt32, DType::kInt32},
    // MLMultiArrayDataTypeInt8 (INT8 in Model.proto), which older SDKs do not declare.
    {static_cast<MLMultiArrayDataType>(0x20000 | 8), DType::kInt8},
};

struct Counts {
  std::atomic<int64_t> made{0}, reused{0}, idle{0}, idle_bytes{0};
};
Counts& Counted() {
  static Counts counts;
  return counts;
}

int64_t Bytes(const std::pair<DType, Dims>& kind) {
  return static_cast<int64_t>(ByteCount(kind.first, ElementCount(kind.second)));
}

void CheckSize(const Dims& dims, const Dims& strides, size_t element, NSInteger size) {
  const int64_t extent = Extent(dims, strides);
  if (size < 0 || extent > static_cast<int64_t>(size / element))
    throw Error("schema-mismatch",
                "Core ML's array of shape [{}] with strides [{}] and {} bytes per element has "
                "only {} bytes",
                fmt::join(dims, ", "), fmt::join(strides, ", "), element,
                static_cast<int64_t>(size));
}

}  // namespace

DType ToDType(MLMultiArrayDataType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row.dtype;
  throw Error("schema-mismatch", "Core ML returned an array of unknown type {:#x}",
              static_cast<int64_t>(type));
}

MLMultiArrayDataType FromDType(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row.type;
  MLC_CHECK(false, "no array type for {}", Name(dtype));
}

NSArray<NSNumber*>* FromDims(const Dims& dims) {
  NSMutableArray<NSNumber*>* numbers = [NSMutableArray arrayWithCapacity:dims.size()];
  for (int64_t dim : dims) [numbers addObject:[NSNumber numberWithLongLong:dim]];
  return numbers;
}

Dims ToDims(NSArray<NSNumber*>* numbers) {
  Dims dims;
  for (NSNumber* number in numbers) dims.push_back([number longLongValue]);
  return dims;
}

void Fill(MLMultiArray* array, const Tensor& tensor) {
  const Dims& dims = tensor.dims();
  const Pin<std::byte> elements = tensor.bytes();
  const Pin<std::byte>* from = &elements;  // blocks copy what they capture
  // Exceptions must not cross frames of Core ML.
  __block std::exception_ptr failure;
  [array getMutableBytesWithHandler:^(void* bytes, NSInteger size, NSArray<NSNumber*>* given) {
    failure = CaptureException("writing an array", [&] {
      const size_t element = ByteCount(tensor.dtype(), 1);
      const Dims strides = ToDims(given);
      CheckSize(dims, strides, element, size);
      CopyStrided(dims, element, from->data(), StridesOf(dims), static_cast<std::byte*>(bytes),
                  strides);
    });
  }];
  if (failure) std::rethrow_exception(failure);
}

Tensor ToTensor(MLMultiArray* array) {
  const DType dtype = ToDType([array dataType]);
  const Dims dims = ToDims([array shape]);
  const Dims strides = ToDims([array strides]);
  const size_t element = ByteCount(dtype, 1);
  std::byte* to = nullptr;
  Tensor tensor = Tensor::Allocate(dtype, dims, &to);
  const Dims* shape = &dims;
  const Dims* steps = &strides;
  __block std::exception_ptr failure;
  [array getBytesWithHandler:^(const void* bytes, NSInteger size) {
    failure = CaptureException("reading an array", [&] {
      CheckSize(*shape, *steps, element, size);
      CopyStrided(*shape, element, static_cast<const std::byte*>(bytes), *steps, to,
                  StridesOf(*shape));
    });
  }];
  if (failure) std::rethrow_exception(failure);
  return tensor;
}

ArrayPool::Lease ArrayPool::Take(DType dtype, const Dims& dims) {
  const std::pair<DType, Dims> kind(dtype, dims);
  {
    std::lock_guard lock(mutex_);
    auto idle = idle_.find(kind);
    if (idle != idle_.end() && !idle->second.empty()) {
      ObjcPtr<MLMultiArray*> array = std::move(idle->second.back());
      idle->second.pop_back();
      ++Counted().reused;
      --Counted().idle;
      Counted().idle_bytes -= Bytes(kind);
      return {shared_from_this(), kind, std::move(array)};
    }
  }
  NSError* error = nil;
  auto array = ObjcPtr<MLMultiArray*>::Adopt([[MLMultiArray alloc] initWithShape:FromDims(dims)
                                                                        dataType:FromDType(dtype)
                                                                           error:&error]);
  if (!array)
    throw Error("resource-limit", "Core ML cannot create an array of {} [{}]: {}", Name(dtype),
                fmt::join(dims, ", "), Words(error));
  ++Counted().made;
  return {shared_from_this(), kind, std::move(array)};
}

ArrayPool::Lease::~Lease() {
  if (!array_) return;
  std::lock_guard lock(pool_->mutex_);
  if (pool_->idle_.size() >= kKinds && !pool_->idle_.contains(kind_)) pool_->Empty();
  std::vector<ObjcPtr<MLMultiArray*>>& idle = pool_->idle_[kind_];
  if (idle.size() >= kIdle) return;
  idle.push_back(std::move(array_));
  ++Counted().idle;
  Counted().idle_bytes += Bytes(kind_);
}

void ArrayPool::Empty() {
  for (const auto& [kind, arrays] : idle_) {
    Counted().idle -= static_cast<int64_t>(arrays.size());
    Counted().idle_bytes -= Bytes(kind) * static_cast<int64_t>(arrays.size());
  }
  idle_.clear();
}

ArrayStatistics CoreMlArrays() {
  const Counts& counts = Counted();
  return {counts.made, counts.reused, counts.idle, counts.idle_bytes};
}

}  // namespace mlc::apple
