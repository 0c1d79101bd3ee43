#include "tools/runtime/tensor.h"

#include <fmt/ranges.h>

#include <cstddef>
#include <cstring>

#include "lib/support/error.h"

namespace mlc::abi {

namespace {

// By number.
constexpr DType kTypes[] = {
    DType::kNone,      DType::kBool,    DType::kFp16,  DType::kFp32,   DType::kInt8,
    DType::kInt16,     DType::kInt32,   DType::kUint8, DType::kUint16, DType::kString,
    DType::kFp64,      DType::kBf16,    DType::kInt64, DType::kUint32, DType::kUint64,
    DType::kFp8E4M3FN, DType::kFp8E5M2, DType::kInt4,  DType::kUint1,  DType::kUint2,
    DType::kUint3,     DType::kUint4,   DType::kUint6,
};
static_assert(kTypes[MLC_UINT16] == DType::kUint16 && kTypes[MLC_INT64] == DType::kInt64 &&
              kTypes[MLC_UINT6] == DType::kUint6 && std::size(kTypes) == kDTypeCount);

// The layout of mlc_tensor never changes; new fields follow `reserved`.
static_assert(offsetof(mlc_tensor, struct_size) == 0 &&
              offsetof(mlc_tensor, data) == sizeof(size_t) &&
              offsetof(mlc_tensor, dtype) == 2 * sizeof(size_t) &&
              offsetof(mlc_tensor, rank) == 2 * sizeof(size_t) + 4 &&
              offsetof(mlc_tensor, dims) == 2 * sizeof(size_t) + 8 &&
              offsetof(mlc_tensor, strides) == 3 * sizeof(size_t) + 8 &&
              offsetof(mlc_tensor, reserved) == 4 * sizeof(size_t) + 8 &&
              sizeof(mlc_tensor) == 5 * sizeof(size_t) + 8);

// A description of a tensor that is known to be valid, except for the data.
struct Described {
  DType dtype;
  Dims dims;
  int64_t count;
  const int64_t* strides;  // null: dense
  std::byte* data;
};

Described Describe(const mlc_tensor* tensor, const std::string& what) {
  if (!tensor) throw Error("usage", "{} is NULL", what);
  // The size of the first version of the struct.
  constexpr size_t kLeast = offsetof(mlc_tensor, reserved);
  if (tensor->struct_size < kLeast)
    throw Error("usage", "{}: struct_size is {}", what, tensor->struct_size)
        .Expected("sizeof(mlc_tensor)");
  if (tensor->struct_size >= sizeof(mlc_tensor) && tensor->reserved)
    throw Error("usage", "{}: reserved is not NULL", what);
  Described found{.dtype = DTypeFrom(tensor->dtype, what),
                  .dims = DimsFrom(tensor->rank, tensor->dims, what),
                  .count = 0,
                  .strides = tensor->strides,
                  .data = static_cast<std::byte*>(tensor->data)};
  try {
    found.count = ElementCount(found.dims);
  } catch (const Error& error) {
    throw Error(error.id(), "{}: {}", what, error.text());
  }
  if (found.dtype == DType::kString)
    throw Error("usage", "{}: strings cannot be passed in a tensor", what)
        .Note("models have no inputs of strings, and mlc_op_string sets arguments of operations")
        .Help("read results with mlc_results_string");
  if (found.count > 0 && !found.data) throw Error("usage", "{}: data is NULL", what);
  if (found.strides &&
      Dims(found.strides, found.strides + found.dims.size()) == StridesOf(found.dims))
    found.strides = nullptr;
  if (found.strides && Bits(found.dtype) < 8)
    throw Error("usage", "{}: elements of {} have no strides", what, Name(found.dtype));
  return found;
}

std::span<const std::byte> BytesOf(const Described& found) {
  return {found.data, found.count > 0 ? ByteCount(found.dtype, found.count) : 0};
}

// Calls copy(address in memory with strides, dense address) for each row of `row` bytes.
template <class Copy>
void ForEachElement(const Described& found, std::byte* dense, Copy copy) {
  const size_t size = static_cast<size_t>(Bits(found.dtype)) / 8;
  const size_t rank = found.dims.size();
  Dims index(rank);
  std::byte* at = found.data;
  for (int64_t i = 0; i < found.count; ++i) {
    copy(at, dense, size);
    dense += size;
    for (size_t d = rank; d-- > 0;) {
      at += found.strides[d] * static_cast<int64_t>(size);
      if (++index[d] < found.dims[d]) break;
      at -= found.strides[d] * static_cast<int64_t>(size) * found.dims[d];
      index[d] = 0;
    }
  }
}

Tensor Gathered(const Described& found) {
  std::byte* out = nullptr;
  Tensor tensor = Tensor::Allocate(found.dtype, found.dims, &out);
  ForEachElement(found, out, [](const std::byte* from, std::byte* to, size_t size) {
    std::memcpy(to, from, size);
  });
  return tensor;
}

}  // namespace

DType DTypeFrom(int32_t number, std::string_view what) {
  if (number < 1 || number >= static_cast<int32_t>(std::size(kTypes)))
    throw Error("usage", "{}: {} is not an element type", what, number)
        .Expected("MLC_BOOL to MLC_UINT6");
  return kTypes[number];
}

int32_t NumberOf(DType dtype) {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i] == dtype) return static_cast<int32_t>(i);
  return 0;
}

Dims DimsFrom(int32_t rank, const int64_t* dims, std::string_view what) {
  constexpr int32_t kMostRank = 64;
  if (rank < 0 || rank > kMostRank)
    throw Error("usage", "{}: the rank is {}", what, rank).Expected("0 to {}", kMostRank);
  if (rank > 0 && !dims) throw Error("usage", "{}: dims is NULL", what);
  for (int32_t d = 0; d < rank; ++d)
    if (dims[d] < 0)
      throw Error("usage", "{}: size {} is {}", what, d, dims[d]).Expected("at least 0");
  return rank > 0 ? Dims(dims, dims + rank) : Dims();
}

Tensor Borrowed(const mlc_tensor* tensor, const std::string& what) {
  const Described found = Describe(tensor, what);
  if (found.strides) return Gathered(found);
  return Tensor::Borrowed(found.dtype, found.dims, BytesOf(found), {});
}

Tensor Lent(const mlc_tensor* tensor, const std::string& what, std::function<void()> release) {
  const Described found = Describe(tensor, what);
  if (found.strides) throw Error("usage", "{}: borrowed memory must be dense", what);
  return Tensor::Borrowed(found.dtype, found.dims, BytesOf(found), std::move(release));
}

Tensor Copied(const mlc_tensor* tensor, const std::string& what) {
  const Described found = Describe(tensor, what);
  if (found.strides) return Gathered(found);
  const std::span<const std::byte> bytes = BytesOf(found);
  std::byte* out = nullptr;
  Tensor copy = Tensor::Allocate(found.dtype, found.dims, &out);
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
  return copy;
}

void CopyTo(const mlc_tensor* to, const Tensor& from, DType dtype, const std::string& what) {
  const Described found = Describe(to, what);
  if (found.dtype != dtype || found.dims != from.dims())
    throw Error("bad-input", "{}: the memory is described as {} [{}]", what, Name(found.dtype),
                fmt::join(found.dims, ", "))
        .Expected("{} [{}]", Name(dtype), fmt::join(from.dims(), ", "));
  const Tensor converted = from.dtype() == dtype ? from : from.Cast(dtype);
  if (!found.strides) {
    if (found.count > 0) converted.Read(0, found.count, found.data);
    return;
  }
  const Pin<std::byte> bytes = converted.bytes();
  ForEachElement(
      found, const_cast<std::byte*>(bytes.data()),
      [](std::byte* into, const std::byte* value, size_t size) { std::memcpy(into, value, size); });
}

}  // namespace mlc::abi
