// lib/engine/product_weights.h - constant operands of products, which are read as fp32 from their
// stored form.
//
// Weights that kernels have prepared are shared by all users of the same PreparedWeights: the
// engines of a program's functions, on any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lib/engine/weight_decoding.h"
#include "lib/ir/tensor.h"

namespace mlc::engine {

// Returns whether the elements are stored in fewer bits than fp32. Such weights stay encoded and
// each product expands pieces of them, so that a run needs memory for the encoded weights only.
bool IsNarrow(const Tensor& weights);

// The elements of an fp32 or fp16 tensor as floats. A handle; copies share. Thread-safe.
class Weights {
 public:
  // Keeps the encoding. Nothing is copied, except where reading the encoding would repeat work (a
  // transposition, for example).
  static Weights AsTheyAre(const Tensor& tensor);
  // Decodes all elements to fp32 in memory.
  static Weights Expanded(const Tensor& tensor);

  // The elements, if they are stored as fp32 in memory; else null.
  const float* data() const { return data_; }
  void Read(int64_t first, int64_t count, float* out) const;
  // The elements as packed blocks, if they are stored so; else null.
  const PackedBlocks* blocks() const { return blocks_ ? &*blocks_ : nullptr; }

  struct Source;

 private:
  std::shared_ptr<const Source> source_;
  const float* data_ = nullptr;
  std::optional<PackedBlocks> blocks_;
};

// Weights that kernels have prepared, by constant and form. Thread-safe.
class PreparedWeights {
 public:
  // Returns the result of `make` at the first call with this constant and form; the form determines
  // T.
  template <class T>
  std::shared_ptr<const T> Get(const Tensor& tensor, std::string_view form,
                               const std::function<std::shared_ptr<const T>()>& make) {
    return std::static_pointer_cast<const T>(Find(tensor, form, make));
  }

 private:
  struct Entry {
    std::mutex making;  // held by the thread that makes the entry, while others wait
    Tensor tensor;      // keeps the address, which is part of the key, in use
    std::shared_ptr<const void> made;
  };
  std::shared_ptr<const void> Find(const Tensor& tensor, std::string_view form,
                                   const std::function<std::shared_ptr<const void>()>& make);
  std::mutex mutex_;  // guards the map; entries have stable addresses
  std::map<std::string, Entry> entries_;
};

}  // namespace mlc::engine
