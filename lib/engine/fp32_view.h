// lib/engine/fp32_view.h - fp32 views of fp16 and fp32 tensors, for kernels, which compute in fp32.
#pragma once

#include <algorithm>

#include "lib/engine/omp_parallel.h"
#include "lib/ir/tensor.h"

namespace mlc::engine {

inline bool IsKernelFloat(DType dtype) { return dtype == DType::kFp32 || dtype == DType::kFp16; }

// Array conversions that use the processor's conversion instructions if available.
void HalfToFloat(const Half* in, float* out, int64_t count);
void FloatToHalf(const float* in, Half* out, int64_t count);
void RoundToHalf(const float* in, float* out, int64_t count);
inline void RoundToHalf(float* x, int64_t count) { RoundToHalf(x, x, count); }

// The elements of a tensor as floats: in place if it is fp32, or a copy, converted by several
// threads, if it is fp16.
class Fp32View {
 public:
  explicit Fp32View(Tensor tensor, int threads = 1) : tensor_(std::move(tensor)) {
    if (tensor_.dtype() == DType::kFp32) {
      pin_ = tensor_.data<float>();
      data_ = pin_.data();
      return;
    }
    copy_ = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(tensor_.size()));
    Pin<Half> halves = tensor_.data<Half>();
    OmpParallelForRanges(tensor_.size(), threads, [&](int64_t first, int64_t end) {
      HalfToFloat(halves.data() + first, copy_.get() + first, end - first);
    });
    data_ = copy_.get();
  }
  const float* data() const { return data_; }
  int64_t size() const { return tensor_.size(); }
  float operator[](int64_t i) const { return data_[i]; }

 private:
  Tensor tensor_;
  Pin<float> pin_;
  std::unique_ptr<float[]> copy_;
  const float* data_ = nullptr;
};

// A result that is computed in fp32. Take() rounds it to its dtype, by several threads; a wide fp16
// result stays fp32 and holds the rounded values. A kernel that has the final elements of a part
// earlier may Put() all parts one by one instead.
class Fp32Result {
 public:
  Fp32Result(DType dtype, Dims dims, int threads = 1, bool wide = false)
      : rounds_(wide && dtype == DType::kFp16), threads_(threads) {
    std::byte* bytes = nullptr;
    if (rounds_) dtype = DType::kFp32;
    tensor_ = Tensor::Allocate(dtype, std::move(dims), &bytes);
    if (dtype == DType::kFp32) {
      data_ = reinterpret_cast<float*>(bytes);
    } else {
      half_ = reinterpret_cast<Half*>(bytes);
      copy_ = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(tensor_.size()));
      data_ = copy_.get();
    }
  }
  float* data() const { return data_; }
  int64_t size() const { return tensor_.size(); }
  void Put(int64_t first, const float* values, int64_t count) const {
    if (half_)
      FloatToHalf(values, half_ + first, count);
    else if (rounds_)
      RoundToHalf(values, data_ + first, count);
    else
      std::copy_n(values, count, data_ + first);
  }
  Tensor Take(bool put = false) {
    if ((half_ || rounds_) && !put)
      OmpParallelForRanges(tensor_.size(), threads_, [&](int64_t first, int64_t end) {
        Put(first, data_ + first, end - first);
      });
    copy_.reset();
    return std::move(tensor_);
  }

 private:
  Tensor tensor_;
  std::unique_ptr<float[]> copy_;
  Half* half_ = nullptr;
  float* data_ = nullptr;
  bool rounds_;
  int threads_;
};

}  // namespace mlc::engine
