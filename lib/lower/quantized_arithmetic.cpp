#include "lib/lower/quantized_arithmetic.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ir/encoding.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::lower {

namespace {

bool IsFp8(DType dtype) { return dtype == DType::kFp8E4M3FN || dtype == DType::kFp8E5M2; }

bool IsScalar(const Value* value) { return Product(value->type.shape) == Dim(1); }

// Reshapes scale or zero point to broadcast against a tensor of shape `x`.
Value* Spread(Builder& b, Value* value, const Scheme& scheme, const Shape& x) {
  int rank = static_cast<int>(x.size());
  if (scheme.block == 0) {
    if (value->type.rank() > 1 && !IsScalar(value))
      throw Error("bad-operand", "a scale or zero point is {}, expected a scalar or a vector",
                  value->type.ToString());
    if (IsScalar(value)) return AsScalar(b, value);
    return Along(b, value, OpContext::Axis(scheme.axis, rank), rank);
  }
  int axis = OpContext::Axis(scheme.axis, rank);
  const Shape& grid = value->type.shape;
  if (value->type.rank() != rank || !grid[axis].is_constant() || !x[axis].is_constant())
    throw Error("bad-operand", "scales {} do not match a blocked tensor {}", value->type.ToString(),
                ToString(x));
  int64_t size = x[axis].constant(), cells = grid[axis].constant();
  if ((size + scheme.block - 1) / scheme.block != cells)
    throw Error("bad-operand",
                "there are scales for {} blocks of {} elements, which do not fit a dimension of {}",
                cells, scheme.block, size);
  // [.., cells, ..] -> [.., cells, block, ..] -> [.., size, ..]
  std::vector<int64_t> reps(rank + 1, 1), joined;
  reps[axis + 1] = scheme.block;
  for (int i = 0; i < rank; ++i) {
    if (!grid[i].is_constant())
      throw Error("dynamic-shape", "blockwise quantisation requires a static shape");
    if (i != axis && x[i].is_constant() && x[i] != grid[i])
      throw Error("bad-operand", "scales {} do not match a blocked tensor {}",
                  value->type.ToString(), ToString(x));
    joined.push_back(i == axis ? cells * scheme.block : grid[i].constant());
  }
  value = Expanded(b, value, {axis + 1});
  value = b.Make("tile", {{"x", value}, {"reps", Ints(reps)}});
  value = WithShape(b, value, joined);
  if (cells * scheme.block == size) return value;
  joined[axis] = size;
  return SliceOfSize(b, value, std::vector<int64_t>(rank, 0), joined);
}

// Returns whether MIL's quantize and dequantize support this scheme for a tensor of this rank.
bool InMil(const Scheme& scheme, int rank) {
  if (scheme.target < Opset::kIos17) return false;
  if (scheme.integers != DType::kInt8 && scheme.integers != DType::kUint8) return false;
  if (!scheme.scale->is_constant() || (scheme.zero && !scheme.zero->is_constant())) return false;
  return scheme.block == 0 && rank > 0;
}

// The arguments scale, zero_point and axis of MIL's quantize and dequantize.
Builder::Args MilArgs(Builder& b, const Scheme& scheme, DType scale_type, int rank) {
  Tensor scale = scheme.scale->constant().Cast(scale_type), zero;
  if (scheme.zero) zero = scheme.zero->constant();
  bool scalar = scale.size() == 1;
  if (zero && (zero.size() == 1) != scalar)
    throw Error("bad-operand", "the zero point is [{}], but the scale is [{}]",
                fmt::join(zero.dims(), ", "), fmt::join(scale.dims(), ", "))
        .Expected("equal shapes");
  if (scalar) {
    scale = scale.Reshaped({});
    if (zero) zero = zero.Reshaped({});
  }
  // A zero point of 0 is the default and omitted.
  if (zero) {
    std::vector<int64_t> values = zero.Ints();
    if (std::ranges::all_of(values, [](int64_t z) { return z == 0; })) zero = {};
  }
  Builder::Args args = {{"scale", b.Const(scale)}};
  if (zero) args.emplace_back("zero_point", b.Const(zero));
  if (!scalar) args.emplace_back("axis", static_cast<int64_t>(OpContext::Axis(scheme.axis, rank)));
  return args;
}

// A constant as the grid of an encoding; empty if blocks do not divide the tensor evenly.
Tensor Grid(const Tensor& value, const Scheme& scheme, const Dims& x) {
  int rank = static_cast<int>(x.size());
  if (value.size() == 1) return value.Reshaped(Dims(rank, 1));
  if (scheme.block > 0) {
    if (value.rank() != rank)
      throw Error("bad-operand", "the scale's rank differs from the tensor's");
    for (int i = 0; i < rank; ++i)
      if (value.dims()[i] == 0 || x[i] % value.dims()[i] != 0) return {};
    int axis = OpContext::Axis(scheme.axis, rank);
    return value.dims()[axis] * scheme.block == x[axis] ? value : Tensor();
  }
  int axis = OpContext::Axis(scheme.axis, rank);
  if (value.rank() != 1 || value.size() != x[axis])
    throw Error("bad-operand", "the scales have shape [{}], but axis {} needs a vector of {}",
                fmt::join(value.dims(), ", "), axis, x[axis]);
  Dims dims(rank, 1);
  dims[axis] = value.size();
  return value.Reshaped(std::move(dims));
}

// The constant with its encoding; null if blocks do not divide it.
Value* DequantizedConstant(Builder& b, const Tensor& x, const Scheme& scheme, DType to) {
  if (!scheme.scale->is_constant() || (scheme.zero && !scheme.zero->is_constant())) return nullptr;
  if (IsFp8(scheme.integers) || x.size() == 0) return nullptr;
  Tensor data = x.rank() == 0 ? x.Reshaped({1}) : x;
  Encoding encoding{
      .dtype = to, .data = data, .scale = Grid(scheme.scale->constant(), scheme, data.dims())};
  if (!encoding.scale) return nullptr;
  if (scheme.zero) {
    encoding.offset = Grid(scheme.zero->constant(), scheme, data.dims());
    if (!encoding.offset || encoding.offset.dims() != encoding.scale.dims()) return nullptr;
  }
  return b.Const(Tensor::Encoded(std::move(encoding)).Reshaped(x.dims()));
}

// The int8 or uint8 value that x was converted from.
Value* Narrow(const Value* x, DType integers) {
  if (!x->def || !x->def->is("cast")) return nullptr;
  Value* source = x->def->value("x");
  return source && source->type.dtype == integers ? source : nullptr;
}

struct Range {
  double low, high;
};
Range RangeOf(DType integers) {
  double high = std::ldexp(1, Bits(integers) - (IsSigned(integers) ? 1 : 0)) - 1;
  return {IsSigned(integers) ? -high - 1 : 0, high};
}

}  // namespace

DType FloatType(DType source) {
  DType type = RuntimeType(source);
  if (!IsFloat(type)) throw Error("unsupported-dtype", "{} arithmetic", Name(source));
  return type;
}

Value* Along(Builder& b, Value* vector, int axis, int rank) {
  if (IsScalar(vector)) return AsScalar(b, vector);
  if (vector->type.rank() != 1 || rank - axis <= 1) return vector;
  return Expanded(b, vector, Consecutive(1, rank - axis));
}

Value* OverRows(Builder& b, Value* value) {
  if (value->type.rank() != 1) return value;
  if (Product(value->type.shape) == Dim(1)) return Along(b, value, 0, 1);
  return Expanded(b, value, {1});
}

Value* OverColumns(Builder& b, Value* value) { return Along(b, value, 0, 1); }

Value* Quantize(Builder& b, Value* x, const Scheme& scheme) {
  int rank = x->type.rank();
  if (InMil(scheme, rank) && !x->is_constant()) {
    Builder::Args args = MilArgs(b, scheme, x->type.dtype, rank);
    args.emplace_back("input", x);
    args.emplace_back("output_dtype", std::string(Name(scheme.integers)));
    return b.Make("quantize", std::move(args));
  }
  if (!IsInteger(scheme.integers))
    throw Error("unsupported-dtype", "quantisation to {} at run time", Name(scheme.integers));
  Value* scale = Convert(b, scheme.scale, scheme.scale->type.dtype, x->type.dtype);
  Value* steps = Binary(b, "real_div", x, Spread(b, scale, scheme, x->type.shape));
  // fp16 represents integers up to 2048.
  DType wide = Bits(scheme.integers) > 8 ? DType::kFp32 : x->type.dtype;
  steps = b.Make("round", {{"x", b.Cast(steps, wide)}});
  if (scheme.zero) {
    Value* zero = Convert(b, scheme.zero, scheme.integers, wide);
    steps = Binary(b, "add", steps, Spread(b, zero, scheme, x->type.shape));
  }
  Range range = RangeOf(scheme.integers);
  steps = b.Make("clip", {{"x", steps}, {"alpha", range.low}, {"beta", range.high}});
  return b.Cast(steps, DType::kInt32);
}

Value* Dequantize(Builder& b, Value* x, const Scheme& scheme, DType to) {
  if (x->is_constant())
    if (Value* dense = DequantizedConstant(b, x->constant(), scheme, to)) return dense;
  int rank = x->type.rank();
  DType type = FloatType(to);
  Value* narrow = Narrow(x, scheme.integers);
  if (narrow && InMil(scheme, rank)) {
    Builder::Args args = MilArgs(b, scheme, type, rank);
    args.emplace_back("input", narrow);
    return b.Make("dequantize", std::move(args));
  }
  // Uses fp32 if fp16 does not represent the integers.
  DType wide = Bits(scheme.integers) > 8 ? DType::kFp32 : type;
  Value* zero = scheme.zero;
  bool late = IsFp8(scheme.integers) || Bits(scheme.integers) < 32;
  if (zero && !late) x = Binary(b, "sub", x, Spread(b, zero, scheme, x->type.shape));
  x = Convert(b, x, scheme.integers, wide);
  if (zero && late) {
    zero = Convert(b, zero, scheme.integers, wide);
    x = Binary(b, "sub", x, Spread(b, zero, scheme, x->type.shape));
  }
  Value* scale = Convert(b, scheme.scale, scheme.scale->type.dtype, wide);
  x = Binary(b, "mul", x, Spread(b, scale, scheme, x->type.shape));
  return b.Cast(x, type);
}

Factor Centered(Builder& b, Value* value, Value* zero, DType integers, const Fits& fits) {
  Range range = RangeOf(integers);
  Factor factor{nullptr, std::max(-range.low, range.high), 0};
  if (zero && zero->is_constant()) {
    std::vector<double> zeros = zero->constant().Doubles();
    factor.most = 0;
    for (double z : zeros) factor.most = std::max({factor.most, range.high - z, z - range.low});
    if (std::ranges::all_of(zeros, [](double z) { return z == 0; })) zero = nullptr;
  } else if (zero) {
    factor.most = range.high - range.low;
  }
  int rank = value->type.rank();
  if (value->is_constant() && rank > 0 && (!zero || zero->is_constant())) {
    Dims grid(rank, 1);
    if (zero && zero->type.rank() > rank)
      throw Error("bad-operand", "the zero point does not match the tensor");
    if (zero) {
      Dims dims = zero->constant().dims();
      std::copy(dims.begin(), dims.end(), grid.end() - std::ssize(dims));
    }
    Encoding encoding{.data = value->constant(), .scale = Tensor::Full(DType::kFp32, grid, 1)};
    if (zero) encoding.offset = zero->constant().Reshaped(grid);
    factor.value = b.Const(Tensor::Encoded(std::move(encoding)));
    return factor;
  }
  factor.value = Convert(b, value, integers, DType::kFp32);
  if (!zero) return factor;
  Value* offset = Convert(b, zero, integers, DType::kFp32);
  Value* centered = Binary(b, "sub", factor.value, offset);
  factor.value = fits ? fits(centered, factor.value) : centered;
  return factor;
}

Value* Requantize(Builder& b, Value* sum, Value* scale, Value* zero, DType integers,
                  const Fits& fits) {
  Value* real = b.Cast(sum, DType::kFp32);
  real = b.Make("round", {{"x", Binary(b, "mul", real, scale)}});
  if (zero) {
    zero = Convert(b, zero, integers, DType::kFp32);
    real = Binary(b, "add", real, zero);
  }
  Range range = RangeOf(integers);
  real = b.Make("clip", {{"x", real}, {"alpha", range.low}, {"beta", range.high}});
  return b.Cast(fits ? fits(real, sum) : real, DType::kInt32);
}

DynamicallyQuantized QuantizeDynamically(Builder& b, Value* x) {
  auto round = [&](Value* steps) { return b.Make("round", {{"x", steps}}); };
  auto clip = [&](Value* steps) {
    return b.Make("clip", {{"x", steps}, {"alpha", 0.0}, {"beta", 255.0}});
  };
  Value* nothing = b.Const(Tensor::Scalar<float>(0));
  Value* high = Binary(b, "maximum", b.Make("reduce_max", {{"x", x}}), nothing);
  Value* low = Binary(b, "minimum", b.Make("reduce_min", {{"x", x}}), nothing);
  Value* span = Binary(b, "sub", high, low);
  // For all zeros, the scale is 1 as in onnxruntime; the specification divides 0 by 0.
  Value *flat = Binary(b, "equal", span, nothing), *step = Binary(b, "real_div", span, 255.0);
  Value* scale = Select(b, flat, 1.0, step);
  Value* zero = round(clip(Binary(b, "real_div", Binary(b, "sub", nothing, low), scale)));
  return {clip(Binary(b, "add", round(Binary(b, "real_div", x, scale)), zero)), scale, zero};
}

}  // namespace mlc::lower
