#include "lib/ops/sliding_window.h"

#include <algorithm>

namespace mlc {

namespace {
// Larger values do not occur in practice, and smaller ones cannot overflow.
constexpr int64_t kMaxSize = int64_t{1} << 24;

void CheckRange(const OpContext& context, std::string_view name, const std::vector<int64_t>& values,
                size_t count, int64_t low) {
  if (values.size() != count)
    context.Fail("{} has {} elements, expected {}", name, values.size(), count);
  for (int64_t value : values)
    if (value < low || value > kMaxSize)
      context.Fail("{} contains {}, expected {} to {}", name, value, low, kMaxSize);
}

Dim Min(const Dim& a, const Dim& b) { return 0 - Max(0 - a, 0 - b); }
}  // namespace

Window ReadWindow(const OpContext& context) {
  bool pool = context.def().Find("weight") < 0;
  int rank = context.rank("x");
  if (rank < 3 || rank > 5) context.Fail("x has {} dimensions, expected 3 to 5", rank);
  size_t spatial = rank - 2;
  Window window;
  if (pool) {
    std::vector<int64_t> kernel = context.Ints("kernel_sizes");
    CheckRange(context, "kernel_sizes", kernel, spatial, 1);
    window.kernel.assign(kernel.begin(), kernel.end());
    window.dilations.assign(spatial, 1);
    window.ceil_mode = context.Bool("ceil_mode");
  } else {
    const Shape& weight = context.shape("weight");
    if (weight.size() != spatial + 2)
      context.Fail("weight has {} dimensions, expected {} like x", weight.size(), rank);
    window.kernel.assign(weight.begin() + 2, weight.end());
    for (const Dim& size : window.kernel)
      if (size.is_constant() && size.constant() < 1)
        context.Fail("weight has a kernel size below 1");
    window.dilations = context.Ints("dilations");
    CheckRange(context, "dilations", window.dilations, spatial, 1);
  }
  window.strides = context.Ints("strides");
  CheckRange(context, "strides", window.strides, spatial, 1);
  window.pad_type = context.String("pad_type");
  if (window.pad_type != "valid" && window.pad_type != "custom" && window.pad_type != "same" &&
      window.pad_type != "same_lower")
    context.Fail("pad_type is \"{}\", expected valid, custom, same or same_lower", window.pad_type);
  // Apple's files state `pad` for every pad_type; it only matters for custom.
  if (window.pad_type == "custom") {
    window.pad = context.Ints("pad");
    CheckRange(context, "pad", window.pad, 2 * spatial, 0);
  } else {
    window.pad.assign(2 * spatial, 0);
  }
  if (window.ceil_mode) {
    if (spatial > 2) context.Fail("ceil_mode requires one or two spatial dimensions");
    if (window.pad_type == "same" || window.pad_type == "same_lower")
      context.Fail("ceil_mode cannot be combined with pad_type same");
    for (size_t i = 0; i < spatial; ++i)
      if (window.pad[2 * i] != window.pad[2 * i + 1])
        context.Fail("ceil_mode requires symmetric padding");
  }
  return window;
}

Dim Window::Out(int i, const Dim& in) const {
  if (pad_type == "same" || pad_type == "same_lower") return CeilDiv(in, strides[i]);
  int64_t before = pad[2 * i], total = before + pad[2 * i + 1];
  Dim room = in + total - Extent(i);
  if (!ceil_mode) return FloorDiv(room, strides[i]) + 1;
  Dim last = CeilDiv(room, strides[i]);
  // The last window starts inside the input or its leading padding (coremltools'
  // spatial_dimensions_out_shape).
  if (total > 0) last = Min(last, CeilDiv(in + before, strides[i]) - 1);
  return last + 1;
}

int64_t Window::Before(int i, int64_t in) const {
  if (pad_type == "custom") return pad[2 * i];
  if (pad_type == "valid") return 0;
  int64_t stride = strides[i];
  int64_t total =
      std::max<int64_t>(0, ((in + stride - 1) / stride - 1) * stride + Extent(i).constant() - in);
  return pad_type == "same" ? total / 2 : total - total / 2;
}

int64_t Window::PaddedTaps(int i, int64_t in, int64_t start) const {
  if (i < 0) return 1;
  int64_t size = kernel[i].constant();
  if (pad_type == "same" || pad_type == "same_lower") return size;
  return std::min(size, in + pad[2 * i + 1] - start);
}

Tensor WindowDefault(const OpContext& context, std::string_view param) {
  int spatial = std::max(0, context.rank("x") - 2);
  if (param == "pad") return Tensor::Vector(std::vector<int32_t>(2 * spatial, 0));
  return Tensor::Vector(std::vector<int32_t>(spatial, 1));
}

Geometry::Geometry(const Window& window, const Dims& in_dims, const Dims& out_dims) {
  int spatial = window.spatial();
  for (int i = 0; i < spatial; ++i) {
    int to = 3 - spatial + i;
    in[to] = in_dims[i + 2];
    out[to] = out_dims[i + 2];
    kernel[to] = window.kernel[i].constant();
    stride[to] = window.strides[i];
    dilation[to] = window.dilations[i];
    before[to] = window.Before(i, in_dims[i + 2]);
  }
}

std::array<int64_t, 2> Geometry::Taps(int i, int64_t o) const {
  int64_t first = In(i, o, 0), d = dilation[i];
  int64_t begin = first >= 0 ? 0 : (-first + d - 1) / d;
  int64_t end = first >= in[i] ? 0 : (in[i] - 1 - first) / d + 1;
  end = std::min(end, kernel[i]);
  return {std::min(begin, end), end};
}

std::vector<int64_t> TransposedCrop(const Window& window, const Dims& in_dims,
                                    const Dims& out_dims) {
  std::vector<int64_t> crop(window.spatial(), 0);
  for (int i = 0; i < window.spatial(); ++i) {
    if (window.pad_type == "custom") crop[i] = window.pad[2 * i];
    if (window.pad_type == "same") {
      int64_t full = (in_dims[i + 2] - 1) * window.strides[i] + window.Extent(i).constant();
      crop[i] = std::max<int64_t>(0, full - out_dims[i + 2]) / 2;
    }
  }
  return crop;
}

}  // namespace mlc
