#include "lib/networks/repvgg.h"

#include "lib/networks/branches.h"
#include "lib/networks/sized_layers.h"

namespace mlc::networks {

namespace {

Value* Block(SizedLayers& layers, const std::string& name, Value* x, int64_t stride) {
  const std::string stored = layers.Has(name + ".fused") ? ".fused" : ".branch.0.conv";
  const Dims sizes = layers.layers().Sizes(name + stored + ".weight", 4);
  x = SumOfBranches(layers.b(), layers.layers(), name, x, sizes[0],
                    {.kernel = sizes[2],
                     .stride = stride,
                     .groups = Channels(x) / std::max<int64_t>(sizes[1], 1)},
                    1e-5);
  if (layers.Has(name + ".squeeze.fc1")) x = layers.Squeezed(name + ".squeeze", x);
  return Activate(layers.b(), Activation::kRelu, x);
}

}  // namespace

Program BuildRepVgg(const RepVggConfig& config, const NetworkWeights& weights,
                    Diagnostics& diagnostics) {
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  auto has = [&](const std::string& name) {
    return layers.Has(name + ".fused") || layers.Has(name + ".branch.0.conv");
  };
  Value* x = Block(layers, "stem", net.pixels(), 2);
  int64_t stages = 0;
  for (; has(fmt::format("stage.{}.0", stages)) || stages == 0; ++stages)
    for (int64_t i = 0; i == 0 || has(fmt::format("stage.{}.{}", stages, i)); ++i)
      x = Block(layers, fmt::format("stage.{}.{}", stages, i), x, i == 0 ? 2 : 1);
  layers.ClassifyMean("classifier", x, config.labels);
  return net.Finish();
}

}  // namespace mlc::networks
