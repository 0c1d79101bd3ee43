#include "frontends/gguf/mmproj.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "frontends/gguf/gguf_model.h"
#include "lib/ir/concat_slice.h"
#include "lib/networks/check_weights.h"
#include "lib/networks/vision_language.h"

namespace fs = std::filesystem;

namespace mlc::gguf {

namespace {

using networks::Activation;
using networks::GridSize;
using networks::Resizing;
using networks::VisionLanguageConfig;
using Projector = VisionLanguageConfig::Projector;

enum class Tower : uint8_t { kClip, kSiglip, kSiglip2, kIntern, kQwen2, kQwen25, kQwen3 };

struct ProjectorName {
  std::string_view ours, theirs;
};
// Follow clip.cpp, load_tensors.
constexpr ProjectorName kLlavaNames[] = {{"projector.1", "mm.0"}, {"projector.2", "mm.2"}};
constexpr ProjectorName kIdeficsNames[] = {{"projector.1", "mm.model.fc"}};
constexpr ProjectorName kGemmaNames[] = {{"projector.norm", "mm.soft_emb_norm"},
                                         {"projector.1", "mm.input_projection"}};
constexpr ProjectorName kInternNames[] = {{"projector.norm", "mm.model.mlp.0"},
                                          {"projector.1", "mm.model.mlp.1"},
                                          {"projector.2", "mm.model.mlp.3"}};
constexpr ProjectorName kLfmNames[] = {
    {"projector.norm", "mm.input_norm"}, {"projector.1", "mm.1"}, {"projector.2", "mm.2"}};
constexpr ProjectorName kQwenNames[] = {
    {"projector.norm", "v.post_ln"}, {"projector.1", "mm.0"}, {"projector.2", "mm.2"}};

// The spellings of the token that stands for a row of a picture. llama.cpp needs none.
constexpr std::string_view kQwenTokens[] = {"<|image_pad|>"};
constexpr std::string_view kImageTokens[] = {"<image>"};
constexpr std::string_view kGemmaTokens[] = {"<image_soft_token>"};
constexpr std::string_view kInternTokens[] = {"<IMG_CONTEXT>"};

struct ProjectorRow {
  std::string_view type;  // clip.projector_type
  Tower tower;
  Projector projector = Projector::kTwoLayers;
  std::span<const ProjectorName> names;
  std::span<const std::string_view> tokens;
  std::string_view placeholder;
  // Members of PictureText (tools/driver/picture_text.h) besides the placeholder. Follow mtmd.cpp.
  std::string_view text;
  bool joined_norm = false;      // squares are normalised, with the epsilon of torch's LayerNorm
  bool swaps_old_files = false;  // which have the two feed-forward matrices under each other's name
};
constexpr std::string_view kQwenText =
    R"("inserted": "<|vision_start|><|image_pad|><|vision_end|>")";
constexpr ProjectorRow kRows[] = {
    {.type = "gemma3",
     .tower = Tower::kSiglip,
     .projector = Projector::kPooled,
     .names = kGemmaNames,
     .tokens = kGemmaTokens,
     .placeholder = "<start_of_image>",
     .text = R"("picture": "\n\n<start_of_image>{image}<end_of_image>\n\n")",
     .swaps_old_files = true},
    {.type = "idefics3",
     .tower = Tower::kSiglip,
     .projector = Projector::kOneLayer,
     .names = kIdeficsNames,
     .tokens = kImageTokens,
     .placeholder = "<image>",
     .text = R"("picture": "<fake_token_around_image><global-img>{image}<fake_token_around_image>",
       "tiled": "{tiles}\n<fake_token_around_image><global-img>{image}<fake_token_around_image>",
       "tile": "<fake_token_around_image><row_{row}_col_{column}>{image}", "end_of_row": "\n")",
     .swaps_old_files = true},
    {.type = "internvl",
     .tower = Tower::kIntern,
     .names = kInternNames,
     .tokens = kInternTokens,
     .placeholder = "<IMG_CONTEXT>",
     .text = R"("inserted": "<IMG_CONTEXT>\n", "picture": "<img>{image}</img>",
       "tiled": "<img>{tiles}{image}</img>", "tile": "{image}")",
     .joined_norm = true},
    {.type = "lfm2",
     .tower = Tower::kSiglip2,
     .names = kLfmNames,
     .tokens = kImageTokens,
     .placeholder = "<image>",
     .text = R"("picture": "<|image_start|>{image}<|image_end|>")",
     .joined_norm = true},
    {.type = "mlp",
     .tower = Tower::kClip,
     .names = kLlavaNames,
     .tokens = kImageTokens,
     .placeholder = "<image>",
     .text = R"("inserted": "<image>\n")",
     .swaps_old_files = true},
    {.type = "qwen2.5vl_merger",
     .tower = Tower::kQwen25,
     .names = kQwenNames,
     .tokens = kQwenTokens,
     .placeholder = "<|image_pad|>",
     .text = kQwenText,
     .swaps_old_files = true},
    {.type = "qwen2vl_merger",
     .tower = Tower::kQwen2,
     .names = kQwenNames,
     .tokens = kQwenTokens,
     .placeholder = "<|image_pad|>",
     .text = kQwenText,
     .swaps_old_files = true},
    {.type = "qwen3vl_merger",
     .tower = Tower::kQwen3,
     .names = kQwenNames,
     .tokens = kQwenTokens,
     .placeholder = "<|image_pad|>",
     .text = kQwenText},
};

struct LayerName {
  std::string_view ours, theirs;
};
constexpr LayerName kLayerNames[] = {
    {"attention_norm", "ln1"}, {"query", "attn_q"},      {"key", "attn_k"}, {"value", "attn_v"},
    {"qkv", "attn_qkv"},       {"norm", "ln2"},          {"up", "ffn_up"},  {"down", "ffn_down"},
    {"gate", "ffn_gate"},      {"attention", "attn_out"}};
constexpr LayerName kTowerNames[] = {
    {"vision.patches.weight", "v.patch_embd.weight"},
    {"vision.patches.bias", "v.patch_embd.bias"},
    {"vision.class_token", "v.class_embd"},
    {"vision.positions", "v.position_embd.weight"},
    {"vision.embeddings_norm.weight", "v.pre_ln.weight"},
    {"vision.embeddings_norm.bias", "v.pre_ln.bias"},
    {"vision.norm.weight", "v.post_ln.weight"},
    {"vision.norm.bias", "v.post_ln.bias"},
};

// Splits "vision.layer.12.up.weight" behind the beginning: "12", "up", ".weight".
struct NameParts {
  std::string number, name, end;
};
std::optional<NameParts> PartsAfter(std::string_view beginning, const std::string& ours) {
  if (!ours.starts_with(beginning)) return std::nullopt;
  const size_t first = beginning.size(), dot = ours.find('.', first);
  if (dot == std::string::npos) return std::nullopt;
  const size_t end = std::min(ours.find('.', dot + 1), ours.size());
  return NameParts{ours.substr(first, dot - first), ours.substr(dot + 1, end - dot - 1),
                   ours.substr(end)};
}

// Reads one file for one language model.
class Reader : GgufModel {
 public:
  Reader(const GgufFile& file, const ProjectorRow& row, const ImportOptions& options,
         Diagnostics& diagnostics)
      : GgufModel(file, options, diagnostics), row_(row) {}

  VisionLanguageConfig Run(Program& program, int64_t text_width) {
    ReadTower();
    ReadProjector(text_width);
    ReadPicture();
    networks::CheckVisionLanguage(config_);
    const networks::NetworkWeights weights{
        .find = [this](const std::string& ours) { return Find(ours); },
        .name = [this](const std::string& ours) { return NameOf(ours); }};
    networks::AddVision(program, config_, weights, diagnostics_);
    TakeLeftOvers();
    for (const char* key :
         {"projector_type", "vision.projector_type", "has_vision_encoder", "has_audio_encoder",
          "has_text_encoder", "has_llava_projector", "vision.projection_dim",
          "vision.preproc_image_size", "vision.image_min_pixels", "vision.image_max_pixels"})
      Key(key);
    CheckAllTaken();
    return config_;
  }

 private:
  bool qwen() const { return row_.tower >= Tower::kQwen2; }
  bool HasTensor(const std::string& name) const { return file().FindTensor(name) != nullptr; }

  GridSize Square(std::string_view key) const {
    const int64_t side = Int(key);
    return {side, side};
  }

  Activation ActivationOfTower() const {
    const bool gelu = Bool("use_gelu", false), silu = Bool("use_silu", false);
    if (gelu && silu)
      throw Error("bad-file", "both clip.use_gelu and clip.use_silu are true")
          .At({"", "key \"clip.use_gelu\""})
          .Expected("at most one of them");
    return gelu ? Activation::kGeluTanh : silu ? Activation::kSilu : Activation::kQuickGelu;
  }

  void ReadTower() {
    networks::VisionConfig& vision = config_.vision;
    networks::TransformerLayer& layer = vision.layer;
    layer.width = Int("vision.embedding_length");
    layer.heads = Int("vision.attention.head_count");
    layer.epsilon = file().Float(Key("vision.attention.layer_norm_epsilon"));
    layer.activation = ActivationOfTower();
    vision.layers = Int("vision.block_count");
    vision.patch = Square("vision.patch_size");
    vision.picture = vision.trained = Square("vision.image_size");
    // Files of Qwen from older scripts say 0.
    layer.feed_forward = Int("vision.feed_forward_length");
    if (const GgufTensor* up = file().FindTensor("v.blk.0.ffn_up.weight"); up && Plain(*up))
      layer.feed_forward = Swapped(0) ? up->dims[1] : up->dims[0];
    layer.query_bias = layer.key_bias = layer.value_bias = layer.output_bias = layer.up_bias =
        false;
    layer.gated = HasTensor("v.blk.0.ffn_gate.weight");
    vision.class_token = HasTensor("v.class_embd");
    vision.patch_bias = HasTensor("v.patch_embd.bias");
    vision.position_table = HasTensor("v.position_embd.weight");
    vision.embeddings_norm = HasTensor("v.pre_ln.weight");
    config_.states = {vision.layers};
    config_.normed = HasTensor("v.post_ln.weight") && !qwen();
    if (row_.tower == Tower::kClip) ReadFeatureLayers();
    if (row_.tower == Tower::kSiglip2) {
      ReadTrainedGrid();
      vision.resizing = Resizing::kBilinearAntialias;
    }
    // clip.cpp, build_internvl: the largest model has other norms.
    if (row_.tower == Tower::kIntern && layer.width == 3200 && vision.layers == 45)
      throw Error("unsupported-architecture",
                  "towers with RMSNorm (InternViT 6B) are not supported")
          .At({"", "key \"clip.vision.block_count\""});
    if (qwen()) ReadQwenTower();
  }
  static bool Plain(const GgufTensor& tensor) { return tensor.dims.size() == 2; }

  // Without clip.vision.feature_layer, all layers but the last of the file are computed (clip.cpp,
  // build_llava); 0 is the state before the first layer.
  void ReadFeatureLayers() {
    config_.states = {config_.vision.layers - 1};
    if (!Has("vision.feature_layer")) return;
    config_.states = file().Ints(Key("vision.feature_layer"));
    std::ranges::sort(config_.states);
    if (config_.states.empty() || config_.states.front() < 0 ||
        config_.states.back() > config_.vision.layers)
      throw Error("bad-file", "the projector reads the layers {}, of {}",
                  fmt::join(config_.states, ", "), config_.vision.layers)
          .At({"", "key \"clip.vision.feature_layer\""});
    config_.normed = config_.normed && config_.states.size() == 1;
  }

  // The table may be for another picture than image_size.
  void ReadTrainedGrid() {
    networks::VisionConfig& vision = config_.vision;
    const int64_t rows = RowsOf("v.position_embd.weight", 0);
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(rows))));
    constexpr int64_t kMost = 1 << 14;
    if (side * side != rows || side > kMost || vision.patch.height > kMost)
      throw Error("bad-file", "there are {} positions", rows)
          .At({"", "tensor \"v.position_embd.weight\""})
          .Expected("the square of a number");
    vision.trained = {side * vision.patch.height, side * vision.patch.width};
  }

  void ReadQwenTower() {
    networks::VisionConfig& vision = config_.vision;
    config_.qwen = true;
    config_.epsilon = vision.layer.epsilon;
    config_.square = Int("vision.spatial_merge_size", 2);
    config_.normed_before = true;
    if (row_.tower == Tower::kQwen3) {
      ReadTrainedGrid();
      vision.resizing = Resizing::kBilinearCorners;
      for (int64_t layer = 0; layer < std::clamp<int64_t>(vision.layers, 0, 1 << 10); ++layer)
        if (HasTensor(fmt::format("v.deepstack.{}.fc1.weight", layer)))
          config_.deepstack.push_back(layer + 1);
      Key("vision.is_deepstack_layers");
    }
    if (row_.tower == Tower::kQwen25) {
      config_.rms_norms = true;
      const int64_t pattern = Int("vision.n_wa_pattern"), patch = vision.patch.height,
                    size = Int("vision.window_size", 112);
      if (pattern > 0) {
        for (int64_t layer = pattern - 1; layer < std::min<int64_t>(vision.layers, 1 << 10);
             layer += pattern)
          config_.global_layers.push_back(layer);
        const int64_t unit = std::max<int64_t>(1, config_.square) * std::max<int64_t>(1, patch),
                      side = size / unit * config_.square;
        if (side < 1)
          throw Error("bad-file", "windows have {} pixels", size)
              .At({"", "key \"clip.vision.window_size\""})
              .Expected("at least {}", unit);
        config_.window = {side, side};
      }
    }
    // Pictures of any size are read; this is a square that is not slow.
    constexpr int64_t kUsual = 448;
    const int64_t unit = config_.square * vision.patch.height;
    if (unit >= 1 && unit <= kUsual) {
      const int64_t side = kUsual / unit * unit;
      vision.picture = {side, side};
    }
    if (!vision.position_table) vision.trained = vision.picture;
  }

  void ReadProjector(int64_t text_width) {
    config_.text_width = text_width;
    config_.projector = row_.projector;
    // ggml_gelu, in all projectors.
    config_.activation = Activation::kGeluTanh;
    config_.norm_adds_one = false;
    config_.normed_joined = row_.joined_norm;
    if (row_.joined_norm) config_.epsilon = 1e-5;
    if (row_.projector == Projector::kPooled) {
      config_.square = Int("vision.projector.scale_factor", 4);
      config_.epsilon = config_.vision.layer.epsilon;
    } else if (!qwen() && row_.tower != Tower::kClip) {
      config_.square = Int("vision.projector.scale_factor", row_.tower == Tower::kIntern ? 2 : 1);
    }
    if (Text("vision.mm_patch_merge_type", "flat") != "flat")
      Refuse("vision.mm_patch_merge_type", "pictures in parts of several sizes (LLaVA 1.6)");
    for (const char* name : {"mm.1.weight", "mm.3.weight"})
      if (row_.tower == Tower::kClip && HasTensor(name))
        throw Error("unsupported-architecture", "a projector with norms (Yi-VL) is not supported")
            .At({"", fmt::format("tensor \"{}\"", name)});
  }

  void ReadPicture() {
    networks::PictureInput& picture = config_.picture;
    picture.size = config_.vision.picture;
    for (const auto& [name, dims] : options_.shapes) {
      if (name != picture.name)
        throw Error("bad-name", "option 'shape' {}: the model has no picture of this name", name)
            .Expected(picture.name);
      if (dims.size() != 4 || dims[0] != 1 || dims[1] != 3 || dims[2] < 1 || dims[3] < 1)
        throw Error("input-shape", "option 'shape' {}: the shape is [{}]", name,
                    fmt::join(dims, ", "))
            .Expected("[1, 3, height, width]");
      picture.size = {dims[2], dims[3]};
    }
    config_.vision.picture = picture.size;
    if (qwen() && !config_.vision.position_table) config_.vision.trained = picture.size;
    const std::vector<double> mean = file().Floats(Key("vision.image_mean")),
                              deviation = file().Floats(Key("vision.image_std"));
    if (mean.size() != 3 || deviation.size() != 3 || std::ranges::count(deviation, 0.0) > 0)
      throw Error("bad-file", "the mean of pictures is [{}], their standard deviation [{}]",
                  fmt::join(mean, ", "), fmt::join(deviation, ", "))
          .At({"", "key \"clip.vision.image_std\""})
          .Expected("three numbers each, of which deviations are not 0");
    picture.description = fmt::format(
        "Scale pictures to the size of the input. This model takes pictures of {} x {} pixels.",
        picture.size.height, picture.size.width);
    if (options_.arrays) return;
    ImportOptions::Image image;
    image.scale.clear(), image.bias.clear();
    for (size_t channel = 0; channel < 3; ++channel) {
      image.scale.push_back(static_cast<float>(1 / 255.0 / deviation[channel]));
      image.bias.push_back(static_cast<float>(-mean[channel] / deviation[channel]));
    }
    picture.image = image;
  }

  // Returns whether a layer has the two matrices under each other's name, as old scripts wrote them
  // (clip.cpp, load_tensors, is_ffn_swapped).
  bool Swapped(int64_t layer) const {
    const GgufTensor* down = file().FindTensor(fmt::format("v.blk.{}.ffn_down.weight", layer));
    return row_.swaps_old_files && down && Plain(*down) &&
           down->dims[1] == config_.vision.layer.width;
  }

  std::string NameOf(const std::string& ours) const {
    for (const LayerName& name : kTowerNames)
      if (name.ours == ours) return std::string(name.theirs);
    for (const ProjectorName& name : row_.names)
      if (ours.starts_with(std::string(name.ours) + "."))
        return std::string(name.theirs) + ours.substr(name.ours.size());
    if (const auto parts = PartsAfter("vision.layer.", ours)) {
      const std::string own = "v.blk." + parts->number + ".";
      if (parts->name == "attention_scale") return own + "ls1.weight";
      if (parts->name == "scale") return own + "ls2.weight";
      std::string name = parts->name;
      if ((name == "up" || name == "down") && Swapped(std::stoll(parts->number)))
        name = name == "up" ? "down" : "up";
      for (const LayerName& row : kLayerNames)
        if (row.ours == name) return own + std::string(row.theirs) + parts->end;
    }
    if (const auto parts = PartsAfter("deepstack.", ours)) {
      const int64_t layer = config_.deepstack.at(std::stoul(parts->number)) - 1;
      const std::string name = parts->name == "norm" ? "norm" : "fc" + parts->name;
      return fmt::format("v.deepstack.{}.{}{}", layer, name, parts->end);
    }
    return ours;
  }

  Tensor Find(const std::string& ours) {
    const std::string name = NameOf(ours);
    Tensor tensor = Take(name);
    if (!tensor || ours != "vision.patches.weight" || !qwen() || tensor.rank() != 4) return tensor;
    // The kernels of two frames, which are one tensor in folders.
    Tensor second = Take("v.patch_embd.weight.1");
    if (!second)
      throw Error("missing-tensor", "tensor \"v.patch_embd.weight.1\" is missing")
          .Expected("the kernel of the second frame");
    auto framed = [](const Tensor& kernel) {
      Dims dims = kernel.dims();
      dims.insert(dims.begin() + 2, 1);
      return kernel.Cast(DType::kFp32).Reshaped(dims);
    };
    if (second.dims() != tensor.dims())
      throw Error("bad-tensor", "the kernels of two frames have different shapes")
          .At({"", "tensor \"v.patch_embd.weight.1\""});
    return Join({framed(tensor), framed(second)}, 2);
  }

  // Layers behind the last that is read, and what LLaVA 1.6 puts between rows.
  void TakeLeftOvers() {
    const int64_t used = std::ranges::max(config_.states);
    for (const GgufTensor& tensor : file().tensors()) {
      const auto parts = PartsAfter("v.blk.", tensor.name);
      const bool behind =
          parts && !parts->number.empty() && parts->number.size() < 9 &&
          std::ranges::all_of(parts->number, [](char c) { return c >= '0' && c <= '9'; }) &&
          std::stoll(parts->number) >= used;
      if (behind || tensor.name == "model.image_newline" ||
          (!config_.normed && !qwen() && tensor.name.starts_with("v.post_ln.")) ||
          tensor.name.starts_with("a.") || tensor.name.starts_with("mm.a."))
        Take(tensor.name);
    }
  }

  const ProjectorRow& row_;
  VisionLanguageConfig config_;
};

std::vector<std::string_view> ProjectorTypes() {
  std::vector<std::string_view> types;
  for (const ProjectorRow& row : kRows) types.push_back(row.type);
  return types;
}

}  // namespace

struct Mmproj::State {
  fs::path path;
  GgufFile file;
  const ProjectorRow* row = nullptr;

  // Calls `work`, whose errors get the path of this file.
  template <class Work>
  void Located(Work work) const try {
    work();
  } catch (Error& error) {
    throw error.At({path.string(), error.location().where});
  }
};

Mmproj::Mmproj(std::unique_ptr<State> state) : state_(std::move(state)) {}
Mmproj::~Mmproj() = default;
Mmproj::Mmproj(Mmproj&&) noexcept = default;

const fs::path& Mmproj::path() const { return state_->path; }

Mmproj Mmproj::Open(const fs::path& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->Located([&] {
    state->file = GgufFile::Open(path);
    const std::string architecture = state->file.String("general.architecture");
    if (architecture != "clip")
      throw Error("bad-file", "option 'mmproj': the architecture of the file is \"{}\"",
                  architecture)
          .Expected("\"clip\", a tower and projector for pictures")
          .Help("pass the language model as MODEL, and its mmproj file with option 'mmproj'");
    if (!state->file.Bool("clip.has_vision_encoder", false))
      throw Error("unsupported-architecture", "the file has no tower for pictures")
          .At({"", "key \"clip.has_vision_encoder\""});
    std::string_view key = "clip.projector_type";
    if (!state->file.Has(key)) key = "clip.vision.projector_type";
    // The first files of LLaVA have no type.
    const std::string type = state->file.String(key, "mlp");
    for (const ProjectorRow& row : kRows)
      if (row.type == type) state->row = &row;
    if (!state->row)
      throw Error("unsupported-architecture", "unsupported projector \"{}\"", type)
          .At({"", fmt::format("key \"{}\"", key)})
          .Expected(fmt::format("{}", fmt::join(ProjectorTypes(), ", ")));
  });
  return Mmproj(std::move(state));
}

void Mmproj::Adapt(networks::DecoderConfig& config) const {
  config.masks_given = state_->row->type == "gemma3";
}

void Mmproj::AddVision(Program& program, const GgufFile& text,
                       const networks::DecoderConfig& config, const ImportOptions& options,
                       Diagnostics& diagnostics) const {
  const ProjectorRow& row = *state_->row;
  state_->Located([&] {
    VisionLanguageConfig made;
    try {
      made = Reader(state_->file, row, options, diagnostics).Run(program, config.width);
    } catch (Error& error) {
      if (error.id() == "bad-tensor")
        error.Note("the language model has {} dimensions per token; the file must belong to it",
                   config.width);
      throw;
    }
    if (std::ssize(made.deepstack) != config.deepstack_layers)
      throw Error("bad-file",
                  "the tower has features for {} layers, but the language model takes {}",
                  made.deepstack.size(), config.deepstack_layers);
    auto& metadata = program.interface.metadata;
    const std::vector<std::string> words = text.Has("tokenizer.ggml.tokens")
                                               ? text.Strings("tokenizer.ggml.tokens")
                                               : std::vector<std::string>();
    // Without a token of its own, that of unknown text stands for a row.
    int64_t token = text.Int("tokenizer.ggml.unknown_token_id", 0);
    for (std::string_view spelling : row.tokens)
      if (const auto found = std::ranges::find(words, spelling); found != words.end())
        token = found - words.begin();
    metadata.emplace_back("mlc.image_token", std::to_string(token));
    metadata.emplace_back("mlc.image_text", fmt::format("{{\"placeholder\": \"{}\", {}}}",
                                                        row.placeholder, row.text));
    if (made.qwen)
      metadata.emplace_back("mlc.image_grid", fmt::format("{},{}", made.token_grid().height,
                                                          made.token_grid().width));
    if (config.masks_given) {
      metadata.emplace_back("mlc.image_mask", "picture");
      if (config.window > 0)
        metadata.emplace_back("mlc.image_window", std::to_string(config.window));
    }
    metadata.emplace_back(fmt::format("mlc.picture.{}", made.picture.name),
                          made.picture.description);
    std::ranges::sort(metadata);
  });
}

fs::path MmprojBeside(const fs::path& model) {
  std::error_code ignored;
  fs::path found;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::absolute(model, ignored).parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".gguf" || name.find("mmproj") == std::string::npos) continue;
    if (!found.empty()) return {};
    found = entry.path();
  }
  return found;
}

}  // namespace mlc::gguf
