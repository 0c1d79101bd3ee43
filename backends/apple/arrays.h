// backends/apple/arrays.h - tensors as MLMultiArrays and back, and the pool that those for inputs come from.
//
// Every array owns its memory: none is made over a tensor's, as Core ML may write or read late.
#pragma once

#import <CoreML/CoreML.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/apple/coreml_runtime.h"
#include "backends/apple/retained.h"

namespace mlc::apple {

// Error "schema-mismatch" for a type that this code does not know.
DType ToDType(MLMultiArrayDataType type);
MLMultiArrayDataType FromDType(DType dtype);  // fp16, fp32, fp64, int32; else MLC_CHECK
NSArray<NSNumber*>* FromDims(const Dims& dims);
Dims ToDims(NSArray<NSNumber*>* numbers);

// The elements of `array`, which has the tensor's shape and type, become the tensor's.
void Fill(MLMultiArray* array, const Tensor& tensor);
// A copy, row-major, whatever the array's strides. Error "schema-mismatch" where its bytes are too few for them.
Tensor ToTensor(MLMultiArray* array);

// Arrays that were used before, by type and shape. Thread-safe. They are given back when the prediction that reads them
// has come back: one that hangs keeps its own.
class ArrayPool : public std::enable_shared_from_this<ArrayPool> {
 public:
  // So many arrays of a kind wait at most, and of so many kinds: open sizes make many.
  static constexpr size_t kIdle = 4, kKinds = 32;

  class Lease {
   public:
    Lease(std::shared_ptr<ArrayPool> pool, std::pair<DType, Dims> kind,
          Retained<MLMultiArray*> array)
        : pool_(std::move(pool)), kind_(std::move(kind)), array_(std::move(array)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    MLMultiArray* get() const { return array_.get(); }

   private:
    std::shared_ptr<ArrayPool> pool_;
    std::pair<DType, Dims> kind_;
    Retained<MLMultiArray*> array_;
  };

  // With whatever elements. Error "resource-limit" where Core ML has no memory for it.
  Lease Take(DType dtype, const Dims& dims);
  ~ArrayPool() { Empty(); }

 private:
  void Empty();
  std::mutex mutex_;
  std::map<std::pair<DType, Dims>, std::vector<Retained<MLMultiArray*>>> idle_;
};

}  // namespace mlc::apple
