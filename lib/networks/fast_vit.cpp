#include "lib/networks/fast_vit.h"

#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ir/concat_slice.h"
#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/support/error.h"

namespace mlc::networks {

namespace {

constexpr double kEpsilon = 1e-5;
constexpr int64_t kHeadDim = 32;

class FastVitTower {
 public:
  FastVitTower(Builder& b, Layers& layers, const FastVitConfig& config)
      : b_(b), layers_(layers), config_(config) {}

  Value* Run(Value* x) {
    b_.SetName("stem");
    const int64_t width = config_.stages.front().width;
    x = Branches("stem.0", x, {width, 3, 2, 1});
    x = Branches("stem.1", x, {width, 3, 2, width});
    x = Branches("stem.2", x, {width, 1, 1, 1});
    for (size_t stage = 0; stage < config_.stages.size(); ++stage) x = Stage(stage, x);
    b_.SetName("final_conv");
    return Branches("final_conv", x, {config_.channels(), 3, 1, Channels(x), true});
  }

 private:
  struct Shape {
    int64_t out, kernel, stride, groups;
    bool squeezes = false, activates = true;
  };
  // A convolution whose weight is a constant [out, in / groups, kernel, kernel].
  struct Kernel {
    Value *weight = nullptr, *bias = nullptr;
  };

  static int64_t Channels(const Value* x) { return x->type.shape[1].constant(); }

  Value* Convolved(Value* x, const Kernel& kernel, int64_t size, int64_t stride, int64_t groups) {
    const int64_t pad = size / 2;
    return b_.Make("conv", {{"x", x},
                            {"weight", kernel.weight},
                            {"bias", kernel.bias},
                            {"strides", Ints({stride, stride})},
                            {"pad_type", "custom"},
                            {"pad", Ints({pad, pad, pad, pad})},
                            {"groups", groups}});
  }

  // The scale of each channel by a batch norm, [out], and what it adds.
  Kernel Norm(const std::string& name, int64_t out) {
    Value* variance = layers_.Needed(name + ".running_var", {out});
    Value* deviation = b_.Make("sqrt", {{"x", Binary(b_, "add", variance, kEpsilon)}});
    Value* scale = Binary(b_, "real_div", layers_.Needed(name + ".weight", {out}), deviation);
    Value* mean = Binary(b_, "mul", layers_.Needed(name + ".running_mean", {out}), scale);
    return {scale, Binary(b_, "sub", layers_.Needed(name + ".bias", {out}), mean)};
  }
  Value* ByChannel(Value* scale, int64_t out) { return WithShape(b_, scale, {out, 1, 1, 1}); }

  // A convolution and the batch norm behind it; a smaller kernel lies in the middle of one of `size`.
  Kernel ConvAndNorm(const std::string& name, int64_t out, int64_t in, int64_t kernel,
                     int64_t size) {
    Value* weight = layers_.Needed(name + ".conv.weight", {out, in, kernel, kernel});
    const Kernel norm = Norm(name + ".bn", out);
    weight = Binary(b_, "mul", weight, ByChannel(norm.weight, out));
    if (const int64_t pad = (size - kernel) / 2; pad > 0)
      weight = b_.Make("pad", {{"x", weight},
                               {"pad", Ints({0, 0, 0, 0, pad, pad, pad, pad})},
                               {"mode", "constant"},
                               {"constant_val", 0.0}});
    return {weight, norm.bias};
  }
  Kernel Sum(const Kernel& a, const Kernel& b) {
    if (!a.weight) return b;
    return {Binary(b_, "add", a.weight, b.weight), Binary(b_, "add", a.bias, b.bias)};
  }

  // The kernel that leaves each channel as it is.
  Value* Identity(int64_t channels, int64_t in, int64_t size) {
    std::vector<float> one(static_cast<size_t>(channels * in * size * size), 0);
    for (int64_t c = 0; c < channels; ++c)
      one[static_cast<size_t>(((c * in + c % in) * size + size / 2) * size + size / 2)] = 1;
    return b_.Const(Tensor::Of<float>({channels, in, size, size}, one), "identity");
  }

  // The branches of timm's MobileOneBlock: convolutions of the whole kernel, one of 1 x 1, and none.
  Kernel BranchKernel(const std::string& name, int64_t channels, const Shape& shape) {
    const int64_t in = channels / shape.groups, out = shape.out, size = shape.kernel;
    if (layers_.Has(name + ".reparam_conv.weight"))
      return {layers_.Needed(name + ".reparam_conv.weight", {out, in, size, size}),
              layers_.Needed(name + ".reparam_conv.bias", {out})};
    Kernel sum;
    for (int branch = 0; layers_.Has(fmt::format("{}.conv_kxk.{}.conv.weight", name, branch));
         ++branch)
      sum = Sum(sum, ConvAndNorm(fmt::format("{}.conv_kxk.{}", name, branch), out, in, size, size));
    if (layers_.Has(name + ".conv_scale.conv.weight"))
      sum = Sum(sum, ConvAndNorm(name + ".conv_scale", out, in, 1, size));
    if (layers_.Has(name + ".identity.running_mean")) {
      const Kernel norm = Norm(name + ".identity", out);
      sum = Sum(sum, {Binary(b_, "mul", Identity(out, in, size), ByChannel(norm.weight, out)),
                      norm.bias});
    }
    // Reports the missing tensor.
    if (!sum.weight) layers_.Needed(name + ".reparam_conv.weight", {out, in, size, size});
    return sum;
  }
  Value* Branches(const std::string& name, Value* x, const Shape& shape) {
    x = Convolved(x, BranchKernel(name, Channels(x), shape), shape.kernel, shape.stride,
                  shape.groups);
    if (shape.squeezes) x = Squeezed(name + ".se", x);
    return shape.activates ? Activate(b_, config_.activation, x) : x;
  }

  Value* Squeezed(const std::string& name, Value* x) {
    Value* mean = Reduced(b_, "reduce_mean", x, {2, 3}, true);
    mean = Activate(b_, Activation::kRelu, layers_.Convolution(name + ".fc1", mean, -1, {}));
    mean = layers_.Convolution(name + ".fc2", mean, Channels(x), {});
    return Binary(b_, "mul", x, Activate(b_, Activation::kSigmoid, mean));
  }

  Value* Stage(size_t number, Value* x) {
    const FastVitConfig::Stage& stage = config_.stages[number];
    const std::string own = fmt::format("stages.{}.", number);
    b_.SetName(fmt::format("stage_{}", number));
    if (stage.halves) x = Halved(own + "downsample.proj.", x, stage);
    if (stage.positions) x = WithPositions(own + "pos_emb", x);
    for (int64_t block = 0; block < stage.depth; ++block) {
      const std::string name = fmt::format("{}blocks.{}.", own, block);
      b_.SetName(fmt::format("stage_{}_block_{}", number, block));
      const std::string scale = stage.attention ? "layer_scale_2" : "layer_scale";
      x = stage.attention ? Attended(name, x) : Mixed(name + "token_mixer", x);
      x = Added(x, name + scale, FeedForward(name + "mlp.", x, stage.feed_forward));
    }
    return x;
  }

  // timm's PatchEmbed: a kernel of 7 x 7 with one of 3 x 3 beside it, then one of 1 x 1.
  Value* Halved(const std::string& name, Value* x, const FastVitConfig::Stage& stage) {
    const int64_t in = Channels(x), out = stage.width;
    constexpr int64_t kSize = 7;
    Kernel kernel;
    if (layers_.Has(name + "0.reparam_conv.weight")) {
      kernel = BranchKernel(name + "0", in, {out, kSize, 2, in});
    } else {
      kernel = Sum(ConvAndNorm(name + "0.large_conv", out, 1, kSize, kSize),
                   ConvAndNorm(name + "0.small_conv", out, 1, 3, kSize));
    }
    x = Convolved(x, kernel, kSize, 2, in);
    if (stage.squeezes) x = Squeezed(name + "0.se", x);
    if (config_.activation_between) x = Activate(b_, config_.activation, x);
    return Branches(name + "1", x, {out, 1, 1, 1});
  }

  Value* WithPositions(const std::string& name, Value* x) {
    const int64_t channels = Channels(x);
    constexpr int64_t kSize = 7;
    if (layers_.Has(name + ".reparam_conv.weight"))
      return Convolved(x, BranchKernel(name, channels, {channels, kSize, 1, channels}), kSize, 1,
                       channels);
    Value* weight = layers_.Needed(name + ".pos_enc.weight", {channels, 1, kSize, kSize});
    const Kernel kernel{Binary(b_, "add", weight, Identity(channels, 1, kSize)),
                        layers_.Needed(name + ".pos_enc.bias", {channels})};
    return Convolved(x, kernel, kSize, 1, channels);
  }

  // x + scale * (mixer(x) - norm(x)), as one convolution.
  Value* Mixed(const std::string& name, Value* x) {
    const int64_t channels = Channels(x), size = config_.kernel;
    const Shape shape{channels, size, 1, channels};
    Kernel kernel;
    if (layers_.Has(name + ".reparam_conv.weight")) {
      kernel = BranchKernel(name, channels, shape);
    } else {
      const Kernel mixer = BranchKernel(name + ".mixer", channels, shape),
                   norm = BranchKernel(name + ".norm", channels, shape);
      kernel = {Binary(b_, "sub", mixer.weight, norm.weight),
                Binary(b_, "sub", mixer.bias, norm.bias)};
      if (Value* scale = layers_.Optional(name + ".layer_scale.gamma", {channels, 1, 1})) {
        kernel.weight = Binary(b_, "mul", kernel.weight, ByChannel(scale, channels));
        kernel.bias = Binary(b_, "mul", kernel.bias, WithShape(b_, scale, {channels}));
      }
      kernel.weight = Binary(b_, "add", kernel.weight, Identity(channels, 1, size));
    }
    return Convolved(x, kernel, size, 1, channels);
  }

  Value* FeedForward(const std::string& name, Value* x, double ratio) {
    const int64_t channels = Channels(x);
    constexpr int64_t kSize = 7;
    x = Convolved(x, ConvAndNorm(name + "conv", channels, 1, kSize, kSize), kSize, 1, channels);
    const auto inner = static_cast<int64_t>(static_cast<double>(channels) * ratio);
    x = Activate(b_, config_.activation, layers_.Convolution(name + "fc1", x, inner, {}));
    return layers_.Convolution(name + "fc2", x, channels, {});
  }

  Value* Added(Value* x, const std::string& scale, Value* y) {
    if (Value* gamma = layers_.Optional(scale + ".gamma", {Channels(x), 1, 1}))
      y = Binary(b_, "mul", y, gamma);
    return Binary(b_, "add", x, y);
  }

  Value* Attended(const std::string& name, Value* x) {
    const int64_t channels = Channels(x), height = x->type.shape[2].constant(),
                  width = x->type.shape[3].constant(), heads = channels / kHeadDim;
    Value* normed = config_.channel_norm ? layers_.ChannelNorm(name + "norm", x, kEpsilon)
                                         : layers_.BatchNorm(name + "norm", x, kEpsilon);
    Value* tokens = Transposed(b_, WithShape(b_, normed, {1, channels, height * width}), {0, 2, 1});
    std::vector<Value*> parts =
        Parts(b_, layers_.Linear(name + "token_mixer.qkv", tokens, 3 * channels),
              {channels, channels, channels}, 2);
    Value* q =
        Binary(b_, "mul", Heads(b_, parts[0], heads), 1 / std::sqrt(static_cast<double>(kHeadDim)));
    AttentionParts attention{
        .q = q, .k = Heads(b_, parts[1], heads), .v = Heads(b_, parts[2], heads)};
    Value* y =
        layers_.Linear(name + "token_mixer.proj", Joined(b_, Attend(b_, attention).y), channels);
    y = WithShape(b_, Transposed(b_, y, {0, 2, 1}), {1, channels, height, width});
    return Added(x, name + "layer_scale_1", y);
  }

  Builder& b_;
  Layers& layers_;
  const FastVitConfig& config_;
};

}  // namespace

int64_t FastVitConfig::reduction() const {
  int64_t pixels = 4;
  for (const Stage& stage : stages)
    if (stage.halves) pixels *= 2;
  return pixels;
}

void CheckFastVit(const FastVitConfig& config) {
  constexpr size_t kMostStages = 16;
  constexpr int64_t kMostBlocks = 1024, kMostWidth = 1 << 15;
  if (config.stages.empty() || config.stages.size() > kMostStages)
    throw Error("bad-file", "the tower has {} stages", config.stages.size())
        .Expected("1 to {}", kMostStages);
  for (const FastVitConfig::Stage& stage : config.stages) {
    if (stage.depth < 1 || stage.depth > kMostBlocks || stage.width < 1 || stage.width > kMostWidth)
      throw Error("bad-file", "a stage has {} blocks of {} channels", stage.depth, stage.width)
          .Expected("1 to {} blocks of 1 to {} channels", kMostBlocks, kMostWidth);
    if (!(stage.feed_forward > 0 && stage.feed_forward <= 64))
      throw Error("bad-file", "the ratio of feed-forward layers is {}", stage.feed_forward)
          .Expected("more than 0, at most 64");
    if (stage.attention && stage.width % kHeadDim != 0)
      throw Error("bad-file", "a stage with attention has {} channels", stage.width)
          .Expected("a multiple of {}", kHeadDim);
  }
}

Value* FastVit(Builder& b, Layers& layers, const FastVitConfig& config, Value* pixels) {
  return FastVitTower(b, layers, config).Run(pixels);
}

}  // namespace mlc::networks
