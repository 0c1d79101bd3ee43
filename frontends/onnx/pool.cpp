// Pools. What Core ML's pools cannot say is spelled out: ceil_mode by longer pads, dilation by
// strided slices.
#include <algorithm>
#include <array>

#include "frontends/onnx/row.h"
#include "frontends/onnx/window.h"

namespace mlc::onnx {
namespace {

int64_t Reach(const Window& window, size_t i) {
  return (window.kernel[i] - 1) * window.dilations[i] + 1;
}

// Makes the pads at the end so long that the rounded-down size is what ceil_mode asks for; a last
// window that would start beyond the padded input is left out (ONNX, AveragePool-19: "if starting
// position is off the image").
std::vector<int64_t> CeilPads(Node& node, const Window& window, const Shape& input) {
  std::vector<int64_t> after = window.after;
  for (size_t i = 0; i < after.size(); ++i) {
    if (window.strides[i] == 1) continue;
    if (!input[i + 2].is_constant()) node.Unsupported("ceil_mode", "needs an input of known size");
    int64_t size = input[i + 2].constant(), stride = window.strides[i];
    int64_t span = size + window.before[i] + window.after[i] - Reach(window, i);
    int64_t count = (span + stride - 1) / stride + 1;
    if ((count - 1) * stride >= size + window.before[i]) --count;
    after[i] += std::max<int64_t>((count - 1) * stride - span, 0);
  }
  return after;
}

// Every tap of the window as a strided slice of the padded input; all of one shape.
std::vector<Value*> Taps(Node& node, Value* x, const Window& window, double pad_value) {
  const Shape shape = x->type.shape;
  size_t spatial = window.kernel.size();
  if (!IsStatic(Shape(shape.begin() + 2, shape.end())))
    node.Unsupported("dilations", "needs an input of known size");
  if (window.has_pads()) {
    std::vector<int64_t> pads;
    for (size_t i = 0; i < spatial; ++i)
      pads.insert(pads.end(), {window.before[i], window.after[i]});
    x = node.Make(
        "pad", {{"x", x}, {"pad", Ints(pads)}, {"mode", "constant"}, {"constant_val", pad_value}});
  }
  int64_t taps = 1;
  for (int64_t size : window.kernel) taps *= size;
  if (taps > 1024)
    node.Unsupported("dilations", fmt::format("a dilated window of {} elements", taps));
  std::vector<Value*> slices;
  for (int64_t tap = 0; tap < taps; ++tap) {
    std::vector<int64_t> begin(2, 0), end(2, 0), stride(2, 1);
    std::vector<bool> end_mask(spatial + 2, false);
    end_mask[0] = end_mask[1] = true;
    int64_t rest = tap;
    std::vector<int64_t> at(spatial);
    for (size_t i = spatial; i-- > 0; rest /= window.kernel[i]) at[i] = rest % window.kernel[i];
    for (size_t i = 0; i < spatial; ++i) {
      int64_t size = x->type.shape[i + 2].constant();
      int64_t count = (size - Reach(window, i)) / window.strides[i] + 1;
      if (size < Reach(window, i))
        node.Fail("bad-operand", "the window is larger than the padded input");
      begin.push_back(at[i] * window.dilations[i]);
      end.push_back(begin.back() + (count - 1) * window.strides[i] + 1);
      stride.push_back(window.strides[i]);
    }
    slices.push_back(node.Make("slice_by_index", {{"x", x},
                                                  {"begin", Ints(begin)},
                                                  {"end", Ints(end)},
                                                  {"stride", Ints(stride)},
                                                  {"end_mask", Tensor::Vector<bool>(end_mask)}}));
  }
  return slices;
}

Value* Chain(Node& node, std::string_view op, const std::vector<Value*>& values) {
  Value* result = values[0];
  for (size_t i = 1; i < values.size(); ++i)
    result = node.Make(op, {{"x", result}, {"y", values[i]}});
  return result;
}

void CheckRank(Node& node) {
  if (node.rank(0) < 3 || node.rank(0) > 5)
    node.Fail("rank-limit",
              fmt::format("input has {} dimensions, Core ML pools 3 to 5", node.rank(0)));
}

Builder::Args PoolArgs(Value* x, const Window& window) {
  Builder::Args args = PadArgs(window);
  args.insert(args.end(),
              {{"x", x}, {"kernel_sizes", Ints(window.kernel)}, {"strides", Ints(window.strides)}});
  return args;
}

void MaxPool(Node& node) {
  CheckRank(node);
  if (node.Wants(1)) node.Fail("unsupported-attribute", "output Indices: MIL's max_pool has none");
  node.Ignore({"storage_order"});  // orders Indices only
  Window window = ReadWindow(node, node.shape(0));
  if (node.Int("ceil_mode", 0)) window.after = CeilPads(node, window, node.shape(0));
  Value* x = node.In(0);
  if (window.dilated()) {
    if (!IsFloat(x->type.dtype) && window.has_pads())
      node.Unsupported("dilations", "with pads, for integers");
    node.Set(
        Chain(node, "maximum", Taps(node, x, window, -std::numeric_limits<double>::infinity())));
    return;
  }
  node.Set(node.Make("max_pool", PoolArgs(x, window)));
}

void AveragePool(Node& node) {
  CheckRank(node);
  Window window = ReadWindow(node, node.shape(0));
  bool include = node.Int("count_include_pad", 0) != 0;
  Value* x = node.In(0);
  bool ceil = node.Int("ceil_mode", 0) != 0;
  std::vector<int64_t> after = ceil ? CeilPads(node, window, node.shape(0)) : window.after;
  bool longer = after != window.after;
  auto pad_explicitly = [&] {
    std::vector<int64_t> pads;
    for (size_t i = 0; i < window.before.size(); ++i)
      pads.insert(pads.end(), {window.before[i], window.after[i]});
    return node.Make("pad",
                     {{"x", x}, {"pad", Ints(pads)}, {"mode", "constant"}, {"constant_val", 0.0}});
  };
  if (include && longer) {
    // The declared pads count, what ceil_mode adds does not.
    Value* padded = pad_explicitly();
    for (size_t i = 0; i < after.size(); ++i) {
      after[i] -= window.after[i];
      window.before[i] = 0;
    }
    x = padded;
    include = false;
  }
  window.after = after;
  if (window.dilated()) {
    if (window.has_pads() && !include) {
      // The mean over what lies inside: sums of values over sums of ones.
      Value* ones = node.Const(Tensor::Full(x->type.dtype, StaticDims(x->type.shape), 1));
      node.Set(node.Make("real_div", {{"x", Chain(node, "add", Taps(node, x, window, 0))},
                                      {"y", Chain(node, "add", Taps(node, ones, window, 0))}}));
      return;
    }
    std::vector<Value*> taps = Taps(node, x, window, 0);
    node.Set(node.Make(
        "mul", {{"x", Chain(node, "add", taps)}, {"y", 1.0 / static_cast<double>(taps.size())}}));
    return;
  }
  Builder::Args args = PoolArgs(x, window);
  args.emplace_back("exclude_padding_from_average", !include);
  node.Set(node.Make("avg_pool", std::move(args)));
}

// (sum |x|^p)^(1/p) over the last dimensions or windows; `mean` makes the mean of its operand,
// `count` elements each.
Value* LpNorm(Node& node, Value* x, int64_t p, double count,
              const std::function<Value*(Value*)>& mean) {
  Value* magnitude = node.Make("abs", {{"x", x}});
  Value* power =
      p == 1 ? magnitude : node.Make("pow", {{"x", magnitude}, {"y", static_cast<double>(p)}});
  Value* sum = node.Make("mul", {{"x", mean(power)}, {"y", count}});
  return p == 1 ? sum : node.Make("pow", {{"x", sum}, {"y", 1.0 / static_cast<double>(p)}});
}

int64_t NormOrder(Node& node) {
  int64_t p = node.opset() == 1 ? static_cast<int64_t>(node.Float("p", 2.0)) : node.Int("p", 2);
  if (p < 1) node.Unsupported("p", fmt::format("is {}", p));
  return p;
}

void LpPool(Node& node) {
  CheckRank(node);
  Window window = ReadWindow(node, node.shape(0));
  if (node.Int("ceil_mode", 0)) window.after = CeilPads(node, window, node.shape(0));
  int64_t p = NormOrder(node);
  double count = 1;
  for (int64_t size : window.kernel) count *= static_cast<double>(size);
  node.Set(LpNorm(node, node.In(0), p, count, [&](Value* power) {
    if (window.dilated())
      return node.Make("mul",
                       {{"x", Chain(node, "add", Taps(node, power, window, 0))}, {"y", 1 / count}});
    Builder::Args args = PoolArgs(power, window);
    args.emplace_back("exclude_padding_from_average", false);
    return node.Make("avg_pool", std::move(args));
  }));
}

std::vector<int64_t> SpatialAxes(Node& node) {
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < node.rank(0); ++i) axes.push_back(i);
  if (axes.empty()) node.Fail("bad-operand", "input has no spatial dimensions");
  return axes;
}

void GlobalAveragePool(Node& node) {
  node.Set(node.Make("reduce_mean",
                     {{"x", node.In(0)}, {"axes", Ints(SpatialAxes(node))}, {"keep_dims", true}}));
}
void GlobalMaxPool(Node& node) {
  node.Set(node.Make("reduce_max",
                     {{"x", node.In(0)}, {"axes", Ints(SpatialAxes(node))}, {"keep_dims", true}}));
}
void GlobalLpPool(Node& node) {
  std::vector<int64_t> axes = SpatialAxes(node);
  int64_t p = NormOrder(node);
  if (p == 2) {
    node.Set(node.Make("reduce_l2_norm",
                       {{"x", node.In(0)}, {"axes", Ints(axes)}, {"keep_dims", true}}));
    return;
  }
  Value* magnitude = node.Make("abs", {{"x", node.In(0)}});
  Value* power =
      p == 1 ? magnitude : node.Make("pow", {{"x", magnitude}, {"y", static_cast<double>(p)}});
  Value* sum = node.Make("reduce_sum", {{"x", power}, {"axes", Ints(axes)}, {"keep_dims", true}});
  node.Set(p == 1 ? sum : node.Make("pow", {{"x", sum}, {"y", 1.0 / static_cast<double>(p)}}));
}

constexpr std::array kRows = {
    Row("AveragePool", AveragePool).Direct(),
    Row("GlobalAveragePool", GlobalAveragePool).Direct(),
    Row{"GlobalLpPool", GlobalLpPool},
    Row("GlobalMaxPool", GlobalMaxPool).Direct(),
    Row{"LpPool", LpPool},
    Row("MaxPool", MaxPool).Direct(),
};

}  // namespace

std::span<const Row> PoolRows() { return kRows; }

}  // namespace mlc::onnx
