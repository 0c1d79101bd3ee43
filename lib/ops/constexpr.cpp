// Compressed weights. The meaning of each operator is an Encoding, which its result carries.
#include <algorithm>
#include <bit>

#include "lib/ir/encoding.h"
#include "lib/ir/subbyte.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

void CheckBlocks(const OpContext& context, const Shape& of, const Shape& grid,
                 std::string_view name) {
  if (of.empty() || grid.size() < of.size()) context.Fail("{} has too few dimensions", name);
  for (size_t d = 0; d < of.size(); ++d) {
    int64_t size = of[d].constant(), cells = grid[d].constant();
    if (cells < 1 || size % cells != 0)
      context.Fail("dimension {} of size {} is not divisible by the {} blocks of {}", d, size,
                   cells, name);
  }
}

Shape ShapeOperand(const OpContext& context) {
  Shape shape;
  for (int64_t size : context.Ints("shape")) {
    if (size < 1 || size > INT32_MAX) context.Fail("invalid dimension {} in shape", size);
    shape.push_back(size);
  }
  if (shape.empty()) context.Fail("shape has no elements");
  ElementCount(StaticDims(shape));  // throws on overflow
  return shape;
}

void InferAffine(InferContext& context) {
  const Shape& data = context.shape("quantized_data");
  int axis = OpContext::Axis(context.Int("axis"), static_cast<int>(data.size()));
  for (std::string_view name : {"scale", "zero_point"}) {
    const Shape& shape = context.shape(name);
    if (shape.size() > 1 || (shape.size() == 1 && !(shape[0] == data[axis])))
      context.Fail("{} must be a scalar or a vector of the size of dimension {}", name, axis);
  }
  context.Result(context.dtype("scale"), data);
}

void EvalAffine(EvalContext& context) {
  Tensor data = context.in("quantized_data");
  int axis = OpContext::Axis(context.Int("axis"), data.rank());
  // scale and zero_point are independently scalars or vectors.
  Dims grid(data.rank(), 1);
  Tensor scale = context.in("scale"), zero = context.in("zero_point");
  const int64_t channels = std::max(scale.size(), zero.size());
  grid[axis] = channels;
  auto placed = [&](const Tensor& tensor) {
    if (tensor.size() == channels) return tensor.Reshaped(grid);
    std::vector<double> all(channels, tensor.Double(0));
    return Tensor::Of(grid, all).Cast(tensor.dtype());
  };
  context.Set(Tensor::Encoded({.dtype = context.out_dtype(),
                               .data = data,
                               .scale = placed(scale),
                               .offset = placed(zero)}));
}

void CheckScale(const OpContext& context, const Shape& data, DType dtype) {
  const Shape& scale = context.shape("scale");
  if (scale.size() != data.size()) context.Fail("data and scale have different ranks");
  CheckBlocks(context, data, scale, "scale");
  if (!context.has("offset")) return;
  if (context.shape("offset") != scale) context.Fail("offset and scale have different shapes");
  if (!IsFloat(context.dtype("offset")) && context.dtype("offset") != dtype)
    context.Fail("an integer offset must have the dtype of data");
}

void InferBlockwise(InferContext& context) {
  CheckScale(context, context.shape("data"), context.dtype("data"));
  context.Result(context.dtype("scale"), context.shape("data"));
}

void EvalBlockwise(EvalContext& context) {
  context.Set(Tensor::Encoded({.dtype = context.out_dtype(),
                               .data = context.in("data"),
                               .scale = context.in("scale"),
                               .offset = context.has("offset") ? context.in("offset") : Tensor()}));
}

void InferCast(InferContext& context) {
  std::string dtype = context.String("output_dtype");
  if (dtype != "fp32") context.Fail("output_dtype \"{}\" is not fp32", dtype);
  context.Result(DType::kFp32, context.shape("source_val"));
}

void EvalCast(EvalContext& context) {
  context.Set(context.in("source_val").Cast(context.out_dtype()));
}

// The number of bits of an index into a lookup table of `palettes` entries.
int IndexBits(const OpContext& context, const Dim& palettes) {
  uint64_t count = static_cast<uint64_t>(palettes.constant());
  int bits = std::countr_zero(count);
  if (!std::has_single_bit(count) || bits < 1 || bits > 8)
    context.Fail("a lookup table has {} entries, expected a power of two from 2 to 256", count);
  return bits;
}

// Checks the lookup table for indices of a given shape; returns the shape of the result.
Shape CheckLut(const OpContext& context, Shape indices, DType dtype) {
  const Shape& lut = context.shape("lut");
  if (lut.size() != indices.size() + 2)
    context.Fail("the rank of lut must be that of indices plus 2");
  CheckBlocks(context, indices, lut, "lut");
  if (IndexBits(context, lut[lut.size() - 2]) != Bits(dtype))
    context.Fail("a lookup table of {} entries does not match indices of {}",
                 lut[lut.size() - 2].constant(), Name(dtype));
  int64_t vector = lut.back().constant();
  if (vector < 1 || vector > 1 << 16) context.Fail("invalid vector size {}", vector);
  if (context.has("vector_axis"))
    indices[OpContext::Axis(context.Int("vector_axis"), static_cast<int>(indices.size()))] =
        indices[OpContext::Axis(context.Int("vector_axis"), static_cast<int>(indices.size()))] *
        vector;
  else if (vector != 1)
    context.Fail("a vector size above 1 requires vector_axis");
  return indices;
}

void InferLut(InferContext& context) {
  if (!context.has("shape"))
    return context.Result(context.dtype("lut"),
                          CheckLut(context, context.shape("indices"), context.dtype("indices")));
  Shape shape = ShapeOperand(context);
  if (context.rank("indices") != 1 || context.rank("lut") != 1)
    context.Fail("indices and lut must be vectors");
  int bits = IndexBits(context, context.shape("lut")[0]);
  int64_t bytes = (Product(shape).constant() * bits + 7) / 8;
  if (!(context.shape("indices")[0] == Dim(bytes)))
    context.Fail("indices have {} bytes, expected {}", context.shape("indices")[0].ToString(),
                 bytes);
  context.Result(context.dtype("lut"), std::move(shape));
}

// Converts iOS16 indices, which are packed into bytes, and their table to the later form. Types of
// 5 and 7 bits do not exist; these become 8 bits with an extended table whose additional entries
// are unused.
void Unpack(const Dims& dims, Tensor& indices, Tensor& table) {
  constexpr DType kTypes[] = {DType::kNone,  DType::kUint1, DType::kUint2,
                              DType::kUint3, DType::kUint4, DType::kNone,
                              DType::kUint6, DType::kNone,  DType::kUint8};
  const int bits = std::countr_zero(static_cast<uint64_t>(table.size()));
  std::vector<double> entries = table.Doubles();
  if (DType dtype = kTypes[bits]; dtype != DType::kNone) {
    indices = ViewSubByte(indices, dtype, dims);
  } else {
    Pin<uint8_t> bytes = indices.data<uint8_t>();
    std::vector<uint8_t> values(ElementCount(dims));
    for (size_t i = 0; i < values.size() * bits; ++i)
      if (bytes[i / 8] >> (i % 8) & 1) values[i / bits] |= uint8_t(1 << i % bits);
    indices = Tensor::Of(dims, values);
    entries.resize(256);
  }
  Dims grid(dims.size(), 1);
  grid.insert(grid.end(), {static_cast<int64_t>(entries.size()), 1});
  table = Tensor::Of(grid, entries).Cast(table.dtype());
}

int VectorAxis(const OpContext& context, int rank) {
  return context.has("vector_axis") ? OpContext::Axis(context.Int("vector_axis"), rank) : 0;
}

void EvalLut(EvalContext& context) {
  Tensor indices = context.in("indices"), table = context.in("lut");
  if (context.has("shape")) Unpack(context.out_dims(), indices, table);
  int axis = VectorAxis(context, indices.rank());
  context.Set(Tensor::Encoded({.form = Encoding::Form::kPalette,
                               .data = std::move(indices),
                               .table = std::move(table),
                               .vector_axis = axis}));
}

// The mask operand as uint1; in the iOS16 form it is packed into bytes.
Tensor MaskOperand(const OpContext& context, std::string_view name, const Dims& dims) {
  Tensor mask = context.value(name);
  return mask.dtype() == DType::kUint1 ? mask : ViewSubByte(mask, DType::kUint1, dims);
}

void CheckCount(const OpContext& context, const Tensor& mask, int64_t values) {
  int64_t set = CountSet(mask, 0, mask.size());
  if (set != values) context.Fail("the mask has {} bits set, but there are {} values", set, values);
}

void InferSparse(InferContext& context) {
  if (context.rank("nonzero_data") != 1) context.Fail("nonzero_data must be a vector");
  if (!context.has("shape"))
    return context.Result(context.dtype("nonzero_data"), context.shape("mask"));
  Shape shape = ShapeOperand(context);
  int64_t bytes = (Product(shape).constant() + 7) / 8;
  if (context.rank("mask") != 1 || !(context.shape("mask")[0] == Dim(bytes)))
    context.Fail("mask must have {} bytes", bytes);
  context.Result(context.dtype("nonzero_data"), std::move(shape));
}

void EvalSparse(EvalContext& context) {
  Tensor data = context.in("nonzero_data"), mask = MaskOperand(context, "mask", context.out_dims());
  CheckCount(context, mask, data.size());
  context.Set(Tensor::Encoded(
      {.form = Encoding::Form::kSparse, .data = std::move(data), .mask = std::move(mask)}));
}

void InferLutToSparse(InferContext& context) {
  if (context.rank("indices_nonzero_data") != 1)
    context.Fail("indices_nonzero_data must be a vector");
  Shape mask =
      CheckLut(context, context.shape("indices_mask"), context.dtype("indices_nonzero_data"));
  context.Result(context.dtype("indices_mask"), std::move(mask));
  context.Result(context.dtype("lut"), {context.shape("indices_nonzero_data")[0] *
                                        context.shape("lut").back().constant()});
}

void EvalLutToSparse(EvalContext& context) {
  Tensor mask = context.in("indices_mask"), data = context.in("indices_nonzero_data"),
         table = context.in("lut");
  CheckCount(context, mask, data.size());
  int axis = VectorAxis(context, mask.rank());
  context.Set(Repeated(mask, axis, table.dims().back()));
  context.Set(Tensor::Encoded({.form = Encoding::Form::kPalette,
                               .data = std::move(data),
                               .table = std::move(table),
                               .vector_axis = axis,
                               .mask = std::move(mask)}));
}

void InferSparseBlockwise(InferContext& context) {
  if (context.rank("nonzero_data") != 1) context.Fail("nonzero_data must be a vector");
  CheckScale(context, context.shape("data_mask"), context.dtype("nonzero_data"));
  context.Result(context.dtype("data_mask"), context.shape("data_mask"));
  context.Result(context.dtype("scale"), context.shape("nonzero_data"));
}

void EvalSparseBlockwise(EvalContext& context) {
  Tensor mask = context.in("data_mask"), data = context.in("nonzero_data");
  CheckCount(context, mask, data.size());
  context.Set(mask);
  context.Set(Tensor::Encoded({.dtype = context.out_dtype(1),
                               .data = std::move(data),
                               .scale = context.in("scale"),
                               .offset = context.has("offset") ? context.in("offset") : Tensor(),
                               .mask = std::move(mask)}));
}

Interval RangeScaled(const RangeContext& context, std::string_view data, std::string_view offset) {
  Interval number = context.in(data);
  if (context.has(offset)) number = number - context.in(offset);
  return number * context.in("scale");
}
Interval RangeAffine(const RangeContext& context, int) {
  return RangeScaled(context, "quantized_data", "zero_point");
}
Interval RangeBlockwise(const RangeContext& context, int) {
  return RangeScaled(context, "data", "offset");
}
Interval RangeSource(const RangeContext& context, int) { return context.in("source_val"); }
Interval RangeTable(const RangeContext& context, int) { return context.in("lut"); }
// The first of the two results is the mask.
Interval RangeSparseTable(const RangeContext& context, int result) {
  return result == 0 ? Interval{0, 1} : context.in("lut");
}
Interval RangeSparseBlockwise(const RangeContext& context, int result) {
  return result == 0 ? Interval{0, 1} : RangeScaled(context, "nonzero_data", "offset");
}
Interval RangeSparse(const RangeContext& context, int) {
  return Join(context.in("nonzero_data"), {0, 0});
}

constexpr OpRow kConstexprRows[] = {
    {.name = "constexpr_affine_dequantize",
     .doc = "scale * (quantized_data - zero_point), both per tensor or per channel of an axis",
     .signatures = {{{kIos16,
                      "quantized_data:S! zero_point:Z! scale:D! axis:int32! | S=uint8/int8 "
                      "Z=uint8/int8/fp32 D=fp16/fp32"}}},
     .infer = InferAffine,
     .eval = EvalAffine,
     .constant = ConstantKind::kEncoded,
     .range = RangeAffine},
    {.name = "constexpr_blockwise_shift_scale",
     .doc = "scale * (data - offset), with one scale and offset per block of data",
     .signatures = {{{kIos18,
                      "data:S! scale:D! offset:O!? | S=int4/uint4/int8/uint8/fp16/fp32 D=fp16/fp32 "
                      "O=int4/uint4/int8/uint8/fp16/fp32"}}},
     .infer = InferBlockwise,
     .eval = EvalBlockwise,
     .constant = ConstantKind::kEncoded,
     .range = RangeBlockwise},
    {.name = "constexpr_cast",
     .doc = "a constant stored in fp16, converted to fp32",
     .signatures = {{{kIos16, "source_val:fp16! output_dtype:string!"},
                     {kIos18, "source_val:fp16! output_dtype:string!"}}},
     .infer = InferCast,
     .eval = EvalCast,
     .constant = ConstantKind::kEncoded,
     .range = RangeSource},
    {.name = "constexpr_lut_to_dense",
     .doc = "elements, or vectors along an axis, looked up in tables; in iOS16, indices are packed "
            "into bytes and shape is an operand",
     .signatures = {{{kIos16, "indices:uint8! lut:T! shape:uint32! | T=int8/uint8/fp16/fp32"},
                     {kIos18,
                      "indices:I! lut:T! vector_axis:int32!? shape:uint32!? | "
                      "I=uint1/uint2/uint3/uint4/uint6/uint8 T=int8/uint8/fp16/fp32"}}},
     .infer = InferLut,
     .eval = EvalLut,
     .constant = ConstantKind::kEncoded,
     .range = RangeTable},
    {.name = "constexpr_lut_to_sparse",
     .doc =
         "nonzero values of a sparse tensor, looked up in tables; returns the mask and the values",
     .signatures = {{{kIos18,
                      "indices_mask:uint1! indices_nonzero_data:I! lut:T! vector_axis:int32!? | "
                      "I=uint1/uint2/uint3/uint4/uint6/uint8 T=int8/uint8/fp16/fp32"}}},
     .infer = InferLutToSparse,
     .eval = EvalLutToSparse,
     .constant = ConstantKind::kEncoded,
     .range = RangeSparseTable},
    {.name = "constexpr_sparse_blockwise_shift_scale",
     .doc = "scale * (value - offset) for the nonzero values of a sparse tensor; returns the mask "
            "and the values",
     .signatures =
         {{{kIos18,
            "data_mask:uint1! nonzero_data:S! scale:D! offset:O!? | "
            "S=int4/uint4/int8/uint8/fp16/fp32 D=fp16/fp32 O=int4/uint4/int8/uint8/fp16/fp32"}}},
     .infer = InferSparseBlockwise,
     .eval = EvalSparseBlockwise,
     .constant = ConstantKind::kEncoded,
     .range = RangeSparseBlockwise},
    {.name = "constexpr_sparse_to_dense",
     .doc = "nonzero values where the mask is set, 0 elsewhere; in iOS16, the mask is packed into "
            "bytes and shape is an operand",
     .signatures = {{{kIos16, "nonzero_data:T! mask:uint8! shape:uint32! | T=int8/uint8/fp16/fp32"},
                     {kIos18,
                      "nonzero_data:T! mask:M! shape:uint32!? | T=int4/uint4/int8/uint8/fp16/fp32 "
                      "M=uint1/uint8"}}},
     .infer = InferSparse,
     .eval = EvalSparse,
     .constant = ConstantKind::kEncoded,
     .range = RangeSparse},
};

}  // namespace

std::span<const OpRow> ConstexprRows() { return kConstexprRows; }

}  // namespace mlc
