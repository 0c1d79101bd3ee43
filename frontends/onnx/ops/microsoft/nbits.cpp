// com.microsoft: block-quantized weights of 2 to 8 bits.
#include <fmt/ranges.h>

#include <algorithm>

#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/concat_slice.h"
#include "lib/ir/encoding.h"
#include "lib/ir/shape_tensors.h"
#include "lib/ir/subbyte.h"
#include "lib/lower/convert.h"
#include "lib/lower/indices.h"

namespace mlc::onnx {

namespace {

DType Unsigned(Node& node, int64_t bits) {
  switch (bits) {
    case 2:
      return DType::kUint2;
    case 4:
      return DType::kUint4;
    case 8:
      return DType::kUint8;
    default:
      node.Unsupported("bits", "bits={}", bits);
  }
}

// Splits bytes into elements of fewer bits, low bits first, which makes the last dimension longer.
Tensor Unpacked(const Tensor& bytes, DType dtype) {
  Dims dims = bytes.dims();
  dims.back() *= 8 / Bits(dtype);
  return ViewSubByte(bytes, dtype, std::move(dims));
}

void CheckSize(Node& node, const Tensor& tensor, std::string_view name, int64_t size) {
  if (tensor.size() != size)
    node.Fail("bad-operand", "{} has {} elements, expected {}", name, tensor.size(), size);
}

// group[k] is the block whose scale applies to column k of the data [N, K]. Sorts the columns and
// the elements of x by block if they are not sorted already.
Value* InOrder(Node& node, Value* x, const std::vector<int64_t>& group, int64_t block,
               Tensor& data) {
  auto k = static_cast<int64_t>(group.size());
  bool ordered = true;
  for (int64_t i = 0; i < k; ++i) ordered = ordered && group[i] == i / block;
  if (ordered) return x;
  if (k != data.dims()[1])
    node.Unsupported("", "g_idx has {} elements, but B has {} columns", k, data.dims()[1]);
  std::vector<int64_t> order = Consecutive(0, k);
  std::ranges::stable_sort(order, [&](int64_t i, int64_t j) { return group[i] < group[j]; });
  for (int64_t i = 0; i < k; ++i)
    if (group[order[i]] != i / block)
      node.Unsupported("", "g_idx with blocks of different lengths is not supported");
  std::vector<int64_t> all = data.Ints(), moved(all.size());
  for (int64_t i = 0; i < data.size(); ++i) moved[i] = all[i / k * k + order[i % k]];
  data = Tensor::Of<int64_t>(data.dims(), moved).Cast(data.dtype());
  return node.Make("gather", {{"x", x}, {"indices", Ints(order)}, {"axis", -1}});
}

// Inputs: A [..., K], B [N, blocks, bytes], scales, zero_points, g_idx, bias.
void MatMulNBits(Node& node) {
  int64_t k = node.Int("K"), n = node.Int("N"), block = node.Int("block_size");
  DType dtype = Unsigned(node, node.Int("bits", 4));
  node.Ignore({"accuracy_level"});
  if (node.Int("weight_prepacked", 0) != 0)
    node.Unsupported("weight_prepacked", "weights prepacked for another device are not supported");
  constexpr int64_t kSane = int64_t{1} << 24;
  if (k < 1 || n < 1 || block < 1 || k > kSane || n > kSane || block > kSane || block % 8 != 0)
    node.Fail("bad-attribute", "invalid sizes: K={}, N={}, block_size={}", k, n, block);
  int64_t blocks = (k + block - 1) / block, width = blocks * block;
  node.WantConstants({{1, "B"}, {2, "scales"}, {3, "zero_points"}, {4, "g_idx"}});
  Tensor packed = node.Constant(1, "B"), scale = node.Constant(2, "scales");
  CheckSize(node, packed, "B", n * width * Bits(dtype) / 8);
  CheckSize(node, scale, "scales", n * blocks);
  Encoding encoding{.dtype = lower::RuntimeType(node.dtype(0)),
                    .data = Unpacked(packed.Reshaped({n, width * Bits(dtype) / 8}), dtype),
                    .scale = scale.Reshaped({n, blocks}),
                    .offset = Tensor::Full(dtype, {n, blocks}, 1 << (Bits(dtype) - 1))};
  if (node.HasInput(3)) {
    Tensor zero = node.Constant(3, "zero_points");
    if (IsFloat(zero.dtype())) {
      CheckSize(node, zero, "zero_points", n * blocks);
      encoding.offset = zero.Reshaped({n, blocks});
    } else {
      int64_t bytes = (blocks * Bits(dtype) + 7) / 8;
      CheckSize(node, zero, "zero_points", n * bytes);
      encoding.offset = Slice(Unpacked(zero.Reshaped({n, bytes}), dtype), 1, 0, blocks);
    }
  }
  Value* x = node.In(0);
  if (node.HasInput(4))
    x = InOrder(node, x, node.Constant(4, "g_idx").Ints(), block, encoding.data);
  Value* weight = node.Const(Tensor::Encoded(std::move(encoding)));
  if (width != k) weight = SliceBetween(node, weight, {0, 0}, {n, k});
  Value* y = node.Make("matmul", {{"x", x}, {"y", weight}, {"transpose_y", true}});
  if (node.HasInput(5)) y = Binary(node, "add", y, node.In(5));
  node.SetAlike(y);
}

// Inputs: data, indices, scales, zero_points.
void GatherBlockQuantized(Node& node) {
  node.WantConstants({{0, "data"}, {2, "scales"}, {3, "zero_points"}});
  Tensor data = node.Constant(0, "data"), scale = node.Constant(2, "scales");
  int64_t block = node.Int("block_size", 128), bits = node.Int("bits", 4);
  bool bytes = data.dtype() == DType::kUint8;
  if (bytes) data = Unpacked(data, Unsigned(node, bits));
  int rank = data.rank();
  if (rank < 1 || scale.rank() != rank)
    node.Fail("bad-operand", "data has {} dimensions, but scales has {}", rank, scale.rank());
  int axis = node.Axis(node.Int("gather_axis", 0), rank),
      blocks = node.Axis(node.Int("quantize_axis", 1), rank);
  Dims dims = data.dims();
  for (int i = 0; i < rank; ++i) {
    int64_t expected = i == blocks && block > 0 ? (dims[i] + block - 1) / block : dims[i];
    if (scale.dims()[i] != expected && scale.dims()[i] != 1)
      node.Fail("bad-operand", "the shapes of scales, [{}], and data, [{}], do not match",
                fmt::join(scale.dims(), ", "), fmt::join(dims, ", "));
    if (dims[i] % scale.dims()[i] != 0)
      node.Unsupported("block_size", "a last block shorter than the others is not supported");
  }
  DType dtype = node.dtype(2);
  Encoding encoding{.dtype = lower::RuntimeType(dtype), .data = data, .scale = scale};
  if (node.HasInput(3)) {
    Tensor zero = node.Constant(3, "zero_points");
    if (bytes) zero = Unpacked(zero, data.dtype());
    // Each row is padded to a whole byte.
    if (zero.rank() == rank && zero.dims().back() > scale.dims().back())
      zero = Slice(zero, rank - 1, 0, scale.dims().back());
    if (zero.dims() != scale.dims())
      node.Fail("bad-operand", "zero_points and scales must have the same shape");
    encoding.offset = std::move(zero);
  } else if (bytes) {
    encoding.offset = Tensor::Full(data.dtype(), scale.dims(), 1 << (Bits(data.dtype()) - 1));
  }
  Value* table = node.Const(Tensor::Encoded(std::move(encoding)));
  node.Set(
      lower::CountingFromEnd(node.Make(
          "gather", {{"x", table}, {"indices", node.In(1)}, {"axis", static_cast<int64_t>(axis)}})),
      dtype);
}

constexpr NodeRow kNBitsRows[] = {
    Microsoft("GatherBlockQuantized", GatherBlockQuantized)
        .When("data, scales and zero points are constant"),
    Microsoft("MatMulNBits", MatMulNBits)
        .When("the weight is constant; all blocks of g_idx have the same length"),
};

}  // namespace

std::span<const NodeRow> NBitsRows() { return kNBitsRows; }

}  // namespace mlc::onnx
