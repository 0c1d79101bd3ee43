// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and what the integer operators share.
#include "frontends/onnx/ops/quantized.h"

#include <algorithm>
#include <cmath>

#include "frontends/onnx/need.h"
#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/sizes.h"
#include "lib/lower/convert.h"
#include "lib/ops/quantized.h"

namespace mlc::onnx {

namespace {

// Constants of types that run-time values do not have (int4, bfloat16, ...) and booleans aside.
bool IsFp8(DType dtype) { return dtype == DType::kFp8E4M3FN || dtype == DType::kFp8E5M2; }

bool IsScalar(const Value* value) { return Product(value->type.shape) == Dim(1); }

// A scale or zero point that has as many numbers along an axis, or as many blocks of the others'
// sizes, as x.
void AgreeWith(Node& node, Value*& x, Value*& value, const Scheme& scheme) {
  int rank = x->type.rank();
  if (!value || IsScalar(value) || rank == 0) return;
  int axis = node.Axis(scheme.axis, rank);
  if (scheme.block == 0 && value->type.rank() == 1)
    Agree(node, x, axis, value, 0, fmt::format("dimension {} and its scales or zero points", axis));
  if (scheme.block > 0 && value->type.rank() == rank)
    for (int i = 0; i < rank; ++i)
      if (i != axis) Agree(node, x, i, value, i, "the sizes beside blocks");
}

// scale or zero in the form that broadcasts against a tensor of shape `x`.
Value* Spread(Node& node, Value* value, const Scheme& scheme, const Shape& x) {
  int rank = static_cast<int>(x.size());
  if (scheme.block == 0) {
    if (value->type.rank() > 1 && !IsScalar(value))
      node.Fail("bad-operand",
                fmt::format("a scale or zero point is {}, expected a scalar or a vector",
                            value->type.ToString()));
    if (IsScalar(value)) return AsScalar(node, value);
    return Along(node, value, node.Axis(scheme.axis, rank), rank);
  }
  int axis = node.Axis(scheme.axis, rank);
  const Shape& grid = value->type.shape;
  if (value->type.rank() != rank || !grid[axis].is_constant() || !x[axis].is_constant())
    node.Fail("bad-operand",
              fmt::format("scales {} of blocks of {}", value->type.ToString(), ToString(x)));
  int64_t size = x[axis].constant(), cells = grid[axis].constant();
  if ((size + scheme.block - 1) / scheme.block != cells)
    node.Fail("bad-operand",
              fmt::format("{} blocks of {} along a dimension of {}", cells, scheme.block, size));
  // [.., cells, ..] -> [.., cells, block, ..] -> [.., size, ..]
  std::vector<int64_t> reps(rank + 1, 1), joined;
  reps[axis + 1] = scheme.block;
  for (int i = 0; i < rank; ++i) {
    if (!grid[i].is_constant()) node.Fail("dynamic-shape", "blocks of a tensor of unknown size");
    joined.push_back(i == axis ? cells * scheme.block : grid[i].constant());
  }
  value = node.Make("expand_dims", {{"x", value}, {"axes", Ints({axis + 1})}});
  value = node.Make("tile", {{"x", value}, {"reps", Ints(reps)}});
  value = node.Make("reshape", {{"x", value}, {"shape", Ints(joined)}});
  if (cells * scheme.block == size) return value;
  joined[axis] = size;
  return node.Make(
      "slice_by_size",
      {{"x", value}, {"begin", Ints(std::vector<int64_t>(rank, 0))}, {"size", Ints(joined)}});
}

// Whether MIL's quantize and dequantize have this scheme, for a tensor of this rank.
bool InMil(Node& node, const Scheme& scheme, int rank) {
  if (node.target().value_or(Opset::kIos17) < Opset::kIos17) return false;
  if (scheme.integers != DType::kInt8 && scheme.integers != DType::kUint8) return false;
  if (!scheme.scale->is_constant() || (scheme.zero && !scheme.zero->is_constant())) return false;
  return scheme.block == 0 && rank > 0;
}

// The operands scale, zero_point and axis of MIL's quantize and dequantize.
Builder::Args MilArgs(Node& node, const Scheme& scheme, DType scale_type, int rank) {
  Tensor scale = scheme.scale->constant().Cast(scale_type), zero;
  if (scheme.zero) zero = scheme.zero->constant();
  bool scalar = scale.size() == 1;
  if (zero && (zero.size() == 1) != scalar)
    node.Fail("bad-operand", "the zero point has another shape than the scale");
  if (scalar) {
    scale = scale.Reshaped({});
    if (zero) zero = zero.Reshaped({});
  }
  // A zero point of zeros is the default.
  if (zero) {
    std::vector<int64_t> values = zero.Ints();
    if (std::all_of(values.begin(), values.end(), [](int64_t z) { return z == 0; })) zero = {};
  }
  Builder::Args args = {{"scale", node.Const(scale)}};
  if (zero) args.emplace_back("zero_point", node.Const(zero));
  if (!scalar) args.emplace_back("axis", static_cast<int64_t>(node.Axis(scheme.axis, rank)));
  return args;
}

DType FloatType(Node& node, DType onnx) {
  DType type = RuntimeType(onnx);
  if (!IsFloat(type)) node.Fail("unsupported-dtype", fmt::format("computing with {}", Name(onnx)));
  return type;
}

// A constant in the grid form of lib/ir/tensor.h; empty where blocks do not divide evenly.
Tensor Grid(Node& node, const Tensor& value, const Scheme& scheme, const Dims& x) {
  int rank = static_cast<int>(x.size());
  if (value.size() == 1) return value.Reshaped(Dims(rank, 1));
  if (scheme.block > 0) {
    if (value.rank() != rank) node.Fail("bad-operand", "blocks have another rank than the tensor");
    for (int i = 0; i < rank; ++i)
      if (value.dims()[i] == 0 || x[i] % value.dims()[i] != 0) return {};
    int axis = node.Axis(scheme.axis, rank);
    return value.dims()[axis] * scheme.block == x[axis] ? value : Tensor();
  }
  int axis = node.Axis(scheme.axis, rank);
  if (value.rank() != 1 || value.size() != x[axis])
    node.Fail("bad-operand", fmt::format("{} scales for a dimension of {}", value.size(), x[axis]));
  Dims dims(rank, 1);
  dims[axis] = value.size();
  return value.Reshaped(std::move(dims));
}

// The constant in its quantised form; nothing when it has none.
Value* DequantizedConstant(Node& node, const Tensor& x, const Scheme& scheme, DType to) {
  if (!scheme.scale->is_constant() || (scheme.zero && !scheme.zero->is_constant())) return nullptr;
  if (IsFp8(scheme.integers) || x.size() == 0) return nullptr;
  Tensor data = x.rank() == 0 ? x.Reshaped({1}) : x;
  Quantized form{data, Grid(node, scheme.scale->constant(), scheme, data.dims()), {}};
  if (!form.scale) return nullptr;
  if (scheme.zero) {
    form.offset = Grid(node, scheme.zero->constant(), scheme, data.dims());
    if (!form.offset || form.offset.dims() != form.scale.dims()) return nullptr;
  }
  return node.Const(Dequantized(std::move(form), to).Reshaped(x.dims()));
}

// The int8 or uint8 of which x is a conversion.
Value* Narrow(const Value* x, DType integers) {
  if (!x->def || !x->def->is("cast")) return nullptr;
  Value* source = x->def->value("x");
  return source && source->type.dtype == integers ? source : nullptr;
}

}  // namespace

Range RangeOf(DType integers) {
  double high = std::ldexp(1, Bits(integers) - (IsSigned(integers) ? 1 : 0)) - 1;
  return {IsSigned(integers) ? -high - 1 : 0, high};
}

Value* Along(Node& node, Value* vector, int axis, int rank) {
  if (IsScalar(vector)) return AsScalar(node, vector);
  if (vector->type.rank() != 1) return vector;
  std::vector<int64_t> axes;
  for (int i = 1; i < rank - axis; ++i) axes.push_back(i);
  if (axes.empty()) return vector;
  return node.Make("expand_dims", {{"x", vector}, {"axes", Ints(axes)}});
}

Scheme SchemeOf(Node& node, int scale, int zero, DType integers) {
  return {node.In(scale), node.Optional(zero), integers};
}

Value* Quantize(Node& node, Value* x, Scheme scheme) {
  int rank = x->type.rank();
  for (Value** value : {&scheme.scale, &scheme.zero}) AgreeWith(node, x, *value, scheme);
  if (InMil(node, scheme, rank) && !x->is_constant()) {
    Builder::Args args = MilArgs(node, scheme, x->type.dtype, rank);
    args.emplace_back("input", x);
    args.emplace_back("output_dtype", std::string(Name(scheme.integers)));
    return node.Make("quantize", std::move(args));
  }
  if (!IsInteger(scheme.integers))
    node.Fail("unsupported-dtype",
              fmt::format("rounding to {} at run time", Name(scheme.integers)));
  Value* scale = Convert(node, scheme.scale, scheme.scale->type.dtype, x->type.dtype);
  Value* steps =
      node.Make("real_div", {{"x", x}, {"y", Spread(node, scale, scheme, x->type.shape)}});
  // fp16 counts to 2048.
  DType wide = Bits(scheme.integers) > 8 ? DType::kFp32 : x->type.dtype;
  steps = node.Make("round", {{"x", node.builder().Cast(steps, wide)}});
  if (scheme.zero) {
    Value* zero = Convert(node, scheme.zero, scheme.integers, wide);
    steps = node.Make("add", {{"x", steps}, {"y", Spread(node, zero, scheme, x->type.shape)}});
  }
  Range range = RangeOf(scheme.integers);
  steps = node.Make("clip", {{"x", steps}, {"alpha", range.low}, {"beta", range.high}});
  return node.builder().Cast(steps, DType::kInt32);
}

Value* Dequantize(Node& node, Value* x, Scheme scheme, DType to) {
  if (x->is_constant())
    if (Value* dense = DequantizedConstant(node, x->constant(), scheme, to)) return dense;
  int rank = x->type.rank();
  DType type = FloatType(node, to);
  for (Value** value : {&scheme.scale, &scheme.zero}) AgreeWith(node, x, *value, scheme);
  Value* narrow = Narrow(x, scheme.integers);
  if (narrow && InMil(node, scheme, rank)) {
    Builder::Args args = MilArgs(node, scheme, type, rank);
    args.emplace_back("input", narrow);
    return node.Make("dequantize", std::move(args));
  }
  // In fp32 where fp16 does not hold the integers.
  DType wide = Bits(scheme.integers) > 8 ? DType::kFp32 : type;
  Value* zero = scheme.zero;
  bool late = IsFp8(scheme.integers) || Bits(scheme.integers) < 32;
  if (zero && !late)
    x = node.Make("sub", {{"x", x}, {"y", Spread(node, zero, scheme, x->type.shape)}});
  x = Convert(node, x, scheme.integers, wide);
  if (zero && late) {
    zero = Convert(node, zero, scheme.integers, wide);
    x = node.Make("sub", {{"x", x}, {"y", Spread(node, zero, scheme, x->type.shape)}});
  }
  Value* scale = Convert(node, scheme.scale, scheme.scale->type.dtype, wide);
  x = node.Make("mul", {{"x", x}, {"y", Spread(node, scale, scheme, x->type.shape)}});
  return node.builder().Cast(x, type);
}

Factor Centered(Node& node, Value* value, Value* zero, DType integers) {
  Range range = RangeOf(integers);
  Factor factor{nullptr, std::max(-range.low, range.high), 0};
  if (zero && zero->is_constant()) {
    std::vector<double> zeros = zero->constant().Doubles();
    factor.most = 0;
    for (double z : zeros) factor.most = std::max({factor.most, range.high - z, z - range.low});
    if (std::all_of(zeros.begin(), zeros.end(), [](double z) { return z == 0; })) zero = nullptr;
  } else if (zero) {
    factor.most = range.high - range.low;
  }
  int rank = value->type.rank();
  if (value->is_constant() && rank > 0 && (!zero || zero->is_constant())) {
    Dims grid(rank, 1);
    if (zero && zero->type.rank() > rank) node.Fail("bad-operand", "the zero point does not fit");
    if (zero) {
      Dims dims = zero->constant().dims();
      std::copy(dims.begin(), dims.end(), grid.end() - std::ssize(dims));
    }
    Quantized form{value->constant(), Tensor::Full(DType::kFp32, grid, 1), {}};
    if (zero) form.offset = zero->constant().Reshaped(grid);
    factor.value = node.Const(Dequantized(std::move(form), DType::kFp32));
    return factor;
  }
  factor.value = Convert(node, value, integers, DType::kFp32);
  if (!zero) return factor;
  Value* offset = Convert(node, zero, integers, DType::kFp32);
  Value* centered = node.Make("sub", {{"x", factor.value}, {"y", offset}});
  factor.value = OfShape(node, centered, factor.value, "what has a zero point");
  return factor;
}

Value* Requantize(Node& node, Value* sum, Value* scale, Value* zero, DType integers) {
  Value* real = node.builder().Cast(sum, DType::kFp32);
  real = node.Make("round", {{"x", node.Make("mul", {{"x", real}, {"y", scale}})}});
  if (zero) {
    zero = Convert(node, zero, integers, DType::kFp32);
    real = node.Make("add", {{"x", real}, {"y", zero}});
  }
  Range range = RangeOf(integers);
  real = node.Make("clip", {{"x", real}, {"alpha", range.low}, {"beta", range.high}});
  real = OfShape(node, real, sum, "what is quantised");
  return node.builder().Cast(real, DType::kInt32);
}

// The range of x and 0 is divided into 255 steps.
DynamicallyQuantized QuantizeDynamically(Node& node, Value* x) {
  auto round = [&](Value* steps) { return node.Make("round", {{"x", steps}}); };
  auto clip = [&](Value* steps) {
    return node.Make("clip", {{"x", steps}, {"alpha", 0.0}, {"beta", 255.0}});
  };
  Value* nothing = node.Const(Tensor::Scalar<float>(0));
  Value* high = Binary(node, "maximum", node.Make("reduce_max", {{"x", x}}), nothing);
  Value* low = Binary(node, "minimum", node.Make("reduce_min", {{"x", x}}), nothing);
  Value* span = Binary(node, "sub", high, low);
  // Of zeros alone the scale is 1, as in onnxruntime; the specification divides 0 by 0.
  Value* scale = node.Make("select", {{"cond", Binary(node, "equal", span, nothing)},
                                      {"a", 1.0},
                                      {"b", node.Make("real_div", {{"x", span}, {"y", 255.0}})}});
  Value* zero = round(clip(Binary(node, "real_div", Binary(node, "sub", nothing, low), scale)));
  return {clip(Binary(node, "add", round(Binary(node, "real_div", x, scale)), zero)), scale, zero};
}

namespace {

DType TypeAttribute(Node& node, std::string_view name, DType fallback) {
  int64_t number = node.Int(name, 0);
  if (number == 0) return fallback;
  DType dtype = ToDType(static_cast<int>(number));
  if (dtype == DType::kNone)
    node.Fail("unsupported-dtype",
              fmt::format("{} is {}", name, DataTypeName(static_cast<int>(number))));
  return dtype;
}

void ReadAxis(Node& node, Scheme& scheme) {
  scheme.axis = node.Int("axis", 1);
  scheme.block = node.Int("block_size", 0);
  if (scheme.block < 0) node.Fail("bad-attribute", fmt::format("block_size is {}", scheme.block));
}

void QuantizeLinear(Node& node) {
  node.Ignore({"saturate"});  // of 8-bit floats
  DType integers = node.HasInput(2) ? node.dtype(2) : DType::kUint8;
  integers = TypeAttribute(node, "output_dtype", integers);
  if (node.HasInput(2) && node.dtype(2) != integers)
    node.Fail("bad-operand", fmt::format("the zero point is {}, output_dtype {}",
                                         Name(node.dtype(2)), Name(integers)));
  Scheme scheme = SchemeOf(node, 1, 2, integers);
  ReadAxis(node, scheme);
  // The division is done in the type of the scale unless `precision` says otherwise.
  DType precision = TypeAttribute(node, "precision", node.dtype(1));
  Value* x = Convert(node, node.In(0), node.dtype(0), FloatType(node, precision));
  if (x->is_constant()) x = node.Const(x->constant().Cast(FloatType(node, precision)));
  node.Set(Quantize(node, x, scheme), integers);
}

void DequantizeLinear(Node& node) {
  Scheme scheme = SchemeOf(node, 1, 2, node.dtype(0));
  ReadAxis(node, scheme);
  DType to = TypeAttribute(node, "output_dtype", node.dtype(1));
  if (scheme.zero && node.dtype(2) != node.dtype(0))
    node.Fail("bad-operand", fmt::format("the zero point is {}, the tensor {}", Name(node.dtype(2)),
                                         Name(node.dtype(0))));
  node.Set(Dequantize(node, node.In(0), scheme, to), to);
}

void DynamicQuantizeLinear(Node& node) {
  DynamicallyQuantized y = QuantizeDynamically(node, node.In(0));
  node.Set(0, node.builder().Cast(y.steps, DType::kInt32), DType::kUint8);
  node.Set(1, y.scale, DType::kFp32);
  node.Set(2, node.builder().Cast(y.zero, DType::kInt32), DType::kUint8);
}

constexpr NodeRow kRows[] = {
    {"DequantizeLinear", DequantizeLinear, 10},
    {"DequantizeLinear", DequantizeLinear, 1, 0, "com.microsoft"},
    {"DynamicQuantizeLinear", DynamicQuantizeLinear, 11},
    {"QuantizeLinear", QuantizeLinear, 10},
    {"QuantizeLinear", QuantizeLinear, 1, 0, "com.microsoft"},
};

}  // namespace

std::span<const NodeRow> QuantizedRows() { return kRows; }

}  // namespace mlc::onnx
