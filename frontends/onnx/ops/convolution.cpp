// Conv and ConvTranspose.
#include <algorithm>
#include <array>
#include <utility>

#include "frontends/onnx/ops/window.h"
#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"

namespace mlc::onnx {
namespace {

// Returns the weight's spatial sizes after checking its rank.
std::vector<int64_t> KernelOf(Node& node, const Type& x, const Type& weight) {
  const Shape& shape = weight.shape;
  if (x.rank() < 3 || x.rank() > 5)
    node.Fail("rank-limit", "input has {} dimensions; Core ML supports convolutions with 3 to 5",
              x.rank());
  if (weight.rank() != x.rank())
    node.Fail("bad-operand", "weight has {} dimensions, but the input has {}", weight.rank(),
              x.rank());
  if (!IsStatic(shape)) node.Fail("dynamic-shape", "the shape of the weight must be constant");
  std::vector<int64_t> dims = StaticDims(shape);
  return {dims.begin() + 2, dims.end()};
}

int64_t Groups(Node& node) {
  int64_t groups = node.Int("group", 1);
  if (groups < 1) node.Fail("bad-attribute", "group is {}, expected a positive number", groups);
  return groups;
}

// Adds a bias per channel where it cannot be an operand of the convolution.
Value* AddBias(Node& node, Value* y, Value* bias) {
  RequireEqualSize(node, y, 1, bias, 0, "number of output channels and length of the bias");
  return Binary(node, "add", y, VectorAlong(node, bias, 1, y->type.rank()));
}

// Crops the input by its negative pads.
Value* Crop(Node& node, Value* x, Window& window) {
  bool crops = false;
  std::vector<int64_t> begin(2, 0), end(2, 0);
  std::vector<bool> end_mask(2, true);
  for (size_t i = 0; i < window.before.size(); ++i) {
    int64_t front = std::min<int64_t>(window.before[i], 0),
            back = std::min<int64_t>(window.after[i], 0);
    crops = crops || front || back;
    begin.push_back(-front);
    end.push_back(back);
    end_mask.push_back(back == 0);
    window.before[i] -= front;
    window.after[i] -= back;
  }
  if (!crops) return x;
  return SliceBetween(node, x, begin, end, end_mask);
}

// Core ML supports dilation only with constant weights. Other weights are dilated explicitly by
// inserting zeros between their elements.
Value* Spread(Node& node, Value* weight, std::vector<int64_t>& dilations) {
  Dims dims = StaticDims(weight->type.shape);
  for (size_t i = 0; i < dilations.size(); ++i) {
    int64_t gap = dilations[i] - 1, size = dims[i + 2];
    dilations[i] = 1;
    if (gap == 0 || size == 1) continue;
    int64_t behind = ElementCount(Dims(dims.begin() + static_cast<int64_t>(i) + 3, dims.end()));
    Value* rows = WithShape(node, weight, {-1, size, behind});
    rows = Expanded(node, rows, {2});
    rows = node.Make("pad", {{"x", rows},
                             {"pad", Ints({0, 0, 0, 0, 0, gap, 0, 0})},
                             {"mode", "constant"},
                             {"constant_val", 0.0}});
    rows = WithShape(node, rows, {-1, size * (gap + 1), behind});
    dims[i + 2] = size * (gap + 1) - gap;
    rows = SliceOfSize(node, rows, {0, 0, 0}, {-1, dims[i + 2], -1});
    weight = WithShape(node, rows, dims);
  }
  return weight;
}

Builder::Args ConvolutionArgs(Value* x, Value* weight, const Window& window, int64_t groups) {
  Builder::Args args = PadArgs(window);
  args.insert(
      args.end(),
      {{"x", x}, {"weight", weight}, {"strides", Ints(window.strides)}, {"groups", groups}});
  if (window.dilated()) args.emplace_back("dilations", Ints(window.dilations));
  return args;
}

}  // namespace

Value* Convolve(Node& node, Value* x, Value* weight, Value* bias) {
  std::vector<int64_t> kernel = KernelOf(node, x->type, weight->type);
  Window window = ReadWindow(node, x->type.shape, kernel);
  int64_t groups = Groups(node);
  const Dim& channels = x->type.shape[1];
  int64_t per_group = StaticDims(weight->type.shape)[1], out = StaticDims(weight->type.shape)[0];
  if (out % groups != 0 || (channels.is_constant() && channels.constant() != per_group * groups))
    node.Fail("bad-operand", "input has {} channels, but the weight has {} in each of {} groups",
              channels.ToString(), per_group, groups);
  if (!weight->is_constant()) weight = Spread(node, weight, window.dilations);
  x = Crop(node, x, window);
  Builder::Args args = ConvolutionArgs(x, weight, window, groups);
  bool late_bias = bias && !bias->is_constant();
  if (bias && !late_bias) args.emplace_back("bias", bias);
  Value* y = node.Make("conv", std::move(args));
  return late_bias ? AddBias(node, y, bias) : y;
}

namespace {

void Conv(Node& node) { node.SetAlike(Convolve(node, node.In(0), node.In(1), node.Optional(2))); }

void ConvTranspose(Node& node) {
  std::vector<int64_t> kernel = KernelOf(node, node.In(0)->type, node.In(1)->type);
  size_t spatial = kernel.size();
  std::vector<int64_t> output_shape = node.Ints("output_shape", std::vector<int64_t>{});
  std::vector<int64_t> extra = node.Ints("output_padding", std::vector<int64_t>(spatial, 0));
  std::string auto_pad = node.String("auto_pad", "NOTSET");
  if (extra.size() != spatial)
    node.Fail("bad-attribute", "output_padding has {} values, expected one per spatial dimension",
              extra.size());
  int64_t groups = Groups(node);
  Value *x = node.In(0), *weight = node.In(1), *bias = node.Optional(2);

  // auto_pad SAME: the output has input * stride elements, which determines the pads.
  Window window;
  bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  window.kernel = node.Ints("kernel_shape", kernel);
  window.strides = node.Ints("strides", std::vector<int64_t>(spatial, 1));
  window.dilations = node.Ints("dilations", std::vector<int64_t>(spatial, 1));
  std::vector<int64_t> pads = node.Ints("pads", std::vector<int64_t>(2 * spatial, 0));
  if (window.kernel != kernel || window.strides.size() != spatial ||
      window.dilations.size() != spatial || pads.size() != 2 * spatial)
    node.Fail("bad-attribute",
              "kernel_shape, strides, dilations or pads do not match the rank of the weight");
  for (size_t i = 0; i < spatial; ++i)
    if (window.strides[i] < 1 || window.dilations[i] < 1 || extra[i] < 0)
      node.Fail("bad-attribute",
                "strides and dilations must be positive, output_padding must not be negative");
  window.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(spatial));
  window.after.assign(pads.begin() + static_cast<int64_t>(spatial), pads.end());
  if (same || !output_shape.empty()) {
    if (output_shape.size() == spatial + 2)
      output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
    const Shape& shape = x->type.shape;
    for (size_t i = 0; i < spatial; ++i) {
      int64_t reach = (kernel[i] - 1) * window.dilations[i] + 1;
      int64_t total = 0;
      if (output_shape.empty()) {
        total = extra[i] + reach - window.strides[i];
      } else {
        if (!shape[i + 2].is_constant())
          node.Fail("dynamic-shape", "output_shape requires an input of constant size");
        if (output_shape.size() != spatial)
          node.Fail("bad-attribute", "output_shape does not match the input");
        total =
            window.strides[i] * (shape[i + 2].constant() - 1) + extra[i] + reach - output_shape[i];
      }
      int64_t half = total >> 1;  // rounded down; the remaining element is added at the end
      window.before[i] = auto_pad == "SAME_UPPER" ? half : total - half;
      window.after[i] = total - window.before[i];
    }
  } else if (auto_pad == "VALID") {
    std::ranges::fill(window.before, 0);
    std::ranges::fill(window.after, 0);
  } else if (auto_pad != "NOTSET" && !auto_pad.empty()) {
    node.Unsupported("auto_pad", "unknown value \"{}\"", auto_pad);
  }

  // output_padding extends the result at its end, which means cropping less of the full result.
  // Elements beyond the full result consist of the bias only.
  std::vector<int64_t> beyond, late(2, 0);
  bool extends = false, crops = false;
  for (size_t i = 0; i < spatial; ++i) {
    window.after[i] -= extra[i];
    int64_t front = std::max<int64_t>(-window.before[i], 0),
            back = std::max<int64_t>(-window.after[i], 0);
    extends = extends || front || back;
    beyond.insert(beyond.end(), {front, back});
    // If cropping the front would leave nothing, the result is extended at its end first.
    Dim left = (x->type.shape[i + 2] - 1) * window.strides[i] +
               (kernel[i] - 1) * window.dilations[i] + 1 - window.before[i];
    bool empty = back > 0 && window.before[i] > 0 && left.Bounds(node.builder().symbols()).low < 1;
    late.push_back(empty ? std::exchange(window.before[i], 0) : 0);
    crops = crops || empty;
    window.before[i] = std::max<int64_t>(window.before[i], 0);
    window.after[i] = std::max<int64_t>(window.after[i], 0);
  }
  if (!weight->is_constant()) weight = Spread(node, weight, window.dilations);
  Builder::Args args = ConvolutionArgs(x, weight, window, groups);
  bool late_bias = bias && (extends || !bias->is_constant());
  if (bias && !late_bias) args.emplace_back("bias", bias);
  Value* y = node.Make("conv_transpose", std::move(args));
  if (extends)
    y = node.Make("pad",
                  {{"x", y}, {"pad", Ints(beyond)}, {"mode", "constant"}, {"constant_val", 0.0}});
  if (crops)
    y = SliceBetween(node, y, late, std::vector<int64_t>(late.size()),
                     std::vector<bool>(late.size(), true));
  node.Set(late_bias ? AddBias(node, y, bias) : y);
}

constexpr std::array kConvolutionRows = {
    NodeRow("Conv", Conv).Direct(),
    NodeRow("ConvTranspose", ConvTranspose).Direct(),
};

}  // namespace

std::span<const NodeRow> ConvolutionRows() { return kConvolutionRows; }

}  // namespace mlc::onnx
