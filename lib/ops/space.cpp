#include <algorithm>

#include "lib/ops/eval.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"
#include "lib/ops/strided_view.h"

namespace mlc {

namespace {

// Every operator here is a view of x [n, c, h, w] in six dimensions, flattened to four. b is the
// block size below; (i, j) is a position in the block.
//
//   depth_to_space, pixel_shuffle    y[n, c, h*b + i, w*b + j] = x[n, channel(c, i, j), h, w]
//   space_to_depth, pixel_unshuffle  the inverse
//     channel(c, i, j): (i*b + j)*C + c for depth and space (ONNX's DCR order),
//                       c*b*b + i*b + j for pixels (CRD)
//   batch_to_space                   y[n, c, h*b0 + i, w*b1 + j] = x[(i*b1 + j)*N + n, c, h, w],
//                                    then cropped
//   space_to_batch                   the inverse, of x padded by zeros

int64_t BlockSize(const OpContext& context, std::string_view name) {
  if (context.rank("x") != 4)
    context.Fail("x is {}, expected rank 4", context.type("x").ToString());
  int64_t block = context.Int(name);
  if (block < 1 || block > 1 << 20) context.Fail("{} is {}", name, block);
  return block;
}

Dim Divided(const OpContext& context, const Dim& dim, int64_t by) {
  std::optional<Dim> exact = DivideExactly(dim, Dim(by));
  if (!exact && dim.is_constant())
    context.Fail("{} does not divide dimension {} of size {}", by, dim.ToString(),
                 ToString(context.shape("x")));
  return exact ? *exact : FloorDiv(dim, Dim(by));
}

void InferToSpace(InferContext& context, std::string_view block_name) {
  Dim b = BlockSize(context, block_name);
  const Shape& x = context.shape("x");
  context.Result(context.dtype("x"),
                 {x[0], Divided(context, x[1], (b * b).constant()), x[2] * b, x[3] * b});
}

void InferToDepth(InferContext& context, std::string_view block_name) {
  Dim b = BlockSize(context, block_name);
  const Shape& x = context.shape("x");
  context.Result(context.dtype("x"), {x[0], x[1] * b * b, Divided(context, x[2], b.constant()),
                                      Divided(context, x[3], b.constant())});
}

void SetView(EvalContext& context, const Dims& dims, const Dims& strides) {
  context.Set(StridedView(context.in("x"), dims, strides).Reshaped(context.out_dims()));
}

// `channel` and `place` are strides, in channels of x, of the result's channels and of (i*b + j).
void EvalToSpace(EvalContext& context, int64_t b, int64_t channel, int64_t place) {
  Dims x = context.in("x").dims(), s = StridesOf(x);
  SetView(context, {x[0], x[1] / (b * b), x[2], b, x[3], b},
          {s[0], channel * s[1], s[2], b * place * s[1], s[3], place * s[1]});
}

void EvalDepthToSpace(EvalContext& context) {
  int64_t b = BlockSize(context, "block_size");
  EvalToSpace(context, b, 1, context.in("x").dims()[1] / (b * b));
}

void EvalPixelShuffle(EvalContext& context) {
  int64_t b = BlockSize(context, "upscale_factor");
  EvalToSpace(context, b, b * b, 1);
}

void EvalSpaceToDepth(EvalContext& context) {
  Dims x = context.in("x").dims(), s = StridesOf(x);
  int64_t b = BlockSize(context, "block_size");
  SetView(context, {x[0], b, b, x[1], x[2] / b, x[3] / b},
          {s[0], s[2], s[3], s[1], b * s[2], b * s[3]});
}

void EvalPixelUnshuffle(EvalContext& context) {
  Dims x = context.in("x").dims(), s = StridesOf(x);
  int64_t b = BlockSize(context, "downscale_factor");
  SetView(context, {x[0], x[1], b, b, x[2] / b, x[3] / b},
          {s[0], s[1], s[2], s[3], b * s[2], b * s[3]});
}

struct Blocks {
  int64_t size[2];       // block size along h and w
  int64_t margin[2][2];  // padding or crop before and after, along h and w
};

Blocks ReadBlocks(const OpContext& context, std::string_view margin_name) {
  if (context.rank("x") != 4)
    context.Fail("x is {}, expected rank 4", context.type("x").ToString());
  std::vector<int64_t> size = context.Ints("block_shape");
  Tensor margin = context.value(margin_name);
  if (!margin)
    throw Error("needs-constant", "{}: operand \"{}\" must be known at compile time",
                context.def().name, margin_name);
  if (size.size() != 2 || margin.dims() != Dims{2, 2})
    context.Fail("block_shape and {} are not [2] and [2, 2]", margin_name);
  constexpr int64_t kMax = 1 << 20;
  Blocks blocks;
  for (int d = 0; d < 2; ++d) {
    blocks.size[d] = size[d];
    if (size[d] < 1 || size[d] > kMax) context.Fail("invalid size {} in block_shape", size[d]);
    for (int side = 0; side < 2; ++side) {
      int64_t amount = margin.Int(2 * d + side);
      if (amount < 0 || amount > kMax) context.Fail("invalid value in {}: {}", margin_name, amount);
      blocks.margin[d][side] = amount;
    }
  }
  return blocks;
}

void InferSpaceToBatch(InferContext& context) {
  Blocks blocks = ReadBlocks(context, "paddings");
  Shape shape = context.shape("x");
  shape[0] = shape[0] * Dim(blocks.size[0] * blocks.size[1]);
  for (int d = 0; d < 2; ++d)
    shape[2 + d] = Divided(context, shape[2 + d] + Dim(blocks.margin[d][0] + blocks.margin[d][1]),
                           blocks.size[d]);
  context.Result(context.dtype("x"), std::move(shape));
}

void EvalSpaceToBatch(EvalContext& context) {
  Blocks blocks = ReadBlocks(context, "paddings");
  Tensor x = context.in("x");
  Dims padded = x.dims();
  for (int d = 0; d < 2; ++d) padded[2 + d] += blocks.margin[d][0] + blocks.margin[d][1];
  CheckResultSize(context, padded);
  std::byte* bytes = nullptr;
  Tensor source = Tensor::Allocate(x.dtype(), padded, &bytes);
  size_t width = ElementSource(x).width();
  std::fill_n(bytes, source.byte_size(), std::byte{0});
  Dims s = StridesOf(padded);
  int64_t w = x.dims()[3], rows = w == 0 ? 0 : x.size() / w;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t plane = row / x.dims()[2], h = row % x.dims()[2] + blocks.margin[0][0];
    x.Read(row * w, w, bytes + (plane * s[1] + h * s[2] + blocks.margin[1][0]) * width);
  }
  int64_t b0 = blocks.size[0], b1 = blocks.size[1];
  context.Set(StridedView(source, {b0, b1, padded[0], padded[1], padded[2] / b0, padded[3] / b1},
                          {s[2], s[3], s[0], s[1], b0 * s[2], b1 * s[3]})
                  .Reshaped(context.out_dims()));
}

void InferBatchToSpace(InferContext& context) {
  Blocks blocks = ReadBlocks(context, "crops");
  Shape shape = context.shape("x");
  shape[0] = Divided(context, shape[0], blocks.size[0] * blocks.size[1]);
  for (int d = 0; d < 2; ++d) {
    shape[2 + d] =
        shape[2 + d] * Dim(blocks.size[d]) - Dim(blocks.margin[d][0] + blocks.margin[d][1]);
    if (shape[2 + d].is_constant() && shape[2 + d].constant() < 0)
      context.Fail("crops result in a size of {}", ToString(shape));
  }
  context.Result(context.dtype("x"), std::move(shape));
}

void EvalBatchToSpace(EvalContext& context) {
  Blocks blocks = ReadBlocks(context, "crops");
  Tensor x = context.in("x");
  Dims d = x.dims(), s = StridesOf(d), out = context.out_dims();
  int64_t b0 = blocks.size[0], b1 = blocks.size[1], n = d[0] / (b0 * b1);
  Dims whole = {n, d[1], d[2] * b0, d[3] * b1};
  Tensor joined = StridedView(x, {n, d[1], d[2], b0, d[3], b1},
                              {s[0], s[1], s[2], b1 * n * s[0], s[3], n * s[0]})
                      .Reshaped(whole);
  Dims strides = StridesOf(whole);
  context.Set(StridedView(joined, out, strides,
                          blocks.margin[0][0] * strides[2] + blocks.margin[1][0] * strides[3]));
}

constexpr OpRow kSpaceRows[] = {
    {.name = "batch_to_space",
     .doc = "batch elements rearranged into blocks of height and width, then cropped",
     .signatures = {{{kIos15, "x:T block_shape:int32! crops:int32! | T=fp16/fp32"}}},
     .infer = InferBatchToSpace,
     .eval = EvalBatchToSpace,
     .moves = Moves::kView,
     .range = RangeOfX},
    {.name = "depth_to_space",
     .doc = "channels rearranged into blocks of height and width, block index outermost (DCR)",
     .signatures = {{{kIos15, "x:T block_size:int32! | T=fp16/fp32"}}},
     .infer = [](InferContext& context) { InferToSpace(context, "block_size"); },
     .eval = EvalDepthToSpace,
     .moves = Moves::kView,
     .range = RangeOfX},
    {.name = "pixel_shuffle",
     .doc = "channels rearranged into blocks of height and width, block index innermost (CRD)",
     .signatures = {{{kIos15, "x:T upscale_factor:int32! | T=fp16/fp32"}}},
     .infer = [](InferContext& context) { InferToSpace(context, "upscale_factor"); },
     .eval = EvalPixelShuffle,
     .moves = Moves::kView,
     .range = RangeOfX},
    {.name = "pixel_unshuffle",
     .doc = "the inverse of pixel_shuffle",
     .signatures = {{{kIos16, "x:T downscale_factor:uint32! | T=fp16/fp32"}}},
     .infer = [](InferContext& context) { InferToDepth(context, "downscale_factor"); },
     .eval = EvalPixelUnshuffle,
     .moves = Moves::kView,
     .range = RangeOfX},
    {.name = "space_to_batch",
     .doc = "x padded with zeros, with blocks of height and width rearranged into the batch",
     .signatures = {{{kIos15, "x:T block_shape:int32! paddings:int32! | T=fp16/fp32"}}},
     .infer = InferSpaceToBatch,
     .eval = EvalSpaceToBatch,
     .range = RangeOfXOrZero},
    {.name = "space_to_depth",
     .doc = "the inverse of depth_to_space",
     .signatures = {{{kIos15, "x:T block_size:int32! | T=fp16/fp32"}}},
     .infer = [](InferContext& context) { InferToDepth(context, "block_size"); },
     .eval = EvalSpaceToDepth,
     .moves = Moves::kView,
     .range = RangeOfX},
};

}  // namespace

std::span<const OpRow> SpaceRows() { return kSpaceRows; }

}  // namespace mlc
