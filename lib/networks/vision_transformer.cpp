#include "lib/networks/vision_transformer.h"

#include <cmath>
#include <numbers>
#include <tuple>

#include "lib/ir/arithmetic.h"
#include "lib/ir/concat_slice.h"
#include "lib/networks/check_weights.h"
#include "lib/support/error.h"

namespace mlc::networks {

namespace {

using Positioned = VisionConfig::Positioned;

// A table of positions: rows of the tokens before the patches, a row per patch, and rows of the
// tokens after them. Only those of the patches depend on the size of the picture.
class PositionTable {
 public:
  PositionTable(const VisionConfig& config) : config_(config) {}

  int64_t rows() const { return before() + config_.trained_grid().count() + after(); }
  Tensor Fitting(const Tensor& table) const {
    const GridSize from = config_.trained_grid(), to = config_.grid();
    if (from == to) return table;
    const Tensor patches = table.Rows(before(), before() + from.count());
    std::vector<Tensor> parts;
    if (before() > 0) parts.push_back(table.Rows(0, before()));
    parts.push_back(ResizedGrid(patches, from, to, config_.resizing));
    if (after() > 0) parts.push_back(table.Rows(rows() - after(), rows()));
    return Join(parts, 0);
  }

 private:
  int64_t before() const {
    if (config_.positioned == Positioned::kPatches) return 0;
    return config_.positioned == Positioned::kAll
               ? config_.first_patch()
               : config_.class_token + config_.distillation_token;
  }
  int64_t after() const {
    return config_.positioned == Positioned::kPatches ? 0 : config_.detection_tokens;
  }
  const VisionConfig& config_;
};

class Tower {
 public:
  Tower(Builder& b, Layers& layers, const VisionConfig& config)
      : b_(b), layers_(layers), config_(config) {}

  std::vector<Value*> Run(Value* pixels) {
    b_.SetName("embeddings");
    Value* x = Embedded(pixels);
    if (config_.embeddings_norm)
      x = layers_.LayerNorm("vision.embeddings_norm", x, config_.layer.epsilon);
    MakeContext();
    std::vector<Value*> states = {x};
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      b_.SetName(fmt::format("layer_{}", layer));
      const std::string own = fmt::format("vision.layer.{}.", layer);
      AttentionContext context = context_;
      if (config_.relative == VisionConfig::Relative::kPerLayer)
        context.biases = {RelativeBias(own + "relative_positions")};
      x = PreNormLayer(b_, layers_, config_.layer, own, x, context);
      if (config_.mid_positions && layer + 1 < config_.layers)
        x = Binary(b_, "add", x, MidPositions(layer));
      states.push_back(x);
    }
    return states;
  }

 private:
  int64_t width() const { return config_.layer.width; }

  // Returns the patches [1, N, W].
  Value* Patches(Value* pixels) {
    const GridSize patch = config_.patch;
    const std::string name = "vision.patches";
    Value* weight = nullptr;
    if (config_.flat_patches) {
      weight = layers_.Needed(name + ".weight", {width(), patch.count() * config_.channels});
      weight = WithShape(b_, weight, {width(), patch.height, patch.width, config_.channels});
      weight = Transposed(b_, weight, {0, 3, 1, 2});
    } else {
      weight =
          layers_.Needed(name + ".weight", {width(), config_.channels, patch.height, patch.width});
    }
    Builder::Args args = {{"x", pixels},
                          {"weight", weight},
                          {"strides", Ints({patch.height, patch.width})},
                          {"pad_type", "valid"}};
    if (config_.patch_bias) args.emplace_back("bias", layers_.Needed(name + ".bias", {width()}));
    Value* x = b_.Make("conv", std::move(args));
    return Transposed(b_, WithShape(b_, x, {1, width(), config_.grid().count()}), {0, 2, 1});
  }

  Value* Table(const std::string& name, int64_t rows) {
    return layers_.Needed(name, {1, rows, width()});
  }

  Value* Embedded(Value* pixels) {
    Value* patches = Patches(pixels);
    const bool only_patches = config_.positioned == Positioned::kPatches,
               all = config_.positioned == Positioned::kAll;
    if (config_.position_table && only_patches) patches = Binary(b_, "add", patches, Positions());
    std::vector<Value*> tokens;
    if (config_.class_token) tokens.push_back(Table("vision.class_token", 1));
    if (config_.distillation_token) tokens.push_back(Table("vision.distillation_token", 1));
    Value* registers =
        config_.registers > 0 ? Table("vision.registers", config_.registers) : nullptr;
    if (registers && (all || only_patches)) tokens.push_back(registers);
    tokens.push_back(patches);
    if (config_.detection_tokens > 0)
      tokens.push_back(Table("vision.detection_tokens", config_.detection_tokens));
    Value* x = tokens.size() == 1 ? patches : Concat(b_, tokens, 1);
    if (config_.position_table && !only_patches) x = Binary(b_, "add", x, Positions());
    if (!registers || all || only_patches) return x;
    const int64_t before = config_.class_token + config_.distillation_token,
                  after = config_.grid().count() + config_.detection_tokens;
    if (before == 0) return Concat(b_, {registers, x}, 1);
    std::vector<Value*> parts = Parts(b_, x, {before, after}, 1);
    return Concat(b_, {parts[0], registers, parts[1]}, 1);
  }

  Value* Positions() {
    const PositionTable fit(config_);
    Value* table = Table("vision.positions", fit.rows());
    const Tensor rows = table->constant().Reshaped({fit.rows(), width()});
    const Tensor fitting = fit.Fitting(rows);
    return b_.Const(fitting.Reshaped({1, fitting.dims()[0], width()}), "positions");
  }
  Value* MidPositions(int64_t layer) {
    const PositionTable fit(config_);
    Value* tables =
        layers_.Needed("vision.mid_positions", {config_.layers - 1, 1, fit.rows(), width()});
    const Tensor all = tables->constant().Reshaped({(config_.layers - 1) * fit.rows(), width()});
    const Tensor fitting = fit.Fitting(all.Rows(layer * fit.rows(), (layer + 1) * fit.rows()));
    return b_.Const(fitting.Reshaped({1, fitting.dims()[0], width()}), "mid_positions");
  }

  void MakeContext() {
    if (config_.rotary) MakeAngles();
    if (config_.relative == VisionConfig::Relative::kShared)
      context_.biases = {RelativeBias("vision.relative_positions")};
  }

  // Follows transformers' modeling_dinov3_vit.py: the coordinates of the centres of patches, from -1
  // to 1, times 2 pi and a frequency each; first those of rows, then of columns. EVA-02 has other
  // coordinates (timm/layers/pos_embed_sincos.py, build_fourier_pos_embed).
  void MakeAngles() {
    const GridSize grid = config_.grid(), reference = config_.rotary_reference;
    context_.interleaved = reference.height > 0;
    const int64_t half = width() / config_.layer.heads / 2, quarter = half / 2;
    std::vector<float> cosine, sine;
    for (int64_t y = 0; y < grid.height; ++y)
      for (int64_t x = 0; x < grid.width; ++x)
        for (auto [place, count, of] :
             {std::tuple{y, grid.height, reference.height}, {x, grid.width, reference.width}}) {
          const double coordinate =
              context_.interleaved
                  ? static_cast<double>(place * of) / static_cast<double>(count)
                  : 2 * std::numbers::pi *
                        (2 * (static_cast<double>(place) + 0.5) / static_cast<double>(count) - 1);
          for (int64_t k = 0; k < quarter; ++k) {
            const double frequency = std::pow(
                config_.rotary_base, -static_cast<double>(k) / static_cast<double>(quarter));
            const double angle = coordinate * frequency;
            cosine.push_back(static_cast<float>(std::cos(angle)));
            sine.push_back(static_cast<float>(std::sin(angle)));
          }
        }
    const Dims dims = {1, grid.count(), half};
    context_.cosine = b_.Const(Tensor::Of<float>(dims, cosine), "cosine");
    context_.sine = b_.Const(Tensor::Of<float>(dims, sine), "sine");
    context_.first_rotated = config_.first_patch();
  }

  // Returns the biases [1, heads, T, T] of a class token and patches. Follows transformers'
  // modeling_beit.py: the table has a row for each offset of a patch from another, and three for the
  // class token with patches, patches with the class token, and the class token with itself.
  Value* RelativeBias(const std::string& name) {
    const GridSize grid = config_.grid(), trained = config_.trained_grid();
    const int64_t heads = config_.layer.heads;
    auto offsets = [](GridSize of) { return GridSize{2 * of.height - 1, 2 * of.width - 1}; };
    const GridSize from = offsets(trained), to = offsets(grid);
    Tensor table = layers_.Needed(name, {from.count() + 3, heads})->constant();
    const Tensor of_patches =
        ResizedGrid(table.Rows(0, from.count()), from, to, Resizing::kBilinear);
    const Pin<float> patches = of_patches.data<float>(),
                     others = table.Rows(from.count(), from.count() + 3).data<float>();
    const int64_t tokens = grid.count() + 1;
    std::vector<float> biases(static_cast<size_t>(heads * tokens * tokens));
    for (int64_t q = 0; q < tokens; ++q)
      for (int64_t k = 0; k < tokens; ++k) {
        const bool class_query = q == 0, class_key = k == 0;
        const int64_t dy = (q - 1) / grid.width - (k - 1) / grid.width + grid.height - 1,
                      dx = (q - 1) % grid.width - (k - 1) % grid.width + grid.width - 1;
        for (int64_t h = 0; h < heads; ++h)
          biases[static_cast<size_t>((h * tokens + q) * tokens + k)] =
              class_query || class_key
                  ? others[static_cast<size_t>((class_query ? 2 * class_key : 1) * heads + h)]
                  : patches[static_cast<size_t>((dy * to.width + dx) * heads + h)];
      }
    return b_.Const(Tensor::Of<float>({1, heads, tokens, tokens}, biases).ComputedFrom(table),
                    "relative_positions");
  }

  Builder& b_;
  Layers& layers_;
  const VisionConfig& config_;
  AttentionContext context_;
};

}  // namespace

void CheckVision(const VisionConfig& config) {
  CheckLayer(config.layer);
  constexpr int64_t kMaxLayers = 1 << 10, kMaxPixels = 1 << 14, kMaxTokens = 1 << 14;
  if (config.layers < 1 || config.layers > kMaxLayers)
    throw Error("bad-file", "the model has {} layers", config.layers)
        .Expected("1 to {}", kMaxLayers);
  auto check_size = [&](const char* what, GridSize size) {
    if (size.height < 1 || size.width < 1 || size.height > kMaxPixels || size.width > kMaxPixels)
      throw Error("bad-file", "the {} is {} x {} pixels", what, size.height, size.width)
          .Expected("1 to {} pixels in each direction", kMaxPixels);
  };
  check_size("size of patches", config.patch);
  check_size("size of pictures", config.picture);
  check_size("size of pictures in training", config.trained);
  if (config.channels < 1 || config.channels > kMaxLayers)
    throw Error("bad-file", "pictures have {} channels", config.channels)
        .Expected("1 to {}", kMaxLayers);
  for (GridSize grid : {config.grid(), config.trained_grid()})
    if (grid.count() < 1)
      throw Error("bad-file", "pictures of {} x {} pixels have no patch of {} x {}",
                  config.picture.height, config.picture.width, config.patch.height,
                  config.patch.width);
  for (int64_t count : {config.registers, config.detection_tokens})
    if (count < 0 || count > kMaxTokens)
      throw Error("bad-file", "the model has {} additional tokens", count)
          .Expected("0 to {}", kMaxTokens);
  const int64_t trained = config.trained_grid().count();
  for (int64_t tokens : {config.tokens(), trained})
    if (tokens > kMaxTokens)
      throw Error("resource-limit", "a picture has {} tokens", tokens)
          .Expected("at most {}", kMaxTokens)
          .Help("a smaller picture has fewer tokens: option 'shape' pixel_values=1,3,HEIGHT,WIDTH");
  if (config.relative != VisionConfig::Relative::kNone &&
      config.layer.heads * config.tokens() * config.tokens() > (int64_t{1} << 28))
    throw Error("resource-limit", "biases of {} heads for {} tokens have too many elements",
                config.layer.heads, config.tokens());
  if (config.rotary && config.layer.width / config.layer.heads % 4 != 0)
    throw Error("bad-file", "a head has {} dimensions", config.layer.width / config.layer.heads)
        .Expected("a multiple of 4, for rotary embedding in two directions");
  if (config.rotary && !(config.rotary_base > 0 && std::isfinite(config.rotary_base)))
    throw Error("bad-file", "rotary embedding has the base {}", config.rotary_base);
}

std::vector<Value*> VisionTower(Builder& b, Layers& layers, const VisionConfig& config,
                                Value* pixels) {
  return Tower(b, layers, config).Run(pixels);
}

Value* VisionNorm(Layers& layers, const VisionConfig& config, Value* x) {
  return Normed(layers, config.layer, "vision.norm", x);
}

Value* PatchTokens(Builder& b, const VisionConfig& config, Value* x) {
  const int64_t first = config.first_patch(), count = config.grid().count();
  return count == config.tokens() ? x : SliceAlong(b, x, 1, first, first + count, false);
}

Value* PatchImage(Builder& b, const VisionConfig& config, Value* patches) {
  const GridSize grid = config.grid();
  return WithShape(b, Transposed(b, patches, {0, 2, 1}),
                   {1, config.layer.width, grid.height, grid.width});
}

}  // namespace mlc::networks
