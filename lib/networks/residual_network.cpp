#include "lib/networks/residual_network.h"

#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {

using Stem = ResidualConfig::Stem;
using Squeeze = ResidualConfig::Squeeze;

class Residual {
 public:
  Residual(PictureNetwork& net, const ResidualConfig& config, const std::string& prefix)
      : net_(net), config_(config), prefix_(prefix) {}

  std::vector<Value*> Stages() {
    std::vector<Value*> maps;
    Value* x = StemOf(net_.pixels());
    for (size_t stage = 0; stage < config_.depths.size(); ++stage) {
      for (int64_t i = 0; i < config_.depths[stage]; ++i) {
        const bool strided = i == 0 && (stage > 0 || config_.downsample_in_first_stage);
        const bool shortcut = i == 0 && stage == 0 && config_.shortcut_in_first_stage;
        x = Block(fmt::format("{}stage.{}.block.{}.", prefix_, stage, i), x, stage, strided ? 2 : 1,
                  shortcut);
      }
      maps.push_back(x);
    }
    return maps;
  }

 private:
  Value* StemOf(Value* x) {
    const int64_t kernel = config_.stem == Stem::kSeven ? 7 : 3;
    for (size_t i = 0; i < config_.stem_widths.size(); ++i)
      x = net_.ConvNorm(fmt::format("{}stem.{}", prefix_, i), x, config_.stem_widths[i],
                        {.kernel = kernel, .stride = i == 0 ? 2 : 1}, config_.activation);
    if (config_.stem == Stem::kThree) return x;
    if (config_.stem_convolves)
      return net_.ConvNorm(prefix_ + "stem.pool", x, Channels(x), {.kernel = 3, .stride = 2},
                           config_.activation);
    return net_.b().Make("max_pool", {{"x", x},
                                      {"kernel_sizes", Ints({3, 3})},
                                      {"strides", Ints({2, 2})},
                                      {"pad_type", "custom"},
                                      {"pad", Ints({1, 1, 1, 1})}});
  }

  Value* Shortcut(const std::string& name, Value* x, int64_t out, int64_t stride) {
    if (config_.average_shortcut && stride > 1) {
      // A last odd row or column is averaged alone.
      x = net_.b().Make("avg_pool", {{"x", x},
                                     {"kernel_sizes", Ints({stride, stride})},
                                     {"strides", Ints({stride, stride})},
                                     {"pad_type", "custom"},
                                     {"pad", Ints({0, Height(x) % stride, 0, Width(x) % stride})},
                                     {"exclude_padding_from_average", true}});
      stride = 1;
    }
    return net_.ConvNorm(name + "shortcut", x, out, {.stride = stride}, Activation::kNone);
  }

  // Scales channels by the means of their neighbours.
  Value* ScaledAlong(const std::string& name, Value* x) {
    Builder& b = net_.b();
    const int64_t channels = Channels(x);
    // timm/layers/eca.py derives the size of the convolution from the number of channels.
    const auto half = static_cast<int64_t>(std::log2(static_cast<double>(channels)) + 1) / 2;
    const int64_t size = std::max<int64_t>(half % 2 == 1 ? half : half + 1, 3);
    Value* mean = WithShape(b, net_.Pooled(x, false), {1, 1, channels});
    mean = b.Make("conv", {{"x", mean},
                           {"weight", net_.layers().Needed(name + ".weight", {1, 1, size})},
                           {"pad_type", "custom"},
                           {"pad", Ints({size / 2, size / 2})}});
    mean = WithShape(b, Activate(b, Activation::kSigmoid, mean), {1, channels, 1, 1});
    return Binary(b, "mul", x, mean);
  }

  Value* Block(const std::string& name, Value* x, size_t stage, int64_t stride,
               bool needs_shortcut) {
    const int64_t out = config_.widths[stage], inner = config_.inner_widths[stage],
                  groups = config_.groups[stage];
    Value* y = x;
    int next = 0;
    auto unit = [&](int64_t width, PictureWindow window, bool last) {
      y = net_.ConvNorm(
          fmt::format("{}unit.{}", name, next++), y, width, window,
          last ? Activation::kNone : config_.inner_activation.value_or(config_.activation));
    };
    if (config_.block == ResidualConfig::Block::kBasic) {
      unit(inner, {.kernel = 3, .stride = stride}, false);
      unit(out, {.kernel = 3}, true);
    } else {
      const bool first = config_.stride_in_first_unit;
      unit(inner, {.stride = first ? stride : 1}, false);
      unit(inner, {.kernel = 3, .stride = first ? 1 : stride, .groups = groups}, false);
      if (config_.squeeze == Squeeze::kInside)
        y = net_.Squeezed(name + "squeeze", y, Activation::kRelu);
      unit(out, {}, true);
    }
    if (config_.squeeze == Squeeze::kEnd) y = net_.Squeezed(name + "squeeze", y, Activation::kRelu);
    if (config_.squeeze == Squeeze::kAlong) y = ScaledAlong(name + "squeeze.along", y);
    if (needs_shortcut || stride > 1 || Channels(x) != out) x = Shortcut(name, x, out, stride);
    return Activate(net_.b(), config_.activation, Binary(net_.b(), "add", y, x));
  }

  PictureNetwork& net_;
  const ResidualConfig& config_;
  const std::string prefix_;
};

void CheckNumbers(const ResidualConfig& config) {
  CheckPositive("stages' depths", config.depths);
  CheckPositive("stages' widths", config.widths);
  CheckPositive("blocks' inner widths", config.inner_widths);
  CheckPositive("blocks' groups", config.groups);
  CheckPositive("the stem's widths", config.stem_widths);
  for (const auto* list : {&config.widths, &config.inner_widths, &config.groups})
    if (list->size() != config.depths.size())
      throw Error("bad-file", "{} stages have depths, but {} have widths", config.depths.size(),
                  list->size())
          .Expected("lists of equal length");
}

}  // namespace

std::vector<Value*> ResidualStages(PictureNetwork& net, const ResidualConfig& config,
                                   const std::string& prefix) {
  CheckNumbers(config);
  return Residual(net, config, prefix).Stages();
}

Program BuildResidualNetwork(const ResidualConfig& config, const NetworkWeights& weights,
                             Diagnostics& diagnostics) {
  CheckNumbers(config);
  PictureNetwork net(weights, config.picture, diagnostics);
  Value* x = ResidualStages(net, config).back();
  net.b().SetName("head");
  if (config.labels > 0) {
    net.Output("logits", net.layers().Linear("classifier", net.Pooled(x, false), config.labels));
  } else {
    net.Output("last_hidden_state", x);
    net.Output("pooler_output", net.Pooled(x, true));
  }
  return net.Finish();
}

}  // namespace mlc::networks
