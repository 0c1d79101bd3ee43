#include "lib/networks/inverted_residual_network.h"

#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/networks/heads.h"
#include "lib/networks/sized_layers.h"

namespace mlc::networks {

int64_t MakeDivisible(double width, int64_t divisor, int64_t least, double limit) {
  if (!(width >= 0 && width <= INT32_MAX) || divisor < 1 || divisor > INT32_MAX)
    throw Error("bad-file", "a width of {} is rounded to a multiple of {}", width, divisor)
        .Expected("numbers from 1 to {}", INT32_MAX);
  if (least == 0) least = divisor;
  const auto rounded =
      static_cast<int64_t>(width + static_cast<double>(divisor) / 2) / divisor * divisor;
  const int64_t result = std::max(least, rounded);
  return static_cast<double>(result) < limit * width ? result + divisor : result;
}

namespace {

// Follows timm/layers/attention2d.py, MultiQueryAttention2d.
Value* MultiQuery(PictureNetwork& net, const std::string& name, const InvertedBlock& block,
                  const InvertedResidualConfig& config, Value* x) {
  constexpr int64_t kDownKernel = 3;
  SizedLayers layers(net);
  Builder& b = net.b();
  Value* y = net.layers().BatchNorm(name + ".attention_norm", x, config.epsilon);
  auto small = [&](const std::string& part) {
    Value* z = y;
    if (block.key_stride > 1) {
      const PictureWindow window = {.kernel = kDownKernel,
                                    .stride = block.key_stride,
                                    .groups = Channels(y),
                                    .padding = block.padding};
      z = net.layers().Convolution(name + part + "_down", y, Channels(y), window);
      z = net.layers().BatchNorm(name + part + "_norm", z, config.epsilon);
    }
    return Expanded(b, net.Tokens(layers.Conv(name + part, z)), {1});
  };
  Value* q = Heads(b, net.Tokens(layers.Conv(name + ".query", y)), block.heads);
  Value *k = Repeated(b, small(".key"), block.heads),
        *v = Repeated(b, small(".value"), block.heads);
  y = net.Map(layers.Attended(q, k, v), Height(x), Width(x));
  return layers.Conv(name + ".output", y);
}

}  // namespace

Value* InvertedResidual(PictureNetwork& net, const std::string& name, const InvertedBlock& block,
                        const InvertedResidualConfig& config, Value* x) {
  Value* y = x;
  if (block.heads > 0) y = MultiQuery(net, name, block, config, x);
  PictureWindow moving = {.stride = block.stride, .dilation = block.dilation};
  if (block.start_kernel > 0) {
    PictureWindow window = {
        .kernel = block.start_kernel, .groups = Channels(y), .padding = block.padding};
    if (block.depthwise_kernel == 0) window.stride = block.stride, window.dilation = block.dilation;
    y = net.ConvNorm(name + ".start", y, Channels(y), window, Activation::kNone, config.epsilon);
  }
  if (block.expanded > 0) {
    PictureWindow window = {.kernel = block.expansion_kernel, .padding = block.padding};
    if (block.depthwise_kernel == 0 && block.start_kernel == 0)
      window.stride = block.stride, window.dilation = block.dilation;
    y = net.ConvNorm(name + ".expand", y, block.expanded, window, block.activation, config.epsilon);
  }
  if (block.depthwise_kernel > 0) {
    moving.kernel = block.depthwise_kernel;
    moving.groups = Channels(y);
    moving.padding = block.padding;
    y = net.ConvNorm(name + ".depthwise", y, Channels(y), moving, block.activation, config.epsilon);
  }
  if (block.squeeze)
    y = net.Squeezed(name + ".squeeze", y,
                     config.squeeze == Activation::kNone ? block.activation : config.squeeze,
                     config.gate);
  if (block.out > 0)
    y = net.ConvNorm(name + ".project", y, block.out, {},
                     block.activated ? block.activation : Activation::kNone, config.epsilon);
  y = SizedLayers(net).Scaled(name + ".scale", y);
  return block.residual ? Binary(net.b(), "add", y, x) : y;
}

namespace {

// Classifies each position of the map from what is there, and from the mean of all positions.
void AddSegments(PictureNetwork& net, const InvertedResidualConfig& config, Value* x) {
  constexpr int64_t kWidth = 256;
  net.b().SetName("head");
  Value* mean = net.ConvNorm("segments.pool", net.Pooled(x, true), kWidth, {}, Activation::kRelu);
  mean = net.b().Make("tile", {{"x", mean}, {"reps", Ints({1, 1, Height(x), Width(x)})}});
  Value* map = net.ConvNorm("segments.map", x, kWidth, {}, Activation::kRelu);
  x = net.ConvNorm("segments.join", Concat(net.b(), {mean, map}, 1), kWidth, {}, Activation::kRelu);
  net.Output("logits", net.layers().Convolution("segments.classifier", x, config.labels, {}));
}

}  // namespace

Program BuildInvertedResidualNetwork(const InvertedResidualConfig& config,
                                     const NetworkWeights& weights, Diagnostics& diagnostics) {
  CheckPositive({{"width of the stem", config.stem}});
  PictureNetwork net(weights, config.picture, diagnostics);
  Builder& b = net.b();
  Value* x = net.ConvNorm("stem", net.pixels(), config.stem,
                          {.kernel = 3, .stride = 2, .padding = config.padding}, config.activation,
                          config.epsilon);
  for (size_t i = 0; i < config.blocks.size(); ++i)
    x = InvertedResidual(net, fmt::format("block.{}", i), config.blocks[i], config, x);
  if (config.segments) {
    AddSegments(net, config, x);
    return net.Finish();
  }
  if (config.head > 0 && !config.pooled_head)
    x = net.ConvNorm("head", x, config.head, {}, config.activation, config.epsilon);
  b.SetName("head");
  Value* pooled =
      config.pools_maximum ? Reduced(b, "reduce_max", x, {2, 3}, true) : net.Pooled(x, true);
  if (config.head > 0 && config.pooled_head) {
    pooled = net.layers().Convolution("head.conv", pooled, config.head, {});
    if (config.pooled_norm) pooled = net.layers().BatchNorm("head.norm", pooled, config.epsilon);
    pooled = Activate(b, config.activation, pooled);
  }
  pooled = WithShape(b, pooled, {1, -1});
  if (config.labels > 0) {
    net.Output("logits", net.layers().Linear("classifier", pooled, config.labels));
  } else {
    net.Output("last_hidden_state", x);
    net.Output("pooler_output", pooled);
  }
  return net.Finish();
}

}  // namespace mlc::networks
