#include "lib/networks/depth.h"

#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/support/error.h"

namespace mlc::networks {

namespace {

class DepthBuilder {
 public:
  DepthBuilder(Builder& b, Layers& layers, const DepthConfig& config, const VisionConfig& vision)
      : b_(b), layers_(layers), config_(config), vision_(vision) {}

  // Follows transformers' modeling_dpt.py and modeling_depth_anything.py.
  Value* Run(const std::vector<Value*>& states) {
    std::vector<Value*> levels;
    for (size_t level = 0; level < config_.states.size(); ++level)
      levels.push_back(Level(level, states[static_cast<size_t>(config_.states[level])]));
    const std::vector<Value*> fused = Fused(levels);
    const auto count = static_cast<int64_t>(fused.size());
    b_.SetName("head");
    const auto head = config_.segments > 0 ? &DepthBuilder::Segments : &DepthBuilder::Head;
    return (this->*head)(fused[static_cast<size_t>((config_.head_level + count) % count)]);
  }

 private:
  // A convolution [out, in, kernel, kernel] that keeps the size but for its stride.
  Value* Conv(const std::string& name, Value* x, int64_t out, int64_t kernel, int64_t stride = 1,
              bool bias = true) {
    const int64_t pad = kernel / 2;
    Builder::Args args = {
        {"x", x},
        {"weight",
         layers_.Needed(name + ".weight", {out, x->type.shape[1].constant(), kernel, kernel})}};
    if (stride > 1) args.emplace_back("strides", Ints({stride, stride}));
    if (pad > 0) {
      args.emplace_back("pad_type", "custom");
      args.emplace_back("pad", Ints({pad, pad, pad, pad}));
    }
    if (bias) args.emplace_back("bias", layers_.Needed(name + ".bias", {out}));
    return b_.Make("conv", std::move(args));
  }
  Value* Relu(Value* x) { return Activate(b_, Activation::kRelu, x); }

  GridSize SizeOf(Value* x) const {
    return {x->type.shape[2].constant(), x->type.shape[3].constant()};
  }
  Value* Resized(Value* x, GridSize size, const char* sampling = "STRICT_ALIGN_CORNERS") {
    if (SizeOf(x) == size) return x;
    return b_.Make("resize_bilinear", {{"x", x},
                                       {"target_size_height", size.height},
                                       {"target_size_width", size.width},
                                       {"sampling_mode", sampling}});
  }
  Value* Doubled(Value* x) {
    const GridSize size = SizeOf(x);
    return Resized(x, {2 * size.height, 2 * size.width});
  }

  Value* Level(size_t level, Value* x) {
    b_.SetName(fmt::format("level_{}", level));
    if (config_.normed) x = VisionNorm(layers_, vision_, x);
    Value* patches = PatchTokens(b_, vision_, x);
    if (config_.readout != DepthConfig::Readout::kIgnore) {
      Value* first = SliceAlong(b_, x, 1, 0, 1, false);
      if (config_.readout == DepthConfig::Readout::kAdd) {
        patches = Binary(b_, "add", patches, first);
      } else {
        Value* each =
            b_.Make("tile", {{"x", first}, {"reps", Ints({1, vision_.grid().count(), 1})}});
        patches = Biased(layers_, fmt::format("depth.readout.{}", level),
                         Concat(b_, {patches, each}, 2), vision_.layer.width);
        patches = Activate(b_, config_.readout_activation, patches);
      }
    }
    const int64_t width = config_.widths[level];
    x = Conv(fmt::format("depth.reassemble.{}", level), PatchImage(b_, vision_, patches), width, 1);
    x = Reassembled(fmt::format("depth.resize.{}", level), x, config_.factors[level]);
    return Conv(fmt::format("depth.neck.{}", level), x, config_.fusion_width, 3, 1, false);
  }
  Value* Reassembled(const std::string& name, Value* x, double factor) {
    const int64_t width = x->type.shape[1].constant();
    if (factor == 1) return x;
    if (factor < 1) return Conv(name, x, width, 3, std::llround(1 / factor));
    const int64_t times = std::llround(factor);
    return b_.Make("conv_transpose",
                   {{"x", x},
                    {"weight", layers_.Needed(name + ".weight", {width, width, times, times})},
                    {"bias", layers_.Needed(name + ".bias", {width})},
                    {"strides", Ints({times, times})},
                    {"pad_type", "valid"}});
  }

  Value* Residual(const std::string& name, Value* x) {
    Value* y = x;
    for (const char* number : {"1", "2"}) {
      y = Conv(name + number, Relu(y), config_.fusion_width, 3, 1, config_.fusion_bias);
      if (config_.fusion_norms)
        y = layers_.BatchNorm(fmt::format("{}.norm{}", name, number), y, kNormEpsilon);
    }
    return Binary(b_, "add", y, x);
  }
  std::vector<Value*> Fused(const std::vector<Value*>& levels) {
    std::vector<Value*> fused;
    for (size_t i = 0; i < levels.size(); ++i) {
      b_.SetName(fmt::format("fusion_{}", i));
      const std::string own = fmt::format("depth.fusion.{}.", i);
      Value* level = levels[levels.size() - 1 - i];
      Value* x = level;
      if (i > 0) {
        x = fused.back();
        // The deepest level has no other to be added to.
        Value* skip = Resized(level, SizeOf(x), "UNALIGN_CORNERS");
        x = Binary(b_, "add", x, Residual(own + "skip", skip));
      }
      x = Residual(own + "own", x);
      const bool last = i + 1 == levels.size();
      x = config_.to_size && !last ? Resized(x, SizeOf(levels[levels.size() - 2 - i])) : Doubled(x);
      fused.push_back(Conv(own + "projection", x, config_.fusion_width, 1));
    }
    return fused;
  }

  Value* Head(Value* x) {
    const int64_t width = config_.fusion_width;
    if (config_.head_projection) x = Relu(Conv("depth.projection", x, width, 3));
    x = Conv("depth.head1", x, width / 2, 3);
    const GridSize grid = vision_.grid(), patch = vision_.patch;
    x = config_.to_size ? Resized(x, {grid.height * patch.height, grid.width * patch.width})
                        : Doubled(x);
    x = Relu(Conv("depth.head2", x, config_.head_width, 3));
    x = Conv("depth.head3", x, 1, 1);
    x = config_.sigmoid ? b_.Make("sigmoid", {{"x", x}}) : Relu(x);
    if (config_.max_depth != 1) x = Binary(b_, "mul", x, config_.max_depth);
    return Squeezed(b_, x, {1});
  }

  Value* Segments(Value* x) {
    x = Conv("segments.head", x, config_.fusion_width, 3, 1, false);
    x = Relu(layers_.BatchNorm("segments.norm", x, kNormEpsilon));
    return Doubled(Conv("segments.classifier", x, config_.segments, 1));
  }

  static constexpr double kNormEpsilon = 1e-5;
  Builder& b_;
  Layers& layers_;
  const DepthConfig& config_;
  const VisionConfig& vision_;
};

}  // namespace

void CheckDepth(const DepthConfig& config, const VisionConfig& vision) {
  constexpr size_t kMaxLevels = 16;
  const size_t levels = config.states.size();
  if (levels < 1 || levels > kMaxLevels || config.widths.size() != levels ||
      config.factors.size() != levels)
    throw Error("bad-file", "the neck has {} hidden states, {} widths and {} factors", levels,
                config.widths.size(), config.factors.size())
        .Expected("one width and one factor for each of 1 to {} hidden states", kMaxLevels);
  for (int64_t state : config.states)
    if (state < 0 || state > vision.layers)
      throw Error("bad-file", "the neck takes hidden state {}", state)
          .Expected("0 to {}, the number of layers", vision.layers);
  constexpr int64_t kMaxWidth = 1 << 16, kMaxPixels = 1 << 15;
  for (int64_t width : config.widths)
    if (width < 1 || width > kMaxWidth)
      throw Error("bad-file", "a level of the neck has {} channels", width)
          .Expected("1 to {}", kMaxWidth);
  if (config.segments < 0 || config.segments > kMaxWidth)
    throw Error("bad-file", "the head has {} classes", config.segments)
        .Expected("1 to {}", kMaxWidth);
  for (int64_t width : {config.fusion_width / 2, config.head_width})
    if (width < 1 || width > kMaxWidth)
      throw Error("bad-file", "the head has {} channels", width).Expected("1 to {}", kMaxWidth);
  auto whole = [](double x) { return x == std::floor(x); };
  for (double factor : config.factors) {
    if (!(factor > 0 && std::isfinite(factor)) || !(whole(factor) || whole(1 / factor)))
      throw Error("bad-file", "a level of the neck is enlarged {} times", factor)
          .Expected("a whole number, or one divided by a whole number");
    // All later levels double the size once more.
    const GridSize grid = vision.grid();
    for (int64_t size : {grid.height, grid.width})
      if (static_cast<double>(size) * factor * std::pow(2, static_cast<double>(levels)) >
          kMaxPixels)
        throw Error("resource-limit", "a level of the neck is enlarged {} times", factor)
            .Expected("results of at most {} pixels in each direction", kMaxPixels);
  }
  const auto count = static_cast<int64_t>(levels);
  if (config.head_level < -count || config.head_level >= count)
    throw Error("bad-file", "the head takes level {} of {}", config.head_level, count);
  if (!std::isfinite(config.max_depth))
    throw Error("bad-file", "the largest depth is {}", config.max_depth);
  if (config.readout != DepthConfig::Readout::kIgnore && !vision.class_token)
    throw Error("bad-file", "the neck reads the class token, but the model has none");
}

Value* Depth(Builder& b, Layers& layers, const DepthConfig& config, const VisionConfig& vision,
             const std::vector<Value*>& states) {
  return DepthBuilder(b, layers, config, vision).Run(states);
}

}  // namespace mlc::networks
