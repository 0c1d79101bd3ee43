// backends/apple/arrays.h - converts tensors to MLMultiArrays and back, and pools the arrays for
// inputs.
//
// Every array owns its memory. None wraps the memory of a tensor, because Core ML may access it
// late.
#pragma once

#import <CoreML/CoreML.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/apple/coreml_runtime.h"
#include "backends/apple/objc_ptr.h"

namespace mlc::apple {

// Error "schema-mismatch" for an unknown type.
DType ToDType(MLMultiArrayDataType type);
MLMultiArrayDataType FromDType(DType dtype);  // fp16, fp32, fp64, int32; MLC_CHECK fails for others
NSArray<NSNumber*>* FromDims(const Dims& dims);
Dims ToDims(NSArray<NSNumber*>* numbers);

// Copies the tensor to `array`, which must have the same shape and type.
void Fill(MLMultiArray* array, const Tensor& tensor);
// Returns a row-major copy of an array with any strides. Error "schema-mismatch" if its buffer is
// too small.
Tensor ToTensor(MLMultiArray* array);

// Caches unused arrays by type and shape. Thread-safe. A lease returns its array after the
// prediction that reads it; a hanging prediction keeps its arrays.
class ArrayPool : public std::enable_shared_from_this<ArrayPool> {
 public:
  // The limits on idle arrays of one kind and on kinds, because open sizes create many kinds.
  static constexpr size_t kIdle = 4, kKinds = 32;

  class Lease {
   public:
    Lease(std::shared_ptr<ArrayPool> pool, std::pair<DType, Dims> kind,
          ObjcPtr<MLMultiArray*> array)
        : pool_(std::move(pool)), kind_(std::move(kind)), array_(std::move(array)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    MLMultiArray* get() const { return array_.get(); }

   private:
    std::shared_ptr<ArrayPool> pool_;
    std::pair<DType, Dims> kind_;
    ObjcPtr<MLMultiArray*> array_;
  };

  // The elements are uninitialized. Error "resource-limit" if Core ML has no memory.
  Lease Take(DType dtype, const Dims& dims);
  ~ArrayPool() { Empty(); }

 private:
  void Empty();
  std::mutex mutex_;
  std::map<std::pair<DType, Dims>, std::vector<ObjcPtr<MLMultiArray*>>> idle_;
};

}  // namespace mlc::apple
