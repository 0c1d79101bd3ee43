// lib/ops/eval.h - what inference and evaluation functions of all families share: dtype dispatch,
// broadcasting, index walks.
//
// Evaluation is the definition of an operator: plain scalar loops, one order of summation, floats
// of every width computed in double and rounded once into the result's type, integers in 64 bits
// and wrapped into the result's type.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "lib/ir/op_def.h"

namespace mlc {

// Calls f(T{}) with the element type of dtype; bool is bool. Error "unsupported-dtype" for sub-byte
// types, fp8 and strings.
template <class F>
decltype(auto) Dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
      return f(bool{});
    case DType::kFp16:
      return f(Half{});
    case DType::kFp32:
      return f(float{});
    case DType::kFp64:
      return f(double{});
    case DType::kBf16:
      return f(BFloat16{});
    case DType::kInt8:
      return f(int8_t{});
    case DType::kInt16:
      return f(int16_t{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUint8:
      return f(uint8_t{});
    case DType::kUint16:
      return f(uint16_t{});
    case DType::kUint32:
      return f(uint32_t{});
    case DType::kUint64:
      return f(uint64_t{});
    default:
      throw Error("unsupported-dtype", fmt::format("cannot compute with {}", Name(dtype)));
  }
}

template <class T>
inline constexpr bool kIsFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_floating_point_v<T>;

// The type in which elements of T are computed: double for floats, int64 (uint64 for uint64) for
// integers and bool.
template <class T>
using Wide = std::conditional_t<kIsFloat<T>, double,
                                std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>>;

template <class T>
Wide<T> Widen(T value) {
  return static_cast<Wide<T>>(value);
}
// Rounds once (floats), wraps (integers), or compares with zero (bool).
template <class T, class W>
T Narrow(W value) {
  if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else if constexpr (kIsFloat<T>)
    return T(static_cast<double>(value));
  else
    return static_cast<T>(value);
}
template <>
inline float Narrow<float, double>(double value) {
  return static_cast<float>(value);
}

// A result under construction: fill `data`, then context.Set(out.tensor).
template <class T>
struct Out {
  explicit Out(Dims dims) {
    std::byte* bytes = nullptr;
    tensor = Tensor::Allocate(kDTypeOf<T>, std::move(dims), &bytes);
    data = {reinterpret_cast<T*>(bytes), static_cast<size_t>(tensor.size())};
  }
  Tensor tensor;
  std::span<T> data;
};

// Strides with which an operand of `dims` is read in a result of `out` dims: 0 where it is
// broadcast (numpy's rule).
inline Dims BroadcastStrides(const Dims& dims, const Dims& out) {
  Dims own = StridesOf(dims), strides(out.size(), 0);
  size_t lead = out.size() - dims.size();
  for (size_t i = 0; i < dims.size(); ++i) strides[lead + i] = dims[i] == 1 ? 0 : own[i];
  return strides;
}

// Calls f(offset0, offset1, ...) for every index of `dims` in row-major order; offset k is
// sum(index[d] * strides[k][d]).
template <size_t N, class F>
void Walk(const Dims& dims, const std::array<Dims, N>& strides, F&& f) {
  int rank = static_cast<int>(dims.size());
  for (int64_t d : dims)
    if (d == 0) return;
  std::array<int64_t, N> offset{};
  Dims index(dims.size(), 0);
  while (true) {
    int64_t inner = rank ? dims[rank - 1] : 1;
    std::array<int64_t, N> o = offset;
    for (int64_t i = 0; i < inner; ++i) {
      std::apply([&](auto... each) { f(each...); }, o);
      if (rank)
        for (size_t k = 0; k < N; ++k) o[k] += strides[k][rank - 1];
    }
    int d = rank - 2;
    for (; d >= 0; --d) {
      for (size_t k = 0; k < N; ++k) offset[k] += strides[k][d];
      if (++index[d] < dims[d]) break;
      for (size_t k = 0; k < N; ++k) offset[k] -= strides[k][d] * dims[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

// y[i] = f(x[i]), where f maps Wide<T> to what Narrow<R> takes. x holds elements of T.
template <class T, class R = T, class F>
Tensor Map(const Tensor& x, F&& f) {
  Out<R> out(x.dims());
  Pin<T> in = x.data<T>();
  for (size_t i = 0; i < in.size(); ++i) out.data[i] = Narrow<R>(f(Widen(in[i])));
  return out.tensor;
}
// y[i] = f(x[i]) for floats of any width, computed in double and rounded once; Error
// "unsupported-dtype" for others.
Tensor MapFloats(const Tensor& x, const std::function<double(double)>& f);

// numpy's maximum and minimum: NaN when either is.
template <class W>
W MaximumOf(W a, W b) {
  return a >= b || a != a ? a : b;
}
template <class W>
W MinimumOf(W a, W b) {
  return a <= b || a != a ? a : b;
}

// numpy broadcasting of two shapes; context.Fail when they do not fit. Where one side is symbolic
// and the other 1, the symbolic one wins; where both are different and neither is known to be 1,
// the constant (if any) wins, else it is max(a, b).
Shape BroadcastShapes(const OpContext& context, const Shape& a, const Shape& b);
// Element-wise unary result: the type of x.
void InferSameAsX(InferContext& context);
// The same; context.Fail when x is not of floats.
void InferFloatX(InferContext& context);
// The dtype that two operands share; context.Fail when they differ.
DType SharedDType(const OpContext& context, std::string_view a, std::string_view b);
// Elements of an operand of rank 0 or 1 when all are known and whole numbers, a float operand's too
// (fp32 and fp64, which hold sizes exactly): exporters compute sizes in floats.
std::optional<std::vector<Dim>> WholeElements(const OpContext& context, std::string_view name,
                                              int i = 0);

// How many elements operand i of `name` has in its dimensions from `from` on; open ones count 1.
double CountKnown(const OpContext& context, std::string_view name, int i = 0, size_t from = 0);
// Row::work of an operator that multiplies each row of "weight".
double WorkOfWeight(const OpContext& context);

}  // namespace mlc
