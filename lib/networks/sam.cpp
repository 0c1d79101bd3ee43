#include "lib/networks/sam.h"

#include <algorithm>

#include "lib/ir/arithmetic.h"
#include "lib/ops/row.h"
#include "lib/support/edit_distance.h"

namespace mlc::networks {

namespace {

constexpr const char *kScores = "iou_scores", *kMasks = "pred_masks",
                     *kObject = "object_score_logits", *kHidden = "last_hidden_state";

// Values by the names of the ports.
using Ports = std::vector<std::pair<std::string, Value*>>;

// The layers of one function.
class SamFunction {
 public:
  SamFunction(Function& function, Diagnostics& diagnostics, const NetworkWeights& weights,
              const SamConfig& config)
      : function_(function),
        b_(function.body, diagnostics),
        layers_(b_, weights),
        config_(config) {}

  Value* Pixels() { return AddPictureInput(b_, function_, config_.picture); }

  // Returns the outputs of a tower alone.
  Ports Tower() {
    if (const auto* tower = std::get_if<SamEncoderConfig>(&config_.tower))
      return {{kHidden, SamEmbeddings(b_, layers_, *tower, Pixels())}};
    const std::vector<Value*> maps = Maps();
    Ports ports = {{kHidden, Transposed(b_, maps.back(), {0, 2, 3, 1})}};
    for (Value* level : Pyramid(maps))
      ports.emplace_back(fmt::format("fpn_hidden_states.{}", ports.size() - 1), level);
    return ports;
  }

  Ports Embeddings() {
    if (const auto* tower = std::get_if<SamEncoderConfig>(&config_.tower))
      return {{EmbeddingName(0), SamEmbeddings(b_, layers_, *tower, Pixels())}};
    std::vector<Value*> maps = Pyramid(Maps());
    for (size_t i = 0; i < maps.size(); ++i) {
      const Shape wanted = EmbeddingShape(i);
      if (Height(maps[i]) != wanted[2].constant() || Width(maps[i]) != wanted[3].constant())
        throw Error("bad-file", "map {} has {} x {} places, and the decoder takes {} x {}", i,
                    Height(maps[i]), Width(maps[i]), wanted[2].constant(), wanted[3].constant());
    }
    const int64_t channels = config_.decoder.channels;
    b_.SetName("details");
    maps[0] = layers_.Convolution("detail.0", maps[0], channels / 8, {});
    maps[1] = layers_.Convolution("detail.1", maps[1], channels / 4, {});
    // Pictures alone have no memory of those before them.
    Value* none = layers_.Needed("no_memory", {1, 1, channels});
    maps[2] = Binary(b_, "add", maps[2], WithShape(b_, none, {1, channels, 1, 1}));
    Ports ports;
    for (size_t i = 0; i < maps.size(); ++i) ports.emplace_back(EmbeddingName(i), maps[i]);
    return ports;
  }

  // Adds inputs for the embeddings.
  std::vector<Value*> GivenEmbeddings() {
    std::vector<Value*> maps;
    for (size_t i = 0; i < (config_.decoder.second ? kLevels : 1); ++i)
      maps.push_back(AddArray(EmbeddingName(i), DType::kFp32, EmbeddingShape(i)));
    return maps;
  }

  SamPrompt Points() {
    const Symbol& sizes = config_.points;
    const Dim count = sizes.low == sizes.high ? Dim(sizes.low)
                                              : Dim::Symbol(function_.FreshSymbol("points", sizes));
    SamPrompt prompt;
    prompt.points = AddArray("input_points", DType::kFp32, {1, 1, count, 2});
    prompt.labels = AddArray("input_labels", DType::kInt32, {1, 1, count});
    return prompt;
  }
  SamPrompt Box() {
    SamPrompt prompt;
    prompt.boxes = AddArray("input_boxes", DType::kFp32, {1, 1, 4});
    return prompt;
  }

  Ports Masks(const std::vector<Value*>& maps, const SamPrompt& prompt) {
    const SamMasks made = DecodeMasks(b_, layers_, config_.decoder, maps, prompt);
    Ports ports = {{kScores, made.scores}, {kMasks, made.masks}};
    if (made.object) ports.emplace_back(kObject, made.object);
    return ports;
  }

  void SetOutputs(const Ports& ports) {
    std::vector<Value*> values;
    for (const auto& [name, value] : ports) {
      AddOutput(function_, value, name.c_str());
      values.push_back(value);
    }
    function_.body.SetOutputs(values);
  }

  static constexpr size_t kLevels = 3;

 private:
  std::vector<Value*> Maps() {
    if (const auto* hiera = std::get_if<HieraConfig>(&config_.tower))
      return HieraMaps(b_, layers_, *hiera, Pixels());
    return RepVitMaps(b_, layers_, std::get<RepVitConfig>(config_.tower), Pixels());
  }

  // Returns the maps that remain from the finest to the coarsest one.
  std::vector<Value*> Pyramid(const std::vector<Value*>& maps) {
    const SamPyramid& pyramid = config_.pyramid;
    b_.SetName("pyramid");
    std::vector<Value*> levels;  // from the coarsest one on
    for (size_t i = maps.size(); i-- > 0;) {
      const size_t number = maps.size() - 1 - i;
      Value* level = layers_.Convolution(fmt::format("pyramid.{}", number), maps[i],
                                         config_.decoder.channels, {.kernel = pyramid.kernel});
      if (number > 0 && std::ranges::count(pyramid.top_down, static_cast<int64_t>(i)) > 0) {
        if (Height(level) != 2 * Height(levels.back()) || Width(level) != 2 * Width(levels.back()))
          throw Error("bad-file", "a map of {} x {} places is not half of one of {} x {}",
                      Height(levels.back()), Width(levels.back()), Height(level), Width(level))
              .Expected("a picture whose size can be halved for each stage");
        Value* larger = b_.Make(
            "upsample_nearest_neighbor",
            {{"x", levels.back()}, {"scale_factor_height", 2.0}, {"scale_factor_width", 2.0}});
        level = Binary(b_, "add", level, larger);
      }
      levels.push_back(level);
    }
    levels.erase(levels.begin(), levels.end() - pyramid.levels);
    std::ranges::reverse(levels);
    return levels;
  }

  std::string EmbeddingName(size_t level) const {
    return config_.decoder.second ? fmt::format("image_embeddings.{}", level) : "image_embeddings";
  }
  Shape EmbeddingShape(size_t level) const {
    const GridSize size = config_.picture.size;
    const int64_t channels = config_.decoder.channels;
    const int64_t finer = config_.decoder.second ? int64_t{4} >> level : 1;
    return {1, finer == 1 ? channels : channels / (2 * finer), size.height / config_.patch * finer,
            size.width / config_.patch * finer};
  }

  Value* AddArray(const std::string& name, DType dtype, const Shape& shape) {
    Value* value = function_.AddInput(name, Type::Tensor(dtype, shape));
    function_.inputs.push_back(
        {.name = value->name, .source_name = name, .source_dtype = dtype, .source_shape = shape});
    return value;
  }

  Function& function_;
  Builder b_;
  Layers layers_;
  const SamConfig& config_;
};

void CheckTower(const SamConfig& config) {
  if (const auto* tower = std::get_if<SamEncoderConfig>(&config.tower))
    return CheckSamEncoder(*tower);
  const auto* hiera = std::get_if<HieraConfig>(&config.tower);
  if (hiera) CheckHiera(*hiera);
  if (const auto* repvit = std::get_if<RepVitConfig>(&config.tower)) CheckRepVit(*repvit);
  const size_t stages =
      hiera ? hiera->depths.size() : std::get<RepVitConfig>(config.tower).depths.size();
  const SamPyramid& pyramid = config.pyramid;
  constexpr int64_t kMaxKernel = 63;
  if (pyramid.kernel < 1 || pyramid.kernel % 2 == 0 || pyramid.kernel > kMaxKernel)
    throw Error("bad-file", "the pyramid has kernels of {0} x {0}", pyramid.kernel)
        .Expected("an odd number up to {}", kMaxKernel);
  if (pyramid.levels < 1 || pyramid.levels > static_cast<int64_t>(stages) ||
      (!config.tower_only && pyramid.levels != static_cast<int64_t>(SamFunction::kLevels)))
    throw Error("bad-file", "{} of the maps of {} stages remain", pyramid.levels, stages)
        .Expected("{}", SamFunction::kLevels);
}

void CheckSam(const SamConfig& config) {
  CheckPositive({{"number of pixels of an embedding", config.patch},
                 {"height of a picture", config.picture.size.height},
                 {"width of a picture", config.picture.size.width},
                 {"number of channels of a picture", config.picture.channels},
                 {"number of channels", config.decoder.channels}});
  CheckTower(config);
  constexpr int64_t kMaxSide = 1 << 13, kMaxTokens = 1 << 14;
  const GridSize size = config.picture.size;
  if (size.height > kMaxSide || size.width > kMaxSide)
    throw Error("resource-limit", "pictures have {} x {} pixels", size.height, size.width)
        .Expected("at most {0} x {0}", kMaxSide);
  if (size.height % config.patch != 0 || size.width % config.patch != 0)
    throw Error("bad-file", "pictures of {} x {} pixels do not consist of patches of {} x {}",
                size.height, size.width, config.patch, config.patch);
  if (const int64_t count = size.height / config.patch * (size.width / config.patch);
      count > kMaxTokens)
    throw Error("resource-limit", "a picture has {} patches", count)
        .Expected("at most {}", kMaxTokens);
  if (!config.tower_only) CheckSamDecoder(config.decoder);
}

}  // namespace

Program BuildSam(const SamConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics) {
  CheckSam(config);
  Program program(&Ops());
  auto add = [&](const char* name, auto&& ports) {
    Function& function = *program.Add(name);
    function.opset = Opset::kIos18;
    SamFunction made(function, diagnostics, weights, config);
    made.SetOutputs(ports(made));
  };
  auto values = [](const Ports& ports) {
    std::vector<Value*> values;
    for (const auto& [name, value] : ports) values.push_back(value);
    return values;
  };
  const bool encodes_only =
      !config.outputs.empty() && std::ranges::all_of(config.outputs, [](const std::string& name) {
        return name.starts_with("image_embeddings");
      });
  add("main", [&](SamFunction& made) {
    if (config.tower_only) return made.Tower();
    Ports embeddings = made.Embeddings();
    if (encodes_only) return embeddings;
    Ports ports = made.Masks(values(embeddings), made.Points());
    if (!config.outputs.empty()) std::ranges::move(embeddings, std::back_inserter(ports));
    return ports;
  });
  if (config.tower_only || !config.outputs.empty()) return program;
  add("encode", [&](SamFunction& made) { return made.Embeddings(); });
  add("decode", [&](SamFunction& made) {
    const std::vector<Value*> maps = made.GivenEmbeddings();
    return made.Masks(maps, made.Points());
  });
  add("decode_box", [&](SamFunction& made) {
    const std::vector<Value*> maps = made.GivenEmbeddings();
    return made.Masks(maps, made.Box());
  });
  return program;
}

}  // namespace mlc::networks
