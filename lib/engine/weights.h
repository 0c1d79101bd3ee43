// lib/engine/weights.h - constant operands of products, read as fp32 from the form that they have.
//
// What a kernel makes of weights once is shared by everybody who has the same PreparedWeights: the
// engines of a Program's functions, on any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lib/engine/decoding.h"
#include "lib/ir/tensor.h"

namespace mlc {

// Whether the elements are held in less than fp32: then they stay so, and each product expands
// pieces of them, so that a run takes the memory of the weights, not of their values.
bool IsNarrow(const Tensor& weights);

// Elements of an fp32 or fp16 tensor as floats. A handle; copies share. Thread-safe.
class Weights {
 public:
  // As they are: nothing is copied but what would be computed again and again in its own encoding
  // (a transposition, say), and the encoding stays.
  static Weights AsTheyAre(const Tensor& tensor);
  // All in memory as fp32.
  static Weights Expanded(const Tensor& tensor);

  // All elements, where they lie in memory as fp32; else null.
  const float* data() const { return data_; }
  void Read(int64_t first, int64_t count, float* out) const;
  // Where they lie so; else null.
  const PackedBlocks* blocks() const { return blocks_ ? &*blocks_ : nullptr; }

  struct Source;

 private:
  std::shared_ptr<const Source> source_;
  const float* data_ = nullptr;
  std::optional<PackedBlocks> blocks_;
};

// What kernels made of weights, by the constant and the form in which they want it. Thread-safe.
class PreparedWeights {
 public:
  // What `make` gave at the first call with this constant and form; T belongs to the form.
  template <class T>
  std::shared_ptr<const T> Get(const Tensor& tensor, std::string_view form,
                               const std::function<std::shared_ptr<const T>()>& make) {
    return std::static_pointer_cast<const T>(Find(tensor, form, make));
  }

 private:
  struct Entry {
    std::mutex making;  // one makes it, and others who want it wait
    Tensor tensor;      // while it lives its address is its own
    std::shared_ptr<const void> made;
  };
  std::shared_ptr<const void> Find(const Tensor& tensor, std::string_view form,
                                   const std::function<std::shared_ptr<const void>()>& make);
  std::mutex mutex_;  // of the map; entries stay where they are
  std::map<std::string, Entry> entries_;
};

}  // namespace mlc
