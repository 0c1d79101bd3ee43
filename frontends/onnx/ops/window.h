// frontends/onnx/ops/window.h - kernels, strides, dilations and pads of convolutions and pools, as ONNX
// gives them.
#pragma once

#include <string>
#include <vector>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// One entry per spatial dimension.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, before, after;  // pads before and after
  bool same_upper = false, same_lower = false;  // auto_pad of an input whose size is not known
  bool has_pads() const;
  bool dilated() const;
};

// Reads kernel_shape (or takes `kernel`), strides, dilations, pads and auto_pad. auto_pad becomes
// pads where the spatial sizes of `input` are known. Error "bad-attribute" on wrong lengths, zero
// strides or huge values.
Window ReadWindow(Node& node, const Shape& input, std::vector<int64_t> kernel = {});
// The arguments pad_type and pad of a MIL operator.
Builder::Args PadArgs(const Window& window);

}  // namespace mlc::onnx
