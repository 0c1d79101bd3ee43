// lib/ir/tensor.h - a constant: an immutable, shared view of elements.
//
// A Tensor is a handle; copies share. Its elements are owned bytes, a slice of a mapped file, or a
// lazy transform of other Tensors that is computed block by block when read, and never kept: who
// needs them all in memory asks for a Pin. Row-major order. Sub-byte types are packed LSB first.
// Bool is one byte, 0 or 1. Strings are held apart. Reading is thread-safe.
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
#include "lib/support/mapped_file.h"

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
int64_t ElementCount(const Dims& dims);  // 1 for rank 0; throws Error "resource-limit" on overflow
Dims StridesOf(const Dims& dims);        // row-major, in elements
size_t ByteCount(DType dtype, int64_t elements);  // rounded up for sub-byte types

struct Encoding;

// The elements of a tensor, all in memory while the pin lives: the tensor's own where they lie there,
// aligned for T, else computed, once for all pins that live at the same time; the last one frees
// them. What a pin gives may not outlive it, so that a temporary one gives single elements only:
//
//   Pin<float> x = tensor.data<float>();   // x[i], x.data(), std::span<const float>(x)
//   for (float value : tensor.data<float>()) ...
template <class T>
class Pin {
 public:
  // Random access, but not contiguous: no std::span of a temporary comes to be by way of it.
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
  // Writes elements [first, first + count) in the tensor's own dtype to out. For sub-byte types
  // first is a multiple of 8.
  using ReadFn = std::function<void(int64_t first, int64_t count, std::byte* out)>;

  Tensor() = default;  // no tensor: operator bool is false
  explicit operator bool() const { return data_ != nullptr; }

  static Tensor Owned(DType dtype, Dims dims, std::vector<std::byte> bytes);
  // Uninitialised storage that the caller fills through `out` before sharing the tensor.
  static Tensor Allocate(DType dtype, Dims dims, std::byte** out);
  // Over the caller's memory, which stays as it is until `release` (may be null) is called, once: when
  // the last tensor over it is gone, on that one's thread. Error "bad-constant" (and no call) when the
  // bytes are not as many as the elements take.
  static Tensor Borrowed(DType dtype, Dims dims, std::span<const std::byte> bytes,
                         std::function<void()> release);
  static Tensor Strings(Dims dims, std::vector<std::string> values);
  // Throws Error "bad-file" when the slice does not lie inside the file.
  static Tensor FileSlice(std::shared_ptr<const MappedFile> file, uint64_t offset, DType dtype,
                          Dims dims);
  static Tensor Lazy(DType dtype, Dims dims, ReadFn read);
  // `paced_by` is what `read` reads in the same order, element for element or in proportion: its
  // blocks are this one's (BlockElements), and Release goes to it.
  static Tensor Lazy(DType dtype, Dims dims, ReadFn read, Tensor paced_by);
  // The constant that an encoding says, in the encoding's dtype, decoded when read. It carries the
  // encoding; conversions between floats, transpositions, reshapes, rows, slices and concatenations
  // (pieces.h) of it do too where there is one for the result.
  static Tensor Encoded(Encoding encoding);
  // Null for most. The elements are what it decodes to, converted to dtype().
  const Encoding* encoding() const { return encoding_.get(); }
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
  // value rounded or converted to dtype in every element (integers saturate); O(1) memory when
  // large.
  static Tensor Full(DType dtype, Dims dims, double value);

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t size() const { return size_; }  // elements
  size_t byte_size() const { return ByteCount(dtype_, size_); }

  void Read(int64_t first, int64_t count, std::byte* out) const;
  // The same elements in the order in which they are read fastest (a transposition's source), for
  // questions that no order changes.
  Tensor Unordered() const;
  // The tensor whose elements are held, and what is done with them when they are read: where both
  // are equal, the elements are.
  struct Origin;
  Origin origin() const;
  // Elements that lie in memory or in a mapped file as they are, perhaps unaligned; an empty span
  // when they must be computed, or read from a file that is not mapped.
  std::span<const std::byte> InPlace(int64_t first, int64_t count) const;
  // All elements in memory, aligned for their type. Not for strings.
  Pin<std::byte> bytes() const;
  template <class T>
  Pin<T> data() const {
    Pin<std::byte> all = bytes();
    return {std::move(all.owner_), reinterpret_cast<const T*>(all.data_),
            static_cast<size_t>(size_)};
  }
  // The same constant with its elements where a pin costs nothing, for who reads it again and again.
  Tensor InMemory() const;
  // How many elements to take at a time when reading in order: about `bytes`, a multiple of 8;
  // whole rows of a large transposition, up to 32 MiB, because each read of one touches all pages
  // of its source.
  int64_t BlockElements(int64_t bytes) const;
  bool is_lazy() const;  // reading costs a computation, or a call of the system
  // The slice of a file behind this tensor, when it is exactly that.
  struct FileView {
    const MappedFile* file;
    uint64_t offset, size;
  };
  FileView file_view() const;  // file == nullptr otherwise
  // The slice of a file that elements [first, first + count) are read from, all of it or more than
  // that; file == nullptr where they come from anywhere else, or nobody knows.
  FileView Behind(int64_t first, int64_t count) const;
  // Brings the mapped pages under this tensor's sources in element range in at once, for who reads
  // them next; Release is its end.
  void MapIn(int64_t first, int64_t count) const;
  // What FileSlice would be if `file` were here. Reading elements is Error "bad-file"; the place
  // stays known.
  static Tensor Absent(std::string file, uint64_t offset, DType dtype, Dims dims);
  // The file of an absent tensor, whose file_view() has the offset; empty for all others.
  const std::string& absent_file() const;
  // Lets the system take back the mapped pages under this tensor's sources in element range; a
  // no-op for owned bytes.
  void Release(int64_t first, int64_t count) const;

  // Where elements that Allocate gave lie, for who has the last handles of them and writes a new
  // constant over the old one; null where more than `holders` handles, pins and tensors that share
  // the memory are alive, or it is not of that kind. What was learnt of them is forgotten.
  std::byte* Overwritable(int holders = 1) const;

  const std::vector<std::string>& strings() const;
  // Element i converted; integers to double may round. Not for strings.
  double Double(int64_t i) const;
  int64_t Int(int64_t i) const;  // floats truncate toward zero and saturate
  bool Bool(int64_t i) const { return Double(i) != 0; }
  std::vector<int64_t> Ints() const;
  std::vector<double> Doubles() const;

  Tensor Reshaped(Dims dims) const;                       // same element count; shares
  Tensor Transposed(const std::vector<int>& perm) const;  // lazy above kLazyElements
  // Numeric conversion, lazy above kLazyElements: float to float rounds to nearest even; to integer
  // truncates and saturates; integer to narrower integer wraps; anything to bool is "not equal to
  // zero".
  Tensor Cast(DType dtype) const;
  // Rows [begin, end) of the outermost dimension; shares or is lazy.
  Tensor Rows(int64_t begin, int64_t end) const;
  bool SameBytes(const Tensor& other) const;  // dtype, dims and every bit

  // What is learnt by reading all elements, block by block, at the first call, and kept with them.
  struct Range {
    double low, high;  // of the numbers; low > high: there is none
    bool nan;          // there is one that is none
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
};

struct Tensor::Origin {
  Tensor held;
  std::string plan;  // empty: read as it is
};

// Converts `count` elements from one in-memory dtype to another with the rules of Tensor::Cast. Not
// for sub-byte or strings.
void ConvertElements(DType from, const std::byte* in, DType to, std::byte* out, int64_t count);

}  // namespace mlc
