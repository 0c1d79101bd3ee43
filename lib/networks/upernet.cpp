#include "lib/networks/upernet.h"

#include "lib/ir/arithmetic.h"
#include "lib/networks/picture_network.h"

namespace mlc::networks {

namespace {

class UperNetBuilder {
 public:
  UperNetBuilder(Builder& b, Layers& layers, const UperNetConfig& config)
      : b_(b), layers_(layers), config_(config) {}

  // Follows mmsegmentation's models/decode_heads/uper_head.py.
  Value* Run(const std::vector<Value*>& maps) {
    b_.SetName("head");
    std::vector<Value*> levels;
    for (size_t i = 0; i + 1 < maps.size(); ++i)
      levels.push_back(Unit(fmt::format("lateral.{}", i), maps[i], 1));
    levels.push_back(Pyramid(maps.back()));
    for (size_t i = levels.size() - 1; i > 0; --i)
      levels[i - 1] = Binary(b_, "add", levels[i - 1], Resized(levels[i], levels[i - 1]));
    for (size_t i = 0; i + 1 < levels.size(); ++i)
      levels[i] = Unit(fmt::format("output.{}", i), levels[i], 3);
    for (Value*& level : levels) level = Resized(level, levels[0]);
    Value* x = Unit("fuse", Concat(b_, levels, 1), 3);
    return layers_.Convolution("segments.classifier", x, config_.segments, {});
  }

 private:
  Value* Unit(const std::string& name, Value* x, int64_t kernel) {
    const std::string own = "segments." + name;
    x = layers_.Convolution(own + ".conv", x, config_.width, {.kernel = kernel});
    return Activate(b_, Activation::kRelu, layers_.BatchNorm(own + ".norm", x, kNormEpsilon));
  }

  Value* Resized(Value* x, const Value* like) {
    if (Height(x) == Height(like) && Width(x) == Width(like)) return x;
    return b_.Make("resize_bilinear", {{"x", x},
                                       {"target_size_height", Height(like)},
                                       {"target_size_width", Width(like)},
                                       {"sampling_mode", "UNALIGN_CORNERS"}});
  }

  // Joins the map to its means in grids of several sizes.
  Value* Pyramid(Value* map) {
    std::vector<Value*> levels = {map};
    for (size_t i = 0; i < config_.scales.size(); ++i) {
      Value* means = Means(map, config_.scales[i]);
      levels.push_back(Resized(Unit(fmt::format("pool.{}", i), means, 1), map));
    }
    return Unit("bottleneck", Concat(b_, levels, 1), 3);
  }

  // The mean in each cell of a grid of side x side. Cells overlap where the size of the map is not a
  // multiple, as those of torch's adaptive pooling do.
  Value* Means(Value* x, int64_t side) {
    const int64_t height = Height(x), width = Width(x);
    if (height % side == 0 && width % side == 0) {
      const std::vector<int64_t> cell = {height / side, width / side};
      return b_.Make(
          "avg_pool",
          {{"x", x}, {"kernel_sizes", Ints(cell)}, {"strides", Ints(cell)}, {"pad_type", "valid"}});
    }
    x = b_.Make("matmul", {{"x", x}, {"y", Shares(width, side)}, {"transpose_y", true}});
    return b_.Make("matmul", {{"x", Shares(height, side)}, {"y", x}});
  }
  // The share that each of `size` elements has in the mean of each of `cells` cells [cells, size].
  Value* Shares(int64_t size, int64_t cells) {
    std::vector<float> shares(static_cast<size_t>(cells * size));
    for (int64_t cell = 0; cell < cells; ++cell) {
      const int64_t begin = cell * size / cells, end = ((cell + 1) * size + cells - 1) / cells;
      for (int64_t i = begin; i < end; ++i)
        shares[static_cast<size_t>(cell * size + i)] = 1 / static_cast<float>(end - begin);
    }
    return b_.Const(Tensor::Of<float>({cells, size}, shares));
  }

  static constexpr double kNormEpsilon = 1e-5;
  Builder& b_;
  Layers& layers_;
  const UperNetConfig& config_;
};

}  // namespace

void CheckUperNet(const UperNetConfig& config) {
  CheckPositive({{"number of segments", config.segments}, {"width of the head", config.width}});
  CheckPositive("scales of pooling", config.scales);
  constexpr int64_t kMostScales = 64;
  for (int64_t scale : config.scales)
    if (scale > kMostScales || std::ssize(config.scales) > kMostScales)
      throw Error("resource-limit", "maps are averaged at {} scales, one of which is {}",
                  config.scales.size(), scale)
          .Expected("at most {} scales up to {}", kMostScales, kMostScales);
}

Value* UperNet(Builder& b, Layers& layers, const UperNetConfig& config,
               const std::vector<Value*>& maps) {
  MLC_CHECK(!maps.empty(), "no maps");
  return UperNetBuilder(b, layers, config).Run(maps);
}

}  // namespace mlc::networks
