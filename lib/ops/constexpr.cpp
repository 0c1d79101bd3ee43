// Compressed weights. Results are lazy tensors where they can be: decoded block by block when
// someone reads them.
#include <algorithm>
#include <bit>
#include <cmath>

#include "lib/ops/quantized.h"
#include "lib/ops/range.h"
#include "lib/ops/row.h"
#include "lib/ops/wide.h"

namespace mlc {

namespace {

constexpr int64_t kBlock = 4096;

// Elements [first, first + count) as doubles, sub-byte types too.
void ReadWide(const Tensor& tensor, int64_t first, int64_t count, double* out) {
  int bits = Bits(tensor.dtype());
  if (bits % 8 == 0) {
    Dispatch(tensor.dtype(), [&](auto type) {
      using T = decltype(type);
      std::vector<std::byte> bytes(count * sizeof(T));
      tensor.Read(first, count, bytes.data());
      for (int64_t i = 0; i < count; ++i) {
        T value;
        std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
        out[i] = static_cast<double>(value);
      }
    });
    return;
  }
  int64_t aligned = first / 8 * 8;
  std::vector<std::byte> bytes(ByteCount(tensor.dtype(), first - aligned + count) + 1);
  tensor.Read(aligned, first - aligned + count, bytes.data());
  int mask = (1 << bits) - 1, sign = IsSigned(tensor.dtype()) ? 1 << (bits - 1) : 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t bit = (first - aligned + i) * bits;
    int pair = std::to_integer<int>(bytes[bit / 8]) | std::to_integer<int>(bytes[bit / 8 + 1]) << 8;
    out[i] = ((pair >> (bit % 8) & mask) ^ sign) - sign;
  }
}

std::vector<double> AllWide(const Tensor& tensor) {
  std::vector<double> values(tensor.size());
  ReadWide(tensor, 0, tensor.size(), values.data());
  return values;
}

void WriteRounded(DType dtype, const double* values, int64_t count, std::byte* out) {
  int bits = Bits(dtype);
  if (bits % 8 == 0) {
    Dispatch(dtype, [&](auto type) {
      using T = decltype(type);
      for (int64_t i = 0; i < count; ++i) {
        T value = Narrow<T>(values[i]);
        std::memcpy(out + i * sizeof(T), &value, sizeof(T));
      }
    });
    return;
  }
  std::fill_n(out, ByteCount(dtype, count), std::byte(0));
  for (int64_t i = 0; i < count; ++i) {
    unsigned value = static_cast<unsigned>(static_cast<int>(values[i])) & ((1u << bits) - 1);
    int64_t bit = i * bits;
    out[bit / 8] |= std::byte(value << (bit % 8) & 0xFF);
    if (bit % 8 + bits > 8) out[bit / 8 + 1] |= std::byte(value >> (8 - bit % 8));
  }
}

// A tensor whose elements [first, first + count) decode(first, count, out) computes.
template <class F>
Tensor Decoded(DType dtype, Dims dims, F decode) {
  return Tensor::Lazy(dtype, std::move(dims),
                      [dtype, decode](int64_t first, int64_t count, std::byte* out) {
                        std::vector<double> block(std::min(count, kBlock));
                        for (int64_t done = 0; done < count; done += kBlock) {
                          int64_t now = std::min(kBlock, count - done);
                          decode(first + done, now, block.data());
                          WriteRounded(dtype, block.data(), now, out + done * Bits(dtype) / 8);
                        }
                      });
}

// Blocks of a tensor of `dims` that share one of the values of `grid` (scales, lookup tables): an
// equal number along each dimension.
struct Blocks {
  Dims dims, strides, block, grid_strides;
  Blocks(const Dims& of, const Dims& grid)
      : dims(of), strides(StridesOf(of)), grid_strides(StridesOf(grid)) {
    for (size_t d = 0; d < of.size(); ++d) block.push_back(grid[d] ? of[d] / grid[d] : 1);
  }
  // Calls f(i, n, g) for runs of n elements from i on that all lie in grid cell g.
  template <class F>
  void Runs(int64_t first, int64_t count, F&& f) const {
    size_t last = dims.size() - 1;
    for (int64_t i = first; i < first + count;) {
      int64_t cell = 0;
      for (size_t d = 0; d <= last; ++d)
        cell += i / strides[d] % dims[d] / block[d] * grid_strides[d];
      int64_t n = std::min(first + count - i, block[last] - i % dims[last] % block[last]);
      f(i, n, cell);
      i += n;
    }
  }
};

void CheckBlocks(const OpContext& context, const Shape& of, const Shape& grid,
                 std::string_view name) {
  if (of.empty() || grid.size() < of.size())
    context.Fail(fmt::format("{} has too few dimensions", name));
  for (size_t d = 0; d < of.size(); ++d) {
    int64_t size = of[d].constant(), cells = grid[d].constant();
    if (cells < 1 || size % cells != 0)
      context.Fail(fmt::format("dimension {} of size {} does not divide into the {} of {}", d, size,
                               cells, name));
  }
}

Shape ShapeOperand(const OpContext& context) {
  Shape shape;
  for (int64_t size : context.Ints("shape")) {
    if (size < 1 || size > INT32_MAX) context.Fail(fmt::format("shape holds {}", size));
    shape.push_back(size);
  }
  if (shape.empty()) context.Fail("shape has no elements");
  ElementCount(StaticDims(shape));  // throws when it overflows
  return shape;
}

void InferAffine(InferContext& context) {
  const Shape& data = context.shape("quantized_data");
  int axis = OpContext::Axis(context.Int("axis"), static_cast<int>(data.size()));
  for (std::string_view name : {"scale", "zero_point"}) {
    const Shape& shape = context.shape(name);
    if (shape.size() > 1 || (shape.size() == 1 && !(shape[0] == data[axis])))
      context.Fail(fmt::format("{} must be a scalar or have one element for each of dimension {}",
                               name, axis));
  }
  context.Result(context.dtype("scale"), data);
}

void EvalAffine(EvalContext& context) {
  Tensor data = context.in("quantized_data");
  Dims dims = data.dims();
  int axis = OpContext::Axis(context.Int("axis"), data.rank());
  int64_t inner = ElementCount(Dims(dims.begin() + axis + 1, dims.end())), channels = dims[axis];
  std::vector<double> scale = context.in("scale").Doubles(),
                      zero = context.in("zero_point").Doubles();
  if (scale.size() == 1) scale.resize(channels, scale[0]);
  if (zero.size() == 1) zero.resize(channels, zero[0]);
  context.Set(Decoded(context.out_dtype(), dims, [=](int64_t first, int64_t count, double* out) {
    ReadWide(data, first, count, out);
    for (int64_t i = 0; i < count; ++i) {
      int64_t c = (first + i) / inner % channels;
      out[i] = scale[c] * (out[i] - zero[c]);
    }
  }));
}

void CheckScale(const OpContext& context, const Shape& data, DType dtype) {
  const Shape& scale = context.shape("scale");
  if (scale.size() != data.size())
    context.Fail("data and scale have different numbers of dimensions");
  CheckBlocks(context, data, scale, "scale");
  if (!context.has("offset")) return;
  if (context.shape("offset") != scale) context.Fail("offset and scale have different shapes");
  if (!IsFloat(context.dtype("offset")) && context.dtype("offset") != dtype)
    context.Fail("an integer offset must have the type of data");
}

void InferBlockwise(InferContext& context) {
  CheckScale(context, context.shape("data"), context.dtype("data"));
  context.Result(context.dtype("scale"), context.shape("data"));
}

void EvalBlockwise(EvalContext& context) {
  context.Set(Dequantized({context.in("data"), context.in("scale"),
                           context.has("offset") ? context.in("offset") : Tensor()},
                          context.out_dtype()));
}

void InferCast(InferContext& context) {
  std::string dtype = context.String("output_dtype");
  if (dtype != "fp32") context.Fail(fmt::format("output_dtype \"{}\" is not fp32", dtype));
  context.Result(DType::kFp32, context.shape("source_val"));
}

void EvalCast(EvalContext& context) {
  context.Set(context.in("source_val").Cast(context.out_dtype()));
}

// Bits of an index into a lookup table of `palettes` entries.
int IndexBits(const OpContext& context, const Dim& palettes) {
  uint64_t count = static_cast<uint64_t>(palettes.constant());
  int bits = std::countr_zero(count);
  if (!std::has_single_bit(count) || bits < 1 || bits > 8)
    context.Fail(fmt::format("a lookup table has {} entries", count));
  return bits;
}

// Checks the lookup table of indices [...]; returns the result's shape.
Shape CheckLut(const OpContext& context, Shape indices, DType dtype) {
  const Shape& lut = context.shape("lut");
  if (lut.size() != indices.size() + 2)
    context.Fail("lut must have two dimensions more than indices");
  CheckBlocks(context, indices, lut, "lut");
  if (IndexBits(context, lut[lut.size() - 2]) != Bits(dtype))
    context.Fail(fmt::format("a lookup table of {} entries does not go with indices of {}",
                             lut[lut.size() - 2].constant(), Name(dtype)));
  int64_t vector = lut.back().constant();
  if (vector < 1 || vector > 1 << 16) context.Fail(fmt::format("vectors have {} elements", vector));
  if (context.has("vector_axis"))
    indices[OpContext::Axis(context.Int("vector_axis"), static_cast<int>(indices.size()))] =
        indices[OpContext::Axis(context.Int("vector_axis"), static_cast<int>(indices.size()))] *
        vector;
  else if (vector != 1)
    context.Fail("vectors need vector_axis");
  return indices;
}

void InferLut(InferContext& context) {
  if (!context.has("shape")) {
    context.Result(context.dtype("lut"),
                   CheckLut(context, context.shape("indices"), context.dtype("indices")));
    return;
  }
  Shape shape = ShapeOperand(context);
  if (context.rank("indices") != 1 || context.rank("lut") != 1)
    context.Fail("indices and lut must be vectors");
  int bits = IndexBits(context, context.shape("lut")[0]);
  int64_t bytes = (Product(shape).constant() * bits + 7) / 8;
  if (!(context.shape("indices")[0] == Dim(bytes)))
    context.Fail(fmt::format("indices have {} bytes, expected {}",
                             context.shape("indices")[0].ToString(), bytes));
  context.Result(context.dtype("lut"), std::move(shape));
}

// Where elements of a vector-palettized result come from: index `at` and entry `element` of its
// vector.
struct Source {
  int64_t at, element;
};
Source SourceOf(int64_t i, int64_t inner, int64_t size, int64_t vector) {
  int64_t position = i / inner % size;
  return {(i / inner / size * (size / vector) + position / vector) * inner + i % inner,
          position % vector};
}

void EvalLut(EvalContext& context) {
  Tensor indices = context.in("indices"), lut_tensor = context.in("lut");
  std::vector<double> lut = AllWide(lut_tensor);
  Dims dims = context.out_dims(), lut_dims = lut_tensor.dims();
  if (context.has("shape")) {
    indices = Unpacked(indices, IndexBits(context, Dim(lut_tensor.size())), ElementCount(dims))
                  .Reshaped(dims);
    lut_dims = Dims(dims.size(), 1);
    lut_dims.insert(lut_dims.end(), {lut_tensor.size(), 1});
  }
  int64_t vector = lut_dims.back(), palettes = lut_dims[lut_dims.size() - 2];
  Blocks blocks(indices.dims(), Dims(lut_dims.begin(), lut_dims.end() - 2));
  if (vector == 1) {
    context.Set(Decoded(context.out_dtype(), dims, [=](int64_t first, int64_t count, double* out) {
      ReadWide(indices, first, count, out);
      blocks.Runs(first, count, [&](int64_t i, int64_t n, int64_t table) {
        for (double* x = out + i - first; n > 0; --n, ++x)
          *x = lut[table * palettes + static_cast<int64_t>(*x)];
      });
    }));
    return;
  }
  int axis = OpContext::Axis(context.Int("vector_axis"), indices.rank());
  int64_t inner = StridesOf(dims)[axis], size = dims[axis];
  std::vector<double> at = AllWide(indices);
  blocks.Runs(0, indices.size(), [&](int64_t i, int64_t n, int64_t table) {
    for (; n > 0; --n, ++i) at[i] += static_cast<double>(table * palettes);
  });
  context.Set(Decoded(context.out_dtype(), dims, [=](int64_t first, int64_t count, double* out) {
    for (int64_t i = 0; i < count; ++i) {
      Source source = SourceOf(first + i, inner, size, vector);
      out[i] = lut[static_cast<int64_t>(at[source.at]) * vector + source.element];
    }
  }));
}

// Elements of a mask are bits, LSB first: of bytes in the iOS16 form, of uint1 later.
std::vector<std::byte> MaskBits(const Tensor& mask) {
  std::span<const std::byte> bytes = mask.bytes();
  return {bytes.begin(), bytes.end()};
}
bool IsSet(const std::vector<std::byte>& bits, int64_t i) {
  return (std::to_integer<int>(bits[i / 8]) >> (i % 8) & 1) != 0;
}

int64_t CountSet(const std::vector<std::byte>& bits, int64_t first, int64_t last) {
  int64_t count = 0;
  for (int64_t i = first; i < last;) {
    if (i % 8 == 0 && i + 8 <= last) {
      count += std::popcount(std::to_integer<unsigned>(bits[i / 8]));
      i += 8;
    } else {
      count += IsSet(bits, i++);
    }
  }
  return count;
}

void CheckCount(const OpContext& context, const std::vector<std::byte>& bits, int64_t elements,
                int64_t nonzero) {
  int64_t set = CountSet(bits, 0, elements);
  if (set != nonzero)
    context.Fail(fmt::format("the mask has {} bits set, but there are {} values", set, nonzero));
}

void InferSparse(InferContext& context) {
  if (context.rank("nonzero_data") != 1) context.Fail("nonzero_data must be a vector");
  if (!context.has("shape")) {
    context.Result(context.dtype("nonzero_data"), context.shape("mask"));
    return;
  }
  Shape shape = ShapeOperand(context);
  int64_t bytes = (Product(shape).constant() + 7) / 8;
  if (context.rank("mask") != 1 || !(context.shape("mask")[0] == Dim(bytes)))
    context.Fail(fmt::format("mask must have {} bytes", bytes));
  context.Result(context.dtype("nonzero_data"), std::move(shape));
}

void EvalSparse(EvalContext& context) {
  Tensor data = context.in("nonzero_data");
  Dims dims = context.out_dims();
  int64_t elements = ElementCount(dims);
  auto bits = std::make_shared<const std::vector<std::byte>>(MaskBits(context.in("mask")));
  CheckCount(context, *bits, elements, data.size());
  // Set bits before each block.
  std::vector<int64_t> before{0};
  for (int64_t i = 0; i < elements; i += kBlock)
    before.push_back(before.back() + CountSet(*bits, i, std::min(elements, i + kBlock)));
  context.Set(Decoded(context.out_dtype(), dims, [=](int64_t first, int64_t count, double* out) {
    int64_t at = before[first / kBlock] + CountSet(*bits, first / kBlock * kBlock, first);
    std::vector<double> values(CountSet(*bits, first, first + count));
    ReadWide(data, at, static_cast<int64_t>(values.size()), values.data());
    for (int64_t i = 0, next = 0; i < count; ++i)
      out[i] = IsSet(*bits, first + i) ? values[next++] : 0;
  }));
}

Tensor Rounded(DType dtype, Dims dims, const std::vector<double>& values) {
  std::byte* out = nullptr;
  Tensor tensor = Tensor::Allocate(dtype, std::move(dims), &out);
  WriteRounded(dtype, values.data(), static_cast<int64_t>(values.size()), out);
  return tensor;
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
  Tensor mask = context.in("indices_mask"), lut_tensor = context.in("lut");
  std::vector<double> indices = AllWide(context.in("indices_nonzero_data")),
                      lut = AllWide(lut_tensor);
  std::vector<std::byte> bits = MaskBits(mask);
  CheckCount(context, bits, mask.size(), static_cast<int64_t>(indices.size()));
  Dims lut_dims = lut_tensor.dims(), dims = context.out_dims();
  int64_t vector = lut_dims.back(), palettes = lut_dims[lut_dims.size() - 2];
  // Entry of the lookup tables at each element of the mask, -1 where it is not set.
  std::vector<int64_t> entries(mask.size(), -1);
  int64_t next = 0;
  Blocks(mask.dims(), Dims(lut_dims.begin(), lut_dims.end() - 2))
      .Runs(0, mask.size(), [&](int64_t i, int64_t n, int64_t table) {
        for (; n > 0; --n, ++i)
          if (IsSet(bits, i)) entries[i] = table * palettes + static_cast<int64_t>(indices[next++]);
      });
  int axis = vector > 1 ? OpContext::Axis(context.Int("vector_axis"), mask.rank()) : 0;
  int64_t inner = StridesOf(dims)[axis], size = dims[axis];
  std::vector<double> expanded(ElementCount(dims)), values;
  for (size_t i = 0; i < expanded.size(); ++i) {
    Source source = SourceOf(static_cast<int64_t>(i), inner, size, vector);
    if (entries[source.at] < 0) continue;
    expanded[i] = 1;
    values.push_back(lut[entries[source.at] * vector + source.element]);
  }
  context.Set(Rounded(context.out_dtype(0), dims, expanded));
  context.Set(Rounded(context.out_dtype(1), context.out_dims(1), values));
}

void InferSparseBlockwise(InferContext& context) {
  if (context.rank("nonzero_data") != 1) context.Fail("nonzero_data must be a vector");
  CheckScale(context, context.shape("data_mask"), context.dtype("nonzero_data"));
  context.Result(context.dtype("data_mask"), context.shape("data_mask"));
  context.Result(context.dtype("scale"), context.shape("nonzero_data"));
}

void EvalSparseBlockwise(EvalContext& context) {
  Tensor mask = context.in("data_mask");
  std::vector<double> values = AllWide(context.in("nonzero_data")),
                      scale = AllWide(context.in("scale")), offset(scale.size(), 0.0);
  if (context.has("offset")) offset = AllWide(context.in("offset"));
  std::vector<std::byte> bits = MaskBits(mask);
  CheckCount(context, bits, mask.size(), static_cast<int64_t>(values.size()));
  size_t next = 0;
  Blocks(mask.dims(), context.in("scale").dims())
      .Runs(0, mask.size(), [&](int64_t i, int64_t n, int64_t cell) {
        for (; n > 0; --n, ++i)
          if (IsSet(bits, i)) {
            values[next] = scale[cell] * (values[next] - offset[cell]);
            ++next;
          }
      });
  context.Set(mask);
  context.Set(Rounded(context.out_dtype(1), context.out_dims(1), values));
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
// The first of two results is the mask.
Interval RangeSparseTable(const RangeContext& context, int result) {
  return result == 0 ? Interval{0, 1} : context.in("lut");
}
Interval RangeSparseBlockwise(const RangeContext& context, int result) {
  return result == 0 ? Interval{0, 1} : RangeScaled(context, "nonzero_data", "offset");
}
Interval RangeSparse(const RangeContext& context, int) {
  return Join(context.in("nonzero_data"), {0, 0});
}

constexpr Row kRows[] = {
    {.name = "constexpr_affine_dequantize",
     .doc = "scale * (quantized_data - zero_point), both per tensor or per element of an axis.",
     .forms = {{{kIos16,
                 "quantized_data:S! zero_point:Z! scale:D! axis:int32! | S=uint8/int8 "
                 "Z=uint8/int8/fp32 D=fp16/fp32"}}},
     .infer = InferAffine,
     .eval = EvalAffine,
     .constant = ConstantKind::kEncoded,
     .range = RangeAffine},
    {.name = "constexpr_blockwise_shift_scale",
     .doc = "scale * (data - offset), where each element of scale serves a block of data.",
     .forms = {{{kIos18,
                 "data:S! scale:D! offset:O!? | S=int4/uint4/int8/uint8/fp16/fp32 D=fp16/fp32 "
                 "O=int4/uint4/int8/uint8/fp16/fp32"}}},
     .infer = InferBlockwise,
     .eval = EvalBlockwise,
     .constant = ConstantKind::kEncoded,
     .range = RangeBlockwise},
    {.name = "constexpr_cast",
     .doc = "A constant stored in fp16, as fp32.",
     .forms = {{{kIos16, "source_val:fp16! output_dtype:string!"},
                {kIos18, "source_val:fp16! output_dtype:string!"}}},
     .infer = InferCast,
     .eval = EvalCast,
     .constant = ConstantKind::kEncoded,
     .range = RangeSource},
    {.name = "constexpr_lut_to_dense",
     .doc = "Elements, or vectors along an axis, looked up in tables; iOS16 packs indices into "
            "bytes and gives shape.",
     .forms = {{{kIos16, "indices:uint8! lut:T! shape:uint32! | T=int8/uint8/fp16/fp32"},
                {kIos18,
                 "indices:I! lut:T! vector_axis:int32!? shape:uint32!? | "
                 "I=uint1/uint2/uint3/uint4/uint6/uint8 "
                 "T=int8/uint8/fp16/fp32"}}},
     .infer = InferLut,
     .eval = EvalLut,
     .constant = ConstantKind::kEncoded,
     .range = RangeTable},
    {.name = "constexpr_lut_to_sparse",
     .doc =
         "The values of a sparse tensor looked up in tables; results are the mask and the values.",
     .forms = {{{kIos18,
                 "indices_mask:uint1! indices_nonzero_data:I! lut:T! vector_axis:int32!? | "
                 "I=uint1/uint2/uint3/uint4/uint6/uint8 T=int8/uint8/fp16/fp32"}}},
     .infer = InferLutToSparse,
     .eval = EvalLutToSparse,
     .constant = ConstantKind::kEncoded,
     .range = RangeSparseTable},
    {.name = "constexpr_sparse_blockwise_shift_scale",
     .doc = "scale * (value - offset) for the values of a sparse tensor; results are the mask and "
            "the values.",
     .forms = {{{kIos18,
                 "data_mask:uint1! nonzero_data:S! scale:D! offset:O!? | "
                 "S=int4/uint4/int8/uint8/fp16/fp32 "
                 "D=fp16/fp32 O=int4/uint4/int8/uint8/fp16/fp32"}}},
     .infer = InferSparseBlockwise,
     .eval = EvalSparseBlockwise,
     .constant = ConstantKind::kEncoded,
     .range = RangeSparseBlockwise},
    {.name = "constexpr_sparse_to_dense",
     .doc = "Values where the mask's bits are set, zero elsewhere; iOS16 packs the mask into bytes "
            "and gives shape.",
     .forms = {{{kIos16, "nonzero_data:T! mask:uint8! shape:uint32! | T=int8/uint8/fp16/fp32"},
                {kIos18,
                 "nonzero_data:T! mask:M! shape:uint32!? | T=int4/uint4/int8/uint8/fp16/fp32 "
                 "M=uint1/uint8"}}},
     .infer = InferSparse,
     .eval = EvalSparse,
     .constant = ConstantKind::kEncoded,
     .range = RangeSparse},
};

}  // namespace

Tensor Dequantized(Quantized form, DType dtype) {
  std::vector<double> scale = AllWide(form.scale), offset(scale.size(), 0.0);
  if (form.offset) offset = AllWide(form.offset);
  Tensor data = form.data;
  Blocks blocks(data.dims(), form.scale.dims());
  return Decoded(dtype, data.dims(),
                 [=](int64_t first, int64_t count, double* out) {
                   ReadWide(data, first, count, out);
                   blocks.Runs(first, count, [&](int64_t i, int64_t n, int64_t cell) {
                     for (double* x = out + i - first; n > 0; --n, ++x)
                       *x = scale[cell] * (*x - offset[cell]);
                   });
                 })
      .WithForm(std::move(form));
}

Tensor Unpacked(const Tensor& bytes, int bits, int64_t count) {
  constexpr DType kTypes[] = {DType::kNone,  DType::kUint1, DType::kUint2,
                              DType::kUint3, DType::kUint4, DType::kNone,
                              DType::kUint6, DType::kNone,  DType::kUint8};
  if (bits == 8) return bytes.Reshaped({count});
  if (kTypes[bits] != DType::kNone)
    return Tensor::Lazy(kTypes[bits], {count},
                        [bytes, bits](int64_t first, int64_t n, std::byte* out) {
                          bytes.Read(first * bits / 8, (n * bits + 7) / 8, out);
                        });
  std::span<const std::byte> data = bytes.bytes();
  std::vector<uint8_t> values(count);
  for (int64_t i = 0; i < count * bits; ++i)
    if (std::to_integer<int>(data[i / 8]) >> (i % 8) & 1)
      values[i / bits] |= uint8_t(1 << i % bits);
  return Tensor::Vector(values);
}

std::span<const Row> ConstexprRows() { return kRows; }

}  // namespace mlc
