// Pooling. Core ML's pools lack ceil_mode, which is expressed by larger pads, and dilation, which
// is expressed by strided slices.
#include <algorithm>
#include <array>

#include "frontends/onnx/ops/window.h"
#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {
namespace {

int64_t Reach(const Window& window, size_t i) {
  return (window.kernel[i] - 1) * window.dilations[i] + 1;
}

// Enlarges the pads at the end so that the rounded-down output size equals that of ceil_mode. A
// last window that would start beyond the padded input is omitted (ONNX, AveragePool-19: "if
// starting position is off the image").
std::vector<int64_t> CeilPads(const Window& window, const Shape& input) {
  std::vector<int64_t> after = window.after;
  for (size_t i = 0; i < after.size(); ++i) {
    if (window.strides[i] == 1) continue;
    int64_t stride = window.strides[i];
    if (!input[i + 2].is_constant()) {
      // The largest extension for this stride such that no window starts beyond the input.
      after[i] = std::min(after[i] + stride - 1, std::max(Reach(window, i) - 1, after[i]));
      continue;
    }
    int64_t size = input[i + 2].constant();
    int64_t span = size + window.before[i] + window.after[i] - Reach(window, i);
    int64_t count = (span + stride - 1) / stride + 1;
    if ((count - 1) * stride >= size + window.before[i]) --count;
    after[i] += std::max<int64_t>((count - 1) * stride - span, 0);
  }
  return after;
}

// Lower than or equal to every element. Finite, because Core ML does not support infinite constants
// everywhere.
constexpr double kLowest = std::numeric_limits<float>::lowest();

Value* Padded(Node& node, Value* x, const Window& window, double pad_value) {
  if (!window.has_pads()) return x;
  std::vector<int64_t> pads;
  for (size_t i = 0; i < window.before.size(); ++i)
    pads.insert(pads.end(), {window.before[i], window.after[i]});
  return node.Make(
      "pad", {{"x", x}, {"pad", Ints(pads)}, {"mode", "constant"}, {"constant_val", pad_value}});
}

constexpr int64_t kMostTaps = 4096;

void CheckTaps(Node& node, std::string_view attribute, int64_t taps) {
  if (taps > kMostTaps) node.Unsupported(attribute, "a window of {} elements is too large", taps);
}

// Element tap[i] of every window along each spatial dimension i; -1 keeps the dimension.
Value* TapOf(Node& node, Value* padded, const Window& window, const std::vector<int64_t>& tap) {
  size_t spatial = tap.size();
  std::vector<int64_t> begin(spatial + 2, 0), end(spatial + 2, 0), stride(spatial + 2, 1);
  std::vector<bool> end_mask(spatial + 2, true);
  for (size_t i = 0; i < spatial; ++i) {
    if (tap[i] < 0) continue;
    const Dim& size = padded->type.shape[i + 2];
    if (size.is_constant() && size.constant() < Reach(window, i))
      node.Fail("bad-operand", "the window is larger than the padded input");
    begin[i + 2] = tap[i] * window.dilations[i];
    end[i + 2] = begin[i + 2] + 1 - Reach(window, i);  // excludes elements past the last window
    stride[i + 2] = window.strides[i];
    end_mask[i + 2] = end[i + 2] == 0;
  }
  return node.Make("slice_by_index", {{"x", padded},
                                      {"begin", Ints(begin)},
                                      {"end", Ints(end)},
                                      {"stride", Ints(stride)},
                                      {"end_mask", Tensor::Vector<bool>(end_mask)}});
}

// Combines the elements of every window with `op`, one dimension at a time.
Value* Together(Node& node, Value* x, const Window& window, std::string_view op, double pad_value) {
  size_t spatial = window.kernel.size();
  CheckTaps(node, "dilations", *std::ranges::max_element(window.kernel));
  if (window.same_upper || window.same_lower)
    node.Unsupported("auto_pad",
                     "auto_pad SAME with strides and dilations requires an input of constant size");
  x = Padded(node, x, window, pad_value);
  for (size_t i = 0; i < spatial; ++i) {
    Value* sum = nullptr;
    for (int64_t k = 0; k < window.kernel[i]; ++k) {
      std::vector<int64_t> tap(spatial, -1);
      tap[i] = k;
      Value* part = TapOf(node, x, window, tap);
      sum = sum ? node.Make(op, {{"x", sum}, {"y", part}}) : part;
    }
    x = sum;
  }
  return x;
}

void CheckRank(Node& node) {
  if (node.rank(0) < 3 || node.rank(0) > 5)
    node.Fail("rank-limit", "input has {} dimensions; Core ML supports pooling with 3 to 5",
              node.rank(0));
}

Builder::Args PoolArgs(Value* x, const Window& window) {
  Builder::Args args = PadArgs(window);
  args.insert(args.end(),
              {{"x", x}, {"kernel_sizes", Ints(window.kernel)}, {"strides", Ints(window.strides)}});
  return args;
}

// The indices of the maximum elements in the flattened input, in row-major order, or column-major
// order (first spatial dimension fastest) with storage_order; the first of equal elements.
Value* Places(Node& node, Value* x, const Window& window) {
  size_t spatial = window.kernel.size();
  int64_t taps = ElementCount(window.kernel);
  CheckTaps(node, "storage_order", taps);
  if (window.same_upper || window.same_lower)
    node.Unsupported(
        "auto_pad",
        "auto_pad SAME with strides and output Indices requires an input of constant size");
  bool columns = node.Int("storage_order", 0) != 0;
  auto product = [&](Value* a, Value* b) { return Binary(node, "mul", a, b); };
  auto number = [&](int64_t n) {
    return node.Const(Tensor::Scalar<int32_t>(static_cast<int32_t>(n)));
  };
  std::vector<Value*> steps(spatial);
  Value* pixels = number(1);
  for (size_t i = 0; i < spatial; ++i) {
    size_t at = columns ? i : spatial - 1 - i;
    steps[at] = pixels;
    pixels = product(pixels, DimOf(node, x, static_cast<int>(at) + 2));
  }
  Value* padded = Padded(node, x, window, kLowest);
  auto tap_at = [&](int64_t flat) {
    std::vector<int64_t> tap(spatial);
    for (size_t i = spatial; i-- > 0; flat /= window.kernel[i]) tap[i] = flat % window.kernel[i];
    return tap;
  };
  // The start of each window, [n, c, windows ...].
  Value* greatest = TapOf(node, padded, window, tap_at(0));
  Value* start = nullptr;
  auto add = [&](Value* vector, Value* step, size_t dimension) {
    Value* part = VectorAlong(node, product(vector, step), dimension, spatial + 2);
    start = start ? Binary(node, "add", start, part) : part;
  };
  Value* image = product(DimOf(node, x, 1), pixels);
  add(IndicesOf(node, x, 0), image, 0);
  add(IndicesOf(node, x, 1), pixels, 1);
  for (size_t i = 0; i < spatial; ++i) {
    Value* stride = number(window.strides[i]);
    Value* window_at = product(IndicesOf(node, greatest, static_cast<int>(i) + 2), stride);
    add(Binary(node, "sub", window_at, number(window.before[i])), steps[i], i + 2);
  }
  Value* place = start;
  for (int64_t t = 1; t < taps; ++t) {
    std::vector<int64_t> tap = tap_at(t);
    Value* value = TapOf(node, padded, window, tap);
    Value* at = start;
    for (size_t i = 0; i < spatial; ++i)
      if (tap[i] > 0)
        at = Binary(node, "add", at, product(steps[i], number(tap[i] * window.dilations[i])));
    place = Select(node, Binary(node, "greater", value, greatest), at, place);
    if (t + 1 < taps) greatest = Binary(node, "maximum", greatest, value);
  }
  return place;
}

void MaxPool(Node& node) {
  CheckRank(node);
  Window window = ReadWindow(node, node.shape(0));
  if (node.Int("ceil_mode", 0)) window.after = CeilPads(window, node.shape(0));
  Value* x = node.In(0);
  DType dtype = x->type.dtype;
  if (!IsFloat(dtype)) x = node.builder().Cast(x, DType::kFp32);  // 8-bit integers
  Value* y = window.dilated() ? Together(node, x, window, "maximum", kLowest)
                              : node.Make("max_pool", PoolArgs(x, window));
  node.Set(0, node.builder().Cast(y, dtype), node.dtype());
  if (node.HasOutput(1)) node.Set(1, Places(node, x, window), DType::kInt64);
  node.Ignore({"storage_order"});  // applies to output Indices only
}

// Scatters elements to the positions given by MaxPool's Indices; other elements are zero.
void MaxUnpool(Node& node) {
  CheckRank(node);
  if (!IsStatic(node.shape(0)) || node.shape(0) != node.shape(1))
    node.Fail("bad-operand", "X is {} and I is {}, expected equal constant shapes",
              ToString(node.shape(0)), ToString(node.shape(1)));
  std::vector<int64_t> kernel = node.Ints("kernel_shape");
  size_t spatial = kernel.size();
  std::vector<int64_t> strides = node.Ints("strides", std::vector<int64_t>(spatial, 1)),
                       pads = node.Ints("pads", std::vector<int64_t>(2 * spatial, 0));
  Dims pooled = StaticDims(node.shape(0)), dims = {pooled[0], pooled[1]};
  if (spatial + 2 != pooled.size() || strides.size() != spatial || pads.size() != 2 * spatial)
    node.Fail("bad-attribute", "the attributes do not match the rank of the input");
  constexpr int64_t kSane = int64_t{1} << 28;
  int64_t count = dims[0] * dims[1];
  for (size_t i = 0; i < spatial; ++i) {
    int64_t size = (pooled[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[spatial + i];
    if (size < 1 || size > kSane || (count *= size) > kSane)
      node.Fail("bad-attribute", "dimension {} of the output would be {}", i + 2, size);
    dims.push_back(size);
  }
  Value* x = WithShape(node, node.In(0), {-1});
  Value* places = WithShape(node, node.In(1), {-1});
  Value* zeros = node.Const(Tensor::Full(lower::RuntimeType(node.dtype()), {count}, 0));
  Value* y = node.Make(
      "scatter",
      {{"data", zeros}, {"indices", places}, {"updates", x}, {"axis", 0}, {"mode", "update"}});
  y = WithShape(node, y, dims);
  // The indices refer to the size computed above; output_shape extends it at the end.
  if (node.HasInput(2)) {
    std::vector<int64_t> shape = node.ConstantInts(2, "output_shape"), beyond;
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t more = i < shape.size() ? shape[i] - dims[i] : -1;
      if (shape.size() != dims.size() || more < 0 || more > kSane)
        node.Fail("bad-operand", "output_shape is smaller than the inferred shape");
      beyond.insert(beyond.end(), {0, more});
    }
    if (shape != dims)
      y = node.Make("pad",
                    {{"x", y}, {"pad", Ints(beyond)}, {"mode", "constant"}, {"constant_val", 0.0}});
  }
  node.SetAlike(y);
}

void AveragePool(Node& node) {
  CheckRank(node);
  Window window = ReadWindow(node, node.shape(0));
  bool include = node.Int("count_include_pad", 0) != 0;
  Value* x = node.In(0);
  bool ceil = node.Int("ceil_mode", 0) != 0;
  std::vector<int64_t> after = ceil ? CeilPads(window, node.shape(0)) : window.after;
  bool longer = after != window.after;
  if (include && longer) {
    // The mean includes the declared pads but not the extension for ceil_mode.
    x = Padded(node, x, window, 0);
    for (size_t i = 0; i < after.size(); ++i) {
      after[i] -= window.after[i];
      window.before[i] = 0;
    }
    include = false;
  }
  window.after = after;
  if (window.dilated()) {
    if (window.has_pads() && !include) {
      // The mean of the elements inside the input: the sum of the values divided by a sum of ones.
      Sizes sizes(node);
      sizes.Add({1, 1});
      for (int i = 2; i < x->type.rank(); ++i) sizes.AddDim(x, i);
      Value* ones = node.Make(
          "fill", {{"shape", sizes.Make()}, {"value", Tensor::Full(x->type.dtype, {}, 1)}});
      return node.Set(node.Make("real_div", {{"x", Together(node, x, window, "add", 0)},
                                             {"y", Together(node, ones, window, "add", 0)}}));
    }
    double count = static_cast<double>(ElementCount(window.kernel));
    return node.Set(Binary(node, "mul", Together(node, x, window, "add", 0), 1 / count));
  }
  Builder::Args args = PoolArgs(x, window);
  args.emplace_back("exclude_padding_from_average", !include);
  node.Set(node.Make("avg_pool", std::move(args)));
}

// (sum |x|^p)^(1/p) over the last dimensions or over windows. `mean` averages its operand over
// `count` elements.
Value* LpNorm(Node& node, Value* x, int64_t p, double count,
              const std::function<Value*(Value*)>& mean) {
  Value* magnitude = node.Make("abs", {{"x", x}});
  Value* power = p == 1 ? magnitude : Binary(node, "pow", magnitude, static_cast<double>(p));
  Value* sum = Binary(node, "mul", mean(power), count);
  return p == 1 ? sum : Binary(node, "pow", sum, 1.0 / static_cast<double>(p));
}

int64_t NormOrder(Node& node) {
  int64_t p = node.opset() == 1 ? static_cast<int64_t>(node.Float("p", 2.0)) : node.Int("p", 2);
  if (p < 1) node.Unsupported("p", "p is {}, expected a positive number", p);
  return p;
}

void LpPool(Node& node) {
  CheckRank(node);
  Window window = ReadWindow(node, node.shape(0));
  if (node.Int("ceil_mode", 0)) window.after = CeilPads(window, node.shape(0));
  int64_t p = NormOrder(node);
  double count = 1;
  for (int64_t size : window.kernel) count *= static_cast<double>(size);
  node.Set(LpNorm(node, node.In(0), p, count, [&](Value* power) {
    if (window.dilated())
      return Binary(node, "mul", Together(node, power, window, "add", 0), 1 / count);
    Builder::Args args = PoolArgs(power, window);
    args.emplace_back("exclude_padding_from_average", false);
    return node.Make("avg_pool", std::move(args));
  }));
}

std::vector<int64_t> SpatialAxes(Node& node) {
  std::vector<int64_t> axes = Consecutive(2, node.rank(0));
  if (axes.empty()) node.Fail("bad-operand", "the input has no spatial dimensions");
  return axes;
}

void GlobalAveragePool(Node& node) {
  node.Set(Reduced(node, "reduce_mean", node.In(0), SpatialAxes(node), true));
}
void GlobalMaxPool(Node& node) {
  node.Set(Reduced(node, "reduce_max", node.In(0), SpatialAxes(node), true));
}
void GlobalLpPool(Node& node) {
  std::vector<int64_t> axes = SpatialAxes(node);
  int64_t p = NormOrder(node);
  if (p == 2) return node.Set(Reduced(node, "reduce_l2_norm", node.In(0), axes, true));
  Value* magnitude = node.Make("abs", {{"x", node.In(0)}});
  Value* power = p == 1 ? magnitude : Binary(node, "pow", magnitude, static_cast<double>(p));
  Value* sum = Reduced(node, "reduce_sum", power, axes, true);
  node.Set(p == 1 ? sum : Binary(node, "pow", sum, 1.0 / static_cast<double>(p)));
}

constexpr std::array kPoolRows = {
    NodeRow("AveragePool", AveragePool).Direct(),
    NodeRow("GlobalAveragePool", GlobalAveragePool).Direct(),
    NodeRow{"GlobalLpPool", GlobalLpPool},
    NodeRow("GlobalMaxPool", GlobalMaxPool).Direct(),
    NodeRow{"LpPool", LpPool},
    NodeRow("MaxPool", MaxPool).Direct(),
    NodeRow{"MaxUnpool", MaxUnpool, 9},
};

}  // namespace

std::span<const NodeRow> PoolRows() { return kPoolRows; }

}  // namespace mlc::onnx
