#include "lib/networks/densenet.h"

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {

Value* NormConv(PictureNetwork& net, const DenseNetConfig& config, const std::string& name,
                Value* x, int64_t out, int64_t kernel) {
  net.b().SetName(name);
  x = Activate(net.b(), config.activation, net.layers().BatchNorm(name + ".norm", x, 1e-5));
  return net.layers().Convolution(name + ".conv", x, out, {.kernel = kernel});
}

}  // namespace

Program BuildDenseNet(const DenseNetConfig& config, const NetworkWeights& weights,
                      Diagnostics& diagnostics) {
  CheckPositive("blocks' depths", config.depths);
  CheckPositive(
      {{"growth of a layer", config.growth}, {"size of a bottleneck", config.bottleneck}});
  constexpr int64_t kMost = 1 << 14;
  if (config.growth > kMost || config.bottleneck > kMost)
    throw Error("resource-limit", "layers add {} channels, and bottlenecks are {} times as wide",
                config.growth, config.bottleneck)
        .Expected("at most {}", kMost);
  PictureNetwork net(weights, config.picture, diagnostics);
  Builder& b = net.b();
  auto pooled = [&](const char* op, Value* x, int64_t kernel, int64_t pad) {
    return b.Make(op, {{"x", x},
                       {"kernel_sizes", Ints({kernel, kernel})},
                       {"strides", Ints({2, 2})},
                       {"pad_type", "custom"},
                       {"pad", Ints({pad, pad, pad, pad})}});
  };
  const int64_t first = 2 * config.growth;
  Value* x = net.pixels();
  if (config.deep) {
    x = net.ConvNorm("stem.0", x, config.growth, {.kernel = 3, .stride = 2}, config.activation);
    x = net.ConvNorm("stem.1", x, config.growth, {.kernel = 3}, config.activation);
    x = net.ConvNorm("stem.2", x, first, {.kernel = 3}, config.activation);
  } else {
    x = net.ConvNorm("stem.0", x, first, {.kernel = 7, .stride = 2}, config.activation);
  }
  x = pooled("max_pool", x, 3, 1);
  for (size_t block = 0; block < config.depths.size(); ++block) {
    for (int64_t layer = 0; layer < config.depths[block]; ++layer) {
      const std::string name = fmt::format("block.{}.layer.{}.", block, layer);
      Value* y = NormConv(net, config, name + "0", x, config.bottleneck * config.growth, 1);
      x = Concat(b, {x, NormConv(net, config, name + "1", y, config.growth, 3)}, 1);
    }
    if (block + 1 == config.depths.size()) break;
    x = NormConv(net, config, fmt::format("transition.{}", block), x, Channels(x) / 2, 1);
    if (Height(x) < 2 || Width(x) < 2)
      throw Error("bad-file", "pictures of {} x {} pixels are too small for {} blocks",
                  config.picture.size.height, config.picture.size.width, config.depths.size());
    x = pooled("avg_pool", x, 2, 0);
  }
  b.SetName("head");
  x = Activate(b, config.activation, net.layers().BatchNorm("norm", x, 1e-5));
  Value* mean = net.Pooled(x, false);
  if (config.labels > 0) {
    net.Output("logits", net.layers().Linear("classifier", mean, config.labels));
  } else {
    net.Output("last_hidden_state", x);
    net.Output("pooler_output", mean);
  }
  return net.Finish();
}

}  // namespace mlc::networks
