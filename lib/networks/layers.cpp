#include "lib/networks/layers.h"

#include <algorithm>

#include "lib/ir/arithmetic.h"
#include "lib/networks/check_weights.h"
#include "lib/networks/norms.h"
#include "lib/support/error.h"

namespace mlc::networks {

Value* Layers::Optional(const std::string& name, Dims dims) {
  Tensor tensor = weights_.find(name);
  if (!tensor) return nullptr;
  if (!dims.empty() && dims[0] < 0 && tensor.rank() > 0) dims[0] = tensor.dims()[0];
  return Make(name, tensor, dims);
}

Value* Layers::Needed(const std::string& name, const Dims& dims) {
  if (Value* value = Optional(name, dims)) return value;
  return Make(name, {}, dims);
}

Dims Layers::Sizes(const std::string& name, size_t rank) {
  const Tensor tensor = weights_.find(name);
  Dims dims = tensor ? tensor.dims() : Dims();
  while (dims.size() >= 2 && dims.size() < rank) dims.push_back(1);
  if (dims.size() != rank || std::ranges::any_of(dims, [](int64_t size) { return size < 1; }))
    CheckedWeight(tensor, weights_.name(name), Dims(rank, -1));
  return dims;
}

Value* Layers::Flat(const std::string& name, int64_t size) {
  const Tensor tensor = weights_.find(name);
  if (!tensor || tensor.size() != size) return Needed(name, {size});
  return WithShape(b_, Needed(name, tensor.dims()), {size});
}

Value* Layers::Make(const std::string& name, const Tensor& tensor, const Dims& dims) {
  const std::string source = weights_.name(name);
  const Tensor checked = CheckedWeight(tensor, source, dims);
  Value*& made = made_[source];
  if (!made) made = b_.Const(checked, source);
  return made;
}

Value* Layers::Linear(const std::string& name, Value* x, int64_t out) {
  Value* weight = Needed(name + ".weight", {out, x->type.shape.back().constant()});
  Builder::Args args = {{"x", x}, {"weight", weight}};
  if (Value* bias = Optional(name + ".bias", {weight->type.shape[0].constant()}))
    args.emplace_back("bias", bias);
  return b_.Make("linear", std::move(args));
}

Value* Layers::LayerNorm(const std::string& name, Value* x, double epsilon) {
  const int64_t size = x->type.shape.back().constant();
  Value* scale = Needed(name + ".weight", {size});
  return networks::LayerNorm(b_, x, {-1}, scale, Optional(name + ".bias", {size}), epsilon);
}

Value* Layers::RmsNorm(const std::string& name, Value* x, double epsilon, bool scale_adds_one) {
  const int64_t size = x->type.shape.back().constant();
  Value* scale = Needed(name + ".weight", {size});
  if (scale_adds_one) scale = Binary(b_, "add", scale, 1.0);
  return networks::RmsNorm(b_, x, {-1}, scale, Optional(name + ".bias", {size}), epsilon).y;
}

std::vector<int64_t> PaddingOf(const Value* x, const PictureWindow& window) {
  const int64_t reach = window.dilation * (window.kernel - 1), half = reach / 2;
  switch (window.padding) {
    case PictureWindow::Padding::kHalf:
      return {half, half, half, half};
    case PictureWindow::Padding::kNone:
      return {0, 0, 0, 0};
    case PictureWindow::Padding::kKeras: {
      const int64_t before = window.stride == 1 ? half : half - 1;
      return {before, half, before, half};
    }
    case PictureWindow::Padding::kSame: {
      std::vector<int64_t> padding;
      for (int axis : {2, 3}) {
        const int64_t size = x->type.shape[static_cast<size_t>(axis)].constant(),
                      windows = (size + window.stride - 1) / window.stride,
                      missing =
                          std::max<int64_t>((windows - 1) * window.stride + reach + 1 - size, 0);
        padding.push_back(missing / 2);
        padding.push_back(missing - missing / 2);
      }
      return padding;
    }
  }
  return {};
}

Value* Layers::Convolution(const std::string& name, Value* x, int64_t out,
                           const PictureWindow& window) {
  const int64_t channels = x->type.shape[1].constant();
  if (window.groups < 1 || channels % window.groups != 0 || (out > 0 && out % window.groups != 0))
    throw Error("bad-file", "\"{}\" convolves {} channels to {} in {} groups",
                weights_.name(name + ".weight"), channels, out, window.groups)
        .Expected("groups of equal size");
  Value* weight =
      Needed(name + ".weight", {out, channels / window.groups, window.kernel, window.kernel});
  Builder::Args args = {{"x", x},
                        {"weight", weight},
                        {"strides", Ints({window.stride, window.stride})},
                        {"pad_type", "custom"},
                        {"pad", Ints(PaddingOf(x, window))},
                        {"dilations", Ints({window.dilation, window.dilation})},
                        {"groups", window.groups}};
  if (Value* bias = Optional(name + ".bias", {weight->type.shape[0].constant()}))
    args.emplace_back("bias", bias);
  return b_.Make("conv", std::move(args));
}

Value* Layers::BatchNorm(const std::string& name, Value* x, double epsilon) {
  const Dims channels = {x->type.shape[1].constant()};
  return b_.Make("batch_norm", {{"x", x},
                                {"mean", Needed(name + ".running_mean", channels)},
                                {"variance", Needed(name + ".running_var", channels)},
                                {"gamma", Needed(name + ".weight", channels)},
                                {"beta", Needed(name + ".bias", channels)},
                                {"epsilon", epsilon}});
}

Value* Layers::ChannelNorm(const std::string& name, Value* x, double epsilon) {
  return Transposed(b_, LayerNorm(name, Transposed(b_, x, {0, 2, 3, 1}), epsilon), {0, 3, 1, 2});
}

}  // namespace mlc::networks
