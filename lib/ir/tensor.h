// lib/ir/tensor.h - a constant: an immutable, shared view of elements.
//
// A Tensor is a handle; copies share its elements, which are owned bytes, a slice of a mapped file,
// or a lazy transform of other Tensors, computed block by block on each read and not cached. A Pin
// holds all elements in memory. The order is row-major. Sub-byte types are packed, least
// significant bits first. A bool is one byte, 0 or 1. Strings are stored separately. Reading is
// thread-safe.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/ir/dtype.h"
#include "lib/support/half.h"

namespace mlc {

template <class T>
inline constexpr DType kDTypeOf = DType::kNone;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;
template <>
inline constexpr DType kDTypeOf<Half> = DType::kFp16;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFp32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kFp64;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::kBf16;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::kInt8;
template <>
inline constexpr DType kDTypeOf<int16_t> = DType::kInt16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kInt32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kInt64;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kUint8;
template <>
inline constexpr DType kDTypeOf<uint16_t> = DType::kUint16;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::kUint32;
template <>
inline constexpr DType kDTypeOf<uint64_t> = DType::kUint64;

using Dims = std::vector<int64_t>;
int64_t ElementCount(const Dims& dims);  // 1 for rank 0; Error "resource-limit" on overflow
Dims StridesOf(const Dims& dims);        // row-major, in elements
size_t ByteCount(DType dtype, int64_t elements);  // rounded up for sub-byte types

struct Encoding;
class MappedFile;

// All elements of a tensor in memory, for the lifetime of the pin: the tensor's own memory if it is
// aligned for T, otherwise a computed copy that is shared between all live pins and freed by the
// last. Views of the elements must not outlive the pin, so a temporary pin gives access to single
// elements only:
//
//   Pin<float> x = tensor.data<float>();   // x[i], x.data(), std::span<const float>(x)
//   for (float value : tensor.data<float>()) ...
template <class T>
class Pin {
 public:
  // Random access but not contiguous, so that a temporary does not convert to std::span.
  using Iterator = std::reverse_iterator<std::reverse_iterator<const T*>>;

  Pin() = default;
  Pin(std::shared_ptr<const void> owner, const T* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T operator[](size_t i) const { return data_[i]; }
  const T* data() const& { return data_; }
  const T* data() const&& = delete;
  std::span<const T> span() const& { return {data_, size_}; }
  std::span<const T> span() const&& = delete;
  operator std::span<const T>() const& { return {data_, size_}; }
  operator std::span<const T>() const&& = delete;
  Iterator begin() const& { return Iterator(std::reverse_iterator<const T*>(data_)); }
  Iterator begin() const&& = delete;
  Iterator end() const& { return Iterator(std::reverse_iterator<const T*>(data_ + size_)); }
  Iterator end() const&& = delete;

 private:
  friend class Tensor;
  std::shared_ptr<const void> owner_;
  const T* data_ = nullptr;
  size_t size_ = 0;
};

class Tensor {
 public:
  // Writes elements [first, first + count) to `out` in the tensor's own dtype. For sub-byte types,
  // `first` is a multiple of 8.
  using ReadFn = std::function<void(int64_t first, int64_t count, std::byte* out)>;

  Tensor() = default;  // empty: operator bool is false
  explicit operator bool() const { return data_ != nullptr; }

  static Tensor Owned(DType dtype, Dims dims, std::vector<std::byte> bytes);
  // Uninitialised storage; the caller fills it through `out` before sharing the tensor.
  static Tensor Allocate(DType dtype, Dims dims, std::byte** out);
  // Wraps memory of the caller, which must stay unchanged until `release` (may be null) is called,
  // once, on the thread that destroys the last tensor over it. Error "bad-constant", without a call
  // of `release`, if the number of bytes does not match.
  static Tensor Borrowed(DType dtype, Dims dims, std::span<const std::byte> bytes,
                         std::function<void()> release);
  static Tensor Strings(Dims dims, std::vector<std::string> values);
  // Error "bad-file" if the slice exceeds the file.
  static Tensor FileSlice(std::shared_ptr<const MappedFile> file, uint64_t offset, DType dtype,
                          Dims dims);
  static Tensor Lazy(DType dtype, Dims dims, ReadFn read);
  // `paced_by` is the tensor that `read` reads in the same order, element for element or
  // proportionally. It determines the block size (BlockElements) and receives Release.
  static Tensor Lazy(DType dtype, Dims dims, ReadFn read, Tensor paced_by);
  // The constant that an encoding represents, in the encoding's dtype, decoded when read. It
  // carries the encoding; float conversions, transpositions, reshapes, row ranges, slices and
  // concatenations (concat_slice.h) preserve it where the result has an encoding.
  static Tensor Encoded(Encoding encoding);
  // Null for most tensors. The elements are the decoded values, converted to dtype().
  const Encoding* encoding() const { return encoding_.get(); }
  // The tensors of a source model that the elements come from.
  struct Provenance {
    std::vector<std::string> sources;  // names, sorted
    // The elements are those of the only source in its order, perhaps rounded to another
    // floating-point type. The shape may be another one.
    bool unchanged = false;
  };
  // Null: none, or unknown.
  const Provenance* provenance() const { return provenance_.get(); }
  // The same tensor with a provenance.
  Tensor From(Provenance provenance) const;
  // The same tensor, computed from the sources of `input` and those that it has already.
  Tensor ComputedFrom(const Tensor& input) const;
  template <class T>
  static Tensor Of(Dims dims, const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    if constexpr (std::is_same_v<T, bool>) {
      for (size_t i = 0; i < values.size(); ++i) bytes[i] = std::byte(values[i] ? 1 : 0);
    } else if (!values.empty()) {
      std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    return Owned(kDTypeOf<T>, std::move(dims), std::move(bytes));
  }
  template <class T>
  static Tensor Scalar(T value) {
    return Of<T>({}, std::vector<T>{value});
  }
  template <class T>
  static Tensor Vector(const std::vector<T>& values) {
    return Of<T>({static_cast<int64_t>(values.size())}, values);
  }
  static Tensor String(std::string value) { return Strings({}, {std::move(value)}); }
  // A tensor with `value`, rounded or converted to dtype, in every element (integers saturate).
  // Uses O(1) memory if large.
  static Tensor Full(DType dtype, Dims dims, double value);

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t size() const { return size_; }  // number of elements
  size_t byte_size() const { return ByteCount(dtype_, size_); }

  void Read(int64_t first, int64_t count, std::byte* out) const;
  // The same elements in the order that is fastest to read (the source of a transposition), for
  // order-independent queries.
  Tensor Unordered() const;
  // Identifies the elements: the tensor that stores them and the transform that reading applies.
  // Equal origins imply equal elements.
  struct Origin;
  Origin origin() const;
  // A view of elements that are in memory or in a mapped file, possibly unaligned; empty if they
  // must be computed or read from an unmapped file.
  std::span<const std::byte> InPlace(int64_t first, int64_t count) const;
  // All elements in memory, aligned for their type. Not for strings.
  Pin<std::byte> bytes() const;
  template <class T>
  Pin<T> data() const {
    Pin<std::byte> all = bytes();
    return {std::move(all.owner_), reinterpret_cast<const T*>(all.data_),
            static_cast<size_t>(size_)};
  }
  // The same constant with its elements in memory, so that repeated pins cost nothing.
  Tensor InMemory() const;
  // The number of elements to read at a time in sequential order: about `bytes` bytes, a multiple
  // of 8. For a large transposition, whole rows of up to 32 MiB, because each read touches all
  // pages of the source.
  int64_t BlockElements(int64_t bytes) const;
  bool is_lazy() const;  // whether reading requires computation or a system call
  // The file slice that this tensor consists of.
  struct FileView {
    const MappedFile* file;
    uint64_t offset, size;
  };
  FileView file_view() const;  // file == nullptr if it is not a slice
  // A slice of a file that contains the source of elements [first, first + count); file == nullptr
  // if they have another source or it is unknown.
  FileView Behind(int64_t first, int64_t count) const;
  // Maps the pages behind a range of elements ahead of reading them. Release undoes it.
  void MapIn(int64_t first, int64_t count) const;
  // A FileSlice whose file is not available: reading elements is Error "bad-file", the offset stays
  // known.
  static Tensor Absent(std::string file, uint64_t offset, DType dtype, Dims dims);
  // The file of an absent tensor, whose file_view() has the offset; empty for any other tensor.
  const std::string& absent_file() const;
  // Lets the system reclaim the mapped pages behind a range of elements; no effect on owned bytes.
  void Release(int64_t first, int64_t count) const;

  // Writable access to elements from Allocate, for the owner of the last handles, which overwrites
  // the old constant with a new one. Null if more than `holders` handles, pins and tensors that
  // share the memory exist, or the memory is not from Allocate. Discards cached properties.
  std::byte* Overwritable(int holders = 1) const;

  const std::vector<std::string>& strings() const;
  // Element i, converted; int64 to double may round. Not for strings.
  double Double(int64_t i) const;
  int64_t Int(int64_t i) const;  // floats truncate toward zero and saturate
  bool Bool(int64_t i) const { return Double(i) != 0; }
  std::vector<int64_t> Ints() const;
  std::vector<double> Doubles() const;

  Tensor Reshaped(Dims dims) const;                       // same element count; shares the elements
  Tensor Transposed(const std::vector<int>& perm) const;  // lazy above kLazyElements
  // Numeric conversion, lazy above kLazyElements. Float to float rounds to nearest even; float to
  // integer truncates and saturates; integer to a narrower integer wraps; anything to bool is x !=
  // 0.
  Tensor Cast(DType dtype) const;
  // Rows [begin, end) of the outermost dimension; shares elements or is lazy.
  Tensor Rows(int64_t begin, int64_t end) const;
  bool SameBytes(const Tensor& other) const;  // compares dtype, dims and every bit

  // Properties that the first call computes block by block from all elements, and caches with them.
  struct Range {
    double low, high;  // smallest and largest number; low > high if there is none
    bool nan;          // contains a NaN
    bool finite() const;
  };
  Range range() const;              // not for strings
  const std::string& hash() const;  // XXH3-128 of the bytes, in hexadecimal; not for strings

  static constexpr int64_t kLazyElements = 4096;

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
  DType dtype_ = DType::kNone;
  Dims dims_;
  int64_t size_ = 0;
  std::shared_ptr<const Encoding> encoding_;
  std::shared_ptr<const Provenance> provenance_;
};

struct Tensor::Origin {
  Tensor held;
  std::string plan;  // empty: read without a transform
};

// Converts `count` elements in memory with the rules of Tensor::Cast. Not for sub-byte types or
// strings.
void ConvertElements(DType from, const std::byte* in, DType to, std::byte* out, int64_t count);

}  // namespace mlc
