#include "lib/networks/vision_language.h"

#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ir/concat_slice.h"
#include "lib/support/error.h"

namespace mlc::networks {

namespace {

using Projector = VisionLanguageConfig::Projector;

constexpr double kHiddenScore = -4e4;  // the sum with any other score is within the range of fp16
constexpr int64_t kFrames = 2;

class PictureReader {
 public:
  PictureReader(Builder& b, Layers& layers, const VisionLanguageConfig& config)
      : b_(b), layers_(layers), config_(config), vision_(config.vision) {}

  struct Features {
    Value *projected, *deepstack;  // the latter null if there are none
  };
  Features Run(Value* pixels) {
    if (config_.fast_vit) {
      Value* map = FastVitMap(b_, layers_, *config_.fast_vit, pixels);
      b_.SetName("projector");
      map = WithShape(b_, map, {1, config_.fast_vit->channels(), vision_.grid().count()});
      return {Projected(Transposed(b_, map, {0, 2, 1})), nullptr};
    }
    const std::vector<Value*> states =
        config_.qwen ? QwenTower(pixels) : VisionTower(b_, layers_, vision_, pixels);
    b_.SetName("projector");
    std::vector<Value*> chosen;
    for (int64_t state : config_.states) {
      Value* x = states.at(static_cast<size_t>(state));
      if (config_.normed) x = VisionNorm(layers_, vision_, x);
      chosen.push_back(config_.class_token || config_.qwen ? x : PatchTokens(b_, vision_, x));
    }
    Value* x = chosen.size() == 1 ? chosen[0] : Concat(b_, chosen, 2);
    if (config_.normed_before) x = Norm("projector.norm", x, config_.epsilon);
    return {Projected(x), Deepstack(states)};
  }

 private:
  int64_t width() const { return vision_.layer.width; }

  Value* Norm(const std::string& name, Value* x, double epsilon) {
    return config_.rms_norms ? layers_.RmsNorm(name, x, epsilon)
                             : layers_.LayerNorm(name, x, epsilon);
  }

  // Follows transformers' modeling_qwen3_vl.py.
  Value* Deepstack(const std::vector<Value*>& states) {
    std::vector<Value*> all;
    for (int64_t state : config_.deepstack) {
      const std::string own = fmt::format("deepstack.{}.", all.size());
      b_.SetName(fmt::format("deepstack_{}", all.size()));
      Value* x =
          Norm(own + "norm", Squares(states.at(static_cast<size_t>(state))), config_.epsilon);
      x = Activate(b_, config_.activation, layers_.Linear(own + "1", x, config_.inner_width));
      all.push_back(layers_.Linear(own + "2", x, config_.text_width));
    }
    if (all.empty()) return nullptr;
    return all.size() == 1 ? all[0] : Concat(b_, all, 0);
  }

  // Follows transformers' modeling_qwen2_vl.py, modeling_qwen2_5_vl.py and modeling_qwen3_vl.py, but for the order of the
  // patches, which are row by row here.
  std::vector<Value*> QwenTower(Value* pixels) {
    b_.SetName("embeddings");
    const GridSize patch = vision_.patch, grid = vision_.grid();
    Value* frames = layers_.Needed("vision.patches.weight",
                                   {width(), vision_.channels, kFrames, patch.height, patch.width});
    Value* weight = Reduced(b_, "reduce_sum", frames, {2}, false);
    Builder::Args args = {{"x", pixels},
                          {"weight", weight},
                          {"strides", Ints({patch.height, patch.width})},
                          {"pad_type", "valid"}};
    if (vision_.patch_bias)
      args.emplace_back("bias", layers_.Needed("vision.patches.bias", {width()}));
    Value* x = b_.Make("conv", std::move(args));
    x = Transposed(b_, WithShape(b_, x, {1, width(), grid.count()}), {0, 2, 1});
    if (vision_.position_table) x = Binary(b_, "add", x, QwenPositions());
    AttentionContext whole = Angles(), windowed = whole;
    if (config_.window.count() > 0) windowed.biases = {WindowBias()};
    std::vector<Value*> states = {x};
    for (int64_t layer = 0; layer < vision_.layers; ++layer) {
      b_.SetName(fmt::format("layer_{}", layer));
      const std::string own = fmt::format("vision.layer.{}.", layer);
      const bool global =
          std::ranges::find(config_.global_layers, layer) != config_.global_layers.end();
      const double epsilon = vision_.layer.epsilon;
      Value* y = SelfAttention(b_, layers_, vision_.layer, own,
                               Norm(own + "attention_norm", x, epsilon), global ? whole : windowed);
      x = Binary(b_, "add", x, y);
      y = FeedForwardOf(b_, layers_, vision_.layer, own, Norm(own + "norm", x, epsilon));
      x = Binary(b_, "add", x, y);
      states.push_back(x);
    }
    return states;
  }

  Value* QwenPositions() {
    const GridSize from = vision_.trained_grid(), to = vision_.grid();
    const Tensor table = layers_.Needed("vision.positions", {from.count(), width()})->constant();
    const Tensor fitting = ResizedGrid(table, from, to, vision_.resizing);
    return b_.Const(fitting.Reshaped({1, to.count(), width()}), "positions");
  }

  AttentionContext Angles() {
    const GridSize grid = vision_.grid();
    const int64_t half = width() / vision_.layer.heads / 2, quarter = half / 2;
    std::vector<float> cosine, sine;
    for (int64_t y = 0; y < grid.height; ++y)
      for (int64_t x = 0; x < grid.width; ++x)
        for (int64_t place : {y, x})
          for (int64_t k = 0; k < quarter; ++k) {
            // The angles are products of numbers in fp32, as in transformers.
            const auto frequency = static_cast<float>(
                std::pow(10000.0, -static_cast<double>(k) / static_cast<double>(quarter)));
            const float angle = static_cast<float>(place) * frequency;
            cosine.push_back(std::cos(angle));
            sine.push_back(std::sin(angle));
          }
    const Dims dims = {1, grid.count(), half};
    AttentionContext context;
    context.cosine = b_.Const(Tensor::Of<float>(dims, cosine), "cosine");
    context.sine = b_.Const(Tensor::Of<float>(dims, sine), "sine");
    return context;
  }

  // Hides the patches of other windows, which begin at the upper left corner.
  Value* WindowBias() {
    const GridSize grid = vision_.grid(), window = config_.window;
    const int64_t count = grid.count();
    auto window_of = [&](int64_t patch) {
      return std::pair(patch / grid.width / window.height, patch % grid.width / window.width);
    };
    std::vector<float> bias(static_cast<size_t>(count * count), 0);
    for (int64_t q = 0; q < count; ++q)
      for (int64_t k = 0; k < count; ++k)
        if (window_of(q) != window_of(k))
          bias[static_cast<size_t>(q * count + k)] = static_cast<float>(kHiddenScore);
    return b_.Const(Tensor::Of<float>({1, 1, count, count}, bias), "windows");
  }

  // Joins the patches of a square, row by row: [1, N, W] -> [1, N / square^2, square^2 W].
  Value* Squares(Value* x) {
    const int64_t side = config_.square, channels = x->type.shape[2].constant();
    if (side == 1) return x;
    const GridSize to = config_.token_grid();
    x = WithShape(b_, x, {to.height, side, to.width, side * channels});
    return WithShape(b_, Transposed(b_, x, {0, 2, 1, 3}), {1, to.count(), side * side * channels});
  }

  Value* Projected(Value* x) {
    const int64_t out = config_.text_width;
    if (config_.projector == Projector::kPooled) {
      Value* image = PatchImage(b_, vision_, x);
      const int64_t side = config_.square;
      image = b_.Make("avg_pool", {{"x", image},
                                   {"kernel_sizes", Ints({side, side})},
                                   {"strides", Ints({side, side})},
                                   {"pad_type", "valid"}});
      const GridSize grid = config_.token_grid();
      x = Transposed(b_, WithShape(b_, image, {1, width(), grid.count()}), {0, 2, 1});
      x = layers_.RmsNorm("projector.norm", x, config_.epsilon, config_.norm_adds_one);
      Value* matrix = layers_.Needed("projector.1.weight", {width(), out});
      return b_.Make("matmul", {{"x", x}, {"y", matrix}});
    }
    x = Squares(x);
    if (config_.normed_joined) x = layers_.LayerNorm("projector.norm", x, config_.epsilon);
    if (config_.projector == Projector::kTwoLayers)
      x = Activate(b_, config_.activation, layers_.Linear("projector.1", x, config_.inner_width));
    const bool two = config_.projector == Projector::kTwoLayers;
    x = layers_.Linear(two ? "projector.2" : "projector.1", x, out);
    return config_.scale == 1 ? x : Binary(b_, "mul", x, config_.scale);
  }

  Builder& b_;
  Layers& layers_;
  const VisionLanguageConfig& config_;
  const VisionConfig& vision_;
};

}  // namespace

void CheckVisionLanguage(const VisionLanguageConfig& config) {
  if (config.fast_vit) CheckFastVit(*config.fast_vit);
  CheckVision(config.vision);
  const GridSize grid = config.vision.grid();
  constexpr int64_t kMostSquare = 64;
  if (config.square < 1 || config.square > kMostSquare)
    throw Error("bad-file", "squares of {} x {} patches become one token", config.square,
                config.square)
        .Expected("1 to {} in each direction", kMostSquare);
  if (config.fast_vit && (config.vision.picture.height % config.vision.patch.height != 0 ||
                          config.vision.picture.width % config.vision.patch.width != 0))
    throw Error("bad-file", "pictures have {} x {} pixels", config.vision.picture.height,
                config.vision.picture.width)
        .Expected("multiples of {}", config.vision.patch.height)
        .Help("option 'shape' pixel_values=1,3,HEIGHT,WIDTH sets the size of pictures");
  if (grid.height % config.square != 0 || grid.width % config.square != 0)
    throw Error("bad-file", "a picture has {} x {} patches, which squares of {} x {} do not cover",
                grid.height, grid.width, config.square, config.square)
        .Help("option 'shape' pixel_values=1,3,HEIGHT,WIDTH sets the size of pictures");
  if (config.text_width < 1 || config.text_width > INT32_MAX / 8)
    throw Error("bad-file", "the language model has {} dimensions per token", config.text_width);
  if (!(config.epsilon >= 0) || !std::isfinite(config.epsilon))
    throw Error("bad-file", "the epsilon of the projector's norm is {}", config.epsilon);
  for (int64_t state : config.states)
    if (state < 0 || state > config.vision.layers)
      throw Error("bad-file", "the projector reads hidden state {} of a tower of {} layers", state,
                  config.vision.layers);
  for (int64_t state : config.deepstack)
    if (state < 1 || state > config.vision.layers)
      throw Error("bad-file", "the language model takes the features of layer {} of a tower of {}",
                  state - 1, config.vision.layers);
  if (config.qwen && config.vision.layer.width / config.vision.layer.heads % 4 != 0)
    throw Error("bad-file", "a head has {} dimensions",
                config.vision.layer.width / config.vision.layer.heads)
        .Expected("a multiple of 4, for rotary embedding in two directions");
  constexpr int64_t kMostPairs = int64_t{1} << 26;
  if (config.window.count() > 0 && grid.count() * grid.count() > kMostPairs)
    throw Error("resource-limit", "a picture has {} patches, too many for windows", grid.count())
        .Help("option 'shape' pixel_values=1,3,HEIGHT,WIDTH sets the size of pictures");
}

void AddVision(Program& program, const VisionLanguageConfig& config, const NetworkWeights& weights,
               Diagnostics& diagnostics) {
  Function& function = *program.Add("vision");
  function.opset = Opset::kIos18;
  Builder b(function.body, diagnostics);
  Layers layers(b, weights);
  Value* pixels = AddPictureInput(b, function, config.picture);
  const auto [features, deepstack] = PictureReader(b, layers, config).Run(pixels);
  AddOutput(function, features, "image_features");
  std::vector<Value*> outputs = {features};
  if (deepstack) {
    AddOutput(function, deepstack, "deepstack_features");
    outputs.push_back(deepstack);
  }
  function.body.SetOutputs(outputs);
}

}  // namespace mlc::networks
