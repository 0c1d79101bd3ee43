#include "frontends/onnx/ops/window.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace mlc::onnx {

namespace {
// Larger kernels, strides and pads occur only in damaged files.
constexpr int64_t kSane = 1 << 20;

void Check(Node& node, std::string_view attribute, const std::vector<int64_t>& values, size_t count,
           int64_t low) {
  if (values.size() != count)
    node.Fail("bad-attribute", "{} has {} values, expected {}", attribute, values.size(), count);
  for (int64_t value : values)
    if (value < low || value > kSane)
      node.Fail("bad-attribute", "{} contains an invalid value {}", attribute, value);
}
}  // namespace

bool Window::has_pads() const {
  return std::ranges::any_of(before, [](int64_t p) { return p != 0; }) ||
         std::ranges::any_of(after, [](int64_t p) { return p != 0; });
}

bool Window::dilated() const {
  return std::ranges::any_of(dilations, [](int64_t d) { return d != 1; });
}

Window ReadWindow(Node& node, const Shape& input, std::vector<int64_t> kernel) {
  if (input.size() < 3)
    node.Fail("bad-operand", "input has {} dimensions, expected at least 3", input.size());
  size_t spatial = input.size() - 2;
  Window window;
  window.kernel = kernel.empty() ? node.Ints("kernel_shape") : node.Ints("kernel_shape", kernel);
  Check(node, "kernel_shape", window.kernel, spatial, 1);
  if (!kernel.empty() && window.kernel != kernel)
    node.Fail("bad-attribute", "kernel_shape is [{}], but the weight has [{}]",
              fmt::join(window.kernel, ", "), fmt::join(kernel, ", "));
  window.strides = node.Ints("strides", std::vector<int64_t>(spatial, 1));
  Check(node, "strides", window.strides, spatial, 1);
  window.dilations = node.Ints("dilations", std::vector<int64_t>(spatial, 1));
  Check(node, "dilations", window.dilations, spatial, 1);
  std::vector<int64_t> pads = node.Ints("pads", std::vector<int64_t>(2 * spatial, 0));
  Check(node, "pads", pads, 2 * spatial, -kSane);
  window.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(spatial));
  window.after.assign(pads.begin() + static_cast<int64_t>(spatial), pads.end());

  std::string auto_pad = node.String("auto_pad", "NOTSET");
  if (auto_pad == "NOTSET" || auto_pad.empty()) return window;
  std::ranges::fill(window.before, 0);
  std::ranges::fill(window.after, 0);
  if (auto_pad == "VALID") return window;
  if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER")
    node.Unsupported("auto_pad", "unknown value \"{}\"", auto_pad);
  bool upper = auto_pad == "SAME_UPPER";
  bool steps = std::ranges::any_of(window.strides, [](int64_t s) { return s != 1; });
  if (steps && !IsStatic(Shape(input.begin() + 2, input.end()))) {
    (upper ? window.same_upper : window.same_lower) = true;
    return window;
  }
  for (size_t i = 0; i < spatial; ++i) {
    int64_t stride = window.strides[i];
    int64_t size = steps ? input[i + 2].constant() : 1;  // with stride 1 the size does not matter
    int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    int64_t total =
        std::max<int64_t>(((size + stride - 1) / stride - 1) * stride + reach - size, 0);
    window.before[i] = upper ? total / 2 : total - total / 2;
    window.after[i] = total - window.before[i];
  }
  return window;
}

Builder::Args PadArgs(const Window& window) {
  if (window.same_upper) return {{"pad_type", "same"}};
  if (window.same_lower) return {{"pad_type", "same_lower"}};
  if (!window.has_pads()) return {{"pad_type", "valid"}};
  std::vector<int64_t> pad;
  for (size_t i = 0; i < window.before.size(); ++i) {
    pad.push_back(window.before[i]);
    pad.push_back(window.after[i]);
  }
  return {{"pad_type", "custom"}, {"pad", Ints(pad)}};
}

}  // namespace mlc::onnx
