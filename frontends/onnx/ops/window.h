// frontends/onnx/ops/window.h - kernel, strides, dilations and pads of convolutions and pools in
// ONNX terms, and convolution for operators that contain one.
#pragma once

#include <vector>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// The attributes of a sliding window, with one entry per spatial dimension.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, before,
      after;                                    // `before` and `after` are the pads
  bool same_upper = false, same_lower = false;  // auto_pad for an input of unknown size
  bool has_pads() const;
  bool dilated() const;
};

// Reads kernel_shape (or takes `kernel`), strides, dilations, pads and auto_pad. auto_pad is
// resolved to pads where the spatial sizes of `input` are known. Throws "bad-attribute" for wrong
// lengths, zero strides or excessive values.
Window ReadWindow(Node& node, const Shape& input, std::vector<int64_t> kernel = {});
// Returns the arguments pad_type and pad of a MIL operator.
Builder::Args PadArgs(const Window& window);

// Convolves x [N, C, ...] with weight [M, C / group, ...] and adds bias [M] (or null). Reads the
// node's attributes auto_pad, dilations, group, kernel_shape, pads and strides.
Value* Convolve(Node& node, Value* x, Value* weight, Value* bias);

}  // namespace mlc::onnx
