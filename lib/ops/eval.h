// lib/ops/eval.h - shared by the inference and evaluation functions of all families: dtype
// dispatch, broadcasting, index iteration.
//
// Evaluation defines an operator. It uses plain scalar loops and a fixed order of summation. Floats
// of any width are computed in double and rounded once to the result dtype; integers are computed
// in 64 bits and wrapped to the result dtype.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "lib/ir/op_def.h"

namespace mlc {

// Calls f(T{}) with the element type of dtype; bool maps to bool. Error "unsupported-dtype" for
// sub-byte types, fp8 and strings.
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
      throw Error("unsupported-dtype", "{} arithmetic is not supported", Name(dtype));
  }
}

template <class T>
inline constexpr bool kIsFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_floating_point_v<T>;

// The type used to compute with elements of T: double for floats, int64 (uint64 for uint64) for
// integers and bool.
template <class T>
using Wide = std::conditional_t<kIsFloat<T>, double,
                                std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>>;

template <class T>
Wide<T> Widen(T value) {
  return static_cast<Wide<T>>(value);
}
// Converts a computed value to T: rounds once (floats), wraps (integers), or compares with zero
// (bool).
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

// A result under construction: fill `data`, then call context.Set(out.tensor).
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

// Strides for reading an operand of `dims` broadcast to `out` by NumPy's rules: 0 in broadcast
// dimensions.
inline Dims BroadcastStrides(const Dims& dims, const Dims& out) {
  Dims own = StridesOf(dims), strides(out.size(), 0);
  size_t lead = out.size() - dims.size();
  for (size_t i = 0; i < dims.size(); ++i) strides[lead + i] = dims[i] == 1 ? 0 : own[i];
  return strides;
}

// Calls f(offset0, offset1, ...) for every index of `dims` in row-major order, where offset k is
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

// y[i] = f(x[i]), where f maps Wide<T> to the argument of Narrow<R>. x has elements of T.
template <class T, class R = T, class F>
Tensor Map(const Tensor& x, F&& f) {
  Out<R> out(x.dims());
  Pin<T> in = x.data<T>();
  for (size_t i = 0; i < in.size(); ++i) out.data[i] = Narrow<R>(f(Widen(in[i])));
  return out.tensor;
}
// y[i] = f(x[i]) for floats of any width, computed in double and rounded once. Error
// "unsupported-dtype" for other dtypes.
Tensor MapFloats(const Tensor& x, const std::function<double(double)>& f);

// The type in which numbers of type W are added and multiplied, so that integers wrap.
template <class W>
using Wrapping = std::conditional_t<std::is_same_v<W, double>, double, uint64_t>;
// |v|; the magnitude of INT64_MIN wraps.
template <class W>
W MagnitudeOf(W v) {
  if constexpr (std::is_same_v<W, double>)
    return std::fabs(v);
  else
    return std::is_signed_v<W> && v < 0 ? W(0 - uint64_t(v)) : v;
}
// NumPy's maximum and minimum: NaN if either operand is NaN.
template <class W>
W MaximumOf(W a, W b) {
  return a >= b || a != a ? a : b;
}
template <class W>
W MinimumOf(W a, W b) {
  return a <= b || a != a ? a : b;
}

// NumPy broadcasting of two shapes; context.Fail if they are incompatible. A symbolic dimension
// against 1 gives the symbolic one. If the dimensions differ and neither is known to be 1, the
// result is the constant one, or max(a, b) if both are symbolic.
Shape BroadcastShapes(const OpContext& context, const Shape& a, const Shape& b);
// Evaluates a function of one float.
template <auto kFunction>
void EvalFloats(EvalContext& context) {
  context.Set(MapFloats(context.in("x"), kFunction));
}
// Returns whether two shapes can be equal, as far as they are known.
bool MayEqual(const Shape& a, const Shape& b);
// Infers the type of x as the result type.
void InferSameAsX(InferContext& context);
// Like InferSameAsX; context.Fail if x is not a float.
void InferFloatX(InferContext& context);
// A row with what all functions of one float have in common.
template <auto kFunction>
constexpr OpRow FloatFunction(OpRow row) {
  row.signatures = {{{Opset::kIos15, "x:T | T=fp16/fp32"}}};
  row.infer = InferFloatX;
  row.eval = EvalFloats<kFunction>;
  row.layout = {.data = {"x"}};
  return row;
}
// The common dtype of two operands; context.Fail if they differ.
DType SharedDType(const OpContext& context, std::string_view a, std::string_view b);
// Requires that the operands, where the operator has them, are scalars.
void CheckScalars(const OpContext& context, std::initializer_list<std::string_view> names);
// Requires that the operands that are present have one element per channel (dimension 1 of x).
void CheckPerChannel(const OpContext& context, std::initializer_list<std::string_view> names);
// The length of an integer vector operand that determines a rank; Error "needs-constant" if it is
// unknown.
int64_t VectorLength(const OpContext& context, std::string_view name);
// The elements of an operand of rank 0 or 1, if all are known integers. The operand may be fp32 or
// fp64, which represent sizes exactly, because exporters compute sizes in floats.
std::optional<std::vector<Dim>> WholeElements(const OpContext& context, std::string_view name,
                                              int i = 0);

// The number of elements of operand i of `name` in the dimensions from `from` on. Symbolic
// dimensions count as 1.
double CountKnown(const OpContext& context, std::string_view name, int i = 0, size_t from = 0);
// OpRow::work of an operator that multiplies by each row of "weight".
double WorkOfWeight(const OpContext& context);

}  // namespace mlc
