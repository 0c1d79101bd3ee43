#include "lib/networks/vgg.h"

#include <algorithm>

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {

constexpr int64_t kPlaces = 7;  // of the head, in each direction

// Returns averages of torch's adaptive pooling [out, in]: element i is the mean of the elements from
// floor(i in / out) to ceil((i + 1) in / out).
Tensor Averages(int64_t in, int64_t out) {
  std::vector<float> rows(static_cast<size_t>(in * out));
  for (int64_t i = 0; i < out; ++i) {
    const int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
    for (int64_t j = begin; j < end; ++j)
      rows[static_cast<size_t>(i * in + j)] = 1 / static_cast<float>(end - begin);
  }
  return Tensor::Of<float>({out, in}, rows);
}

Value* Enlarged(Builder& b, Value* x) {
  const int64_t height = std::max(Height(x), kPlaces),
                width = std::max(networks::Width(x), kPlaces);
  if (Height(x) < height)
    x = b.Make("matmul", {{"x", b.Const(Averages(Height(x), height))}, {"y", x}});
  if (networks::Width(x) < width)
    x = b.Make(
        "matmul",
        {{"x", x}, {"y", b.Const(Averages(networks::Width(x), width))}, {"transpose_y", true}});
  return x;
}

}  // namespace

Program BuildVgg(const VggConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics) {
  CheckPositive("stages' depths", config.depths);
  CheckPositive("stages' widths", config.widths);
  CheckPositive({{"width of the head", config.inner}, {"width of features", config.hidden}});
  PictureNetwork net(weights, config.picture, diagnostics);
  Builder& b = net.b();
  Value* x = net.pixels();
  int64_t next = 0;
  for (size_t stage = 0; stage < config.depths.size(); ++stage) {
    for (int64_t i = 0; i < config.depths[stage]; ++i, ++next) {
      const std::string number = std::to_string(next);
      b.SetName("conv." + number);
      x = net.layers().Convolution("conv." + number, x, config.widths.at(stage), {.kernel = 3});
      if (config.normed) x = net.layers().BatchNorm("norm." + number, x, 1e-5);
      x = Activate(b, config.activation, x);
    }
    if (std::min(Height(x), Width(x)) < 2)
      throw Error("bad-file", "pictures of {} x {} pixels are too small for the network",
                  config.picture.size.height, config.picture.size.width)
          .Expected("at least {0} x {0} pixels", int64_t{1} << config.depths.size());
    x = b.Make("max_pool", {{"x", x},
                            {"kernel_sizes", Ints({2, 2})},
                            {"strides", Ints({2, 2})},
                            {"pad_type", "valid"}});
  }
  b.SetName("head");
  Value* y = Enlarged(b, x);
  y = net.layers().Convolution("head.0", y, config.inner,
                               {.kernel = kPlaces, .padding = PictureWindow::Padding::kNone});
  y = Activate(b, config.activation, y);
  y = Activate(b, config.activation, net.layers().Convolution("head.1", y, config.hidden, {}));
  y = net.Pooled(y, false);
  if (config.labels > 0) {
    net.Output("logits", net.layers().Linear("classifier", y, config.labels));
  } else {
    net.Output("last_hidden_state", x);
    net.Output("pooler_output", y);
  }
  return net.Finish();
}

}  // namespace mlc::networks
