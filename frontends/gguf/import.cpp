#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "frontends/gguf/encoders.h"
#include "frontends/gguf/file.h"
#include "frontends/gguf/gguf.h"
#include "frontends/gguf/keys.h"
#include "frontends/gguf/model.h"
#include "frontends/gguf/names.h"
#include "lib/compress/requant.h"
#include "lib/networks/architectures.h"
#include "lib/networks/decoder.h"
#include "lib/networks/encoder_architectures.h"

namespace fs = std::filesystem;

namespace mlc {

namespace {

class Importer : GgufModel {
 public:
  Importer(const GgufFile& file, const ImportOptions& options, Diagnostics& diagnostics)
      : GgufModel(file), options_(options), diagnostics_(diagnostics) {}

  Program Run() {
    row_ = FindGgufArchitecture(architecture());
    if (!row_) throw Unknown();
    if (options_.target && *options_.target < Opset::kIos18)
      throw Error("target-too-old", "a language model keeps what it has seen in states")
          .Expected("iOS18 or later");
    Program program = Build();
    Describe(program, "text-generation");
    return program;
  }

 private:
  Program Build() {
    CheckOthers();
    DecoderConfig config = ReadConfig(*row_);
    DecoderWeights weights{
        .find = [this](Role role, Part part, int64_t layer) { return Find(role, part, layer); },
        .name = [this](Role role, Part part,
                       int64_t layer) { return GgufName(row_->gguf, role, part, layer); }};
    weights.stored = Requantising(options_, diagnostics_);
    const int64_t context = PackagedContext(options_, config.context);
    Program program = BuildDecoder(config, weights, context, diagnostics_);
    for (const GgufTensor& tensor : file().tensors())
      if (GuessesAhead(tensor.name)) Take(tensor.name);
    CheckAllTaken(diagnostics_);
    if (!ignored_.empty())
      diagnostics_.Warn(
          Error("unused-tensor", fmt::format("{} tensors are not used: \"{}\"", ignored_.size(),
                                             fmt::join(ignored_, "\", \"")))
              .Note(fmt::format("llama.cpp loads them for \"{}\", and computes nothing with them",
                                row_->gguf)));
    return program;
  }

  // With what keeps the file from being one of a row that its architecture is near to.
  Error Unknown() const {
    Error unknown = UnknownArchitecture(architecture(), &Architecture::gguf);
    std::string why;
    for (const Architecture* near : NearArchitectures(architecture(), &Architecture::gguf)) {
      Diagnostics unheard;
      Importer trial(file(), options_, unheard);
      trial.row_ = near;
      try {
        trial.Build();
        return unknown.Note(fmt::format(
            "the file has the numbers and tensors of \"{}\"; whether it means the same by "
            "them is not known",
            near->gguf));
      } catch (const Error& error) {
        if (why.empty()) why = fmt::format("read as \"{}\": {}", near->gguf, error.text());
      }
    }
    return unknown.Note(why);
  }

  // Keys by which a model computes something that no row has.
  void CheckOthers() const {
    const bool attends = row_->flags.mixer != Mixer::kMamba && row_->flags.mixer != Mixer::kMamba2;
    if (attends && !Bool("attention.causal", true))
      Refuse("attention.causal", "tokens that see what comes later");
    if (Has("pooling_type") && Int("pooling_type") > 0)
      Refuse("pooling_type", "one embedding for a text, and no logits");
    if (Int("expert_group_count", 0) > 1)
      Refuse("expert_group_count", "experts that are chosen within groups");
    CheckVocabulary();
    if (row_->gguf == "olmo2" && Int("attention.sliding_window", 0) > 0)
      Refuse("attention.sliding_window", "windows, as OLMo 3 has them");
  }

  // llama.cpp refuses a table of tokens of another size, too.
  void CheckVocabulary() const {
    constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
    const int64_t rows = RowsOf(Role::kTokens, 0);
    const GgufValue* list = file().Find(kTokens);
    if (rows == 0 || (!list && !Has("vocab_size"))) return;
    const int64_t words = list ? static_cast<int64_t>(list->count) : Int("vocab_size");
    if (words != rows)
      throw Error("bad-file", fmt::format("{} tokens, and {} embeddings of them", words, rows))
          .At({"", fmt::format("key \"{}\"", list ? std::string(kTokens) : Key("vocab_size"))})
          .Expected("one embedding for each token");
  }

  DecoderConfig ReadConfig(const Architecture& row) const {
    DecoderConfig config = row.flags;
    // Layers behind those of the model guess tokens ahead, and change no logits.
    const int64_t blocks = Int("block_count"), ahead = Int("nextn_predict_layers", 0);
    if (ahead < 0 || ahead > std::max<int64_t>(blocks, 0))
      throw Error("bad-file", fmt::format("{} of {} layers guess tokens ahead", ahead, blocks))
          .At({"", fmt::format("key \"{}\"", Key("nextn_predict_layers"))});
    config.layers = blocks - ahead;
    config.width = Int("embedding_length");
    config.context = Int("context_length");
    config.heads = OfAllLayers("attention.head_count", 0);
    config.key_heads = ReadKeyHeads(config);
    config.head = Int("attention.key_length", config.heads > 0 ? config.width / config.heads : 0);
    config.value_head = Int("attention.value_length", config.head);
    config.feed_forward = OfAllLayers("feed_forward_length", 0);
    config.vocabulary = RowsOf(Role::kTokens, 0);
    if (config.vocabulary == 0) config.vocabulary = Int("vocab_size");
    config.epsilon =
        file().Float(Key(config.norm == NormKind::kRms ? "attention.layer_norm_rms_epsilon"
                                                       : "attention.layer_norm_epsilon"));
    config.experts = Int("expert_count", 0);
    config.experts_used = Int("expert_used_count", 0);
    config.expert_feed_forward =
        OwnInt("expert_feed_forward_length", RowsOf(Role::kExpertUps, config.feed_forward));
    config.shared_feed_forward =
        OwnInt("expert_shared_feed_forward_length", RowsOf(Role::kSharedUp, 0));
    ReadWindow(config);
    config.attention_cap = Cap("attn_logit_softcapping", config.attention_cap);
    config.logit_cap = Cap("final_logit_softcapping", config.logit_cap);
    config.attention_scale = OwnFloat("attention.scale", 0);
    if (row.even_scale_layers > 0 && row.even_scale_layers == config.layers && config.heads > 0)
      config.attention_scale = 1 / std::sqrt(static_cast<double>(config.width / config.heads));
    config.embedding_scale = Scale("embedding_scale");
    config.residual_scale = Scale("residual_scale");
    config.logit_scale = config.divided_logits ? OwnFloat("logit_scale", 1) : Scale("logit_scale");
    config.parallel = OwnBool("use_parallel_residual", config.parallel);
    if (config.mixer != Mixer::kAttention) ReadMixer(config);
    ReadRotary(config);
    CheckWindowed(config);
    return config;
  }

  // What a key says that architectures may ignore; `otherwise` where this one does, or the key is
  // missing. Error "bad-file" where llama.cpp requires it.
  KeyUse Use(std::string_view key) const { return UseOfKey(row_->gguf, key); }
  bool Reads(std::string_view key) const {
    return Use(key) == KeyUse::kRequired || (Use(key) == KeyUse::kOptional && Has(key));
  }
  int64_t OwnInt(std::string_view key, int64_t otherwise) const {
    return Reads(key) ? Int(key) : otherwise;
  }
  double OwnFloat(std::string_view key, double otherwise) const {
    return Reads(key) ? file().Float(Key(key)) : otherwise;
  }
  bool OwnBool(std::string_view key, bool otherwise) const {
    return Reads(key) ? file().Bool(Key(key)) : otherwise;
  }
  // 0 means that there is none.
  double Scale(std::string_view key) const {
    const double scale = OwnFloat(key, 1);
    return scale == 0 ? 1 : scale;
  }
  // Architectures that always have a cap divide by it.
  double Cap(std::string_view key, double otherwise) const {
    const double cap = OwnFloat(key, otherwise);
    if (otherwise > 0 && cap == 0) NotPositive(key);
    return cap;
  }
  [[noreturn]] void NotPositive(std::string_view key) const {
    throw Error("bad-file", fmt::format("key \"{}\" is 0", Key(key))).Expected("a positive number");
  }

  // What a tensor of the first layer says, where no key does; `otherwise` where it is not there.
  int64_t RowsOf(Role role, int64_t otherwise) const {
    if (UseOfTensor(row_->gguf, role, Part::kWeight) == TensorUse::kUnknown) return otherwise;
    return GgufModel::RowsOf(GgufName(row_->gguf, role, Part::kWeight, 0), otherwise);
  }

  // LFM2's layers without attention are those that have no heads of keys.
  int64_t ReadKeyHeads(DecoderConfig& config) const {
    constexpr std::string_view kKey = "attention.head_count_kv";
    if (config.mixer != Mixer::kShortConvolution) return OfAllLayers(kKey, config.heads);
    std::vector<int64_t> each = file().Ints(Key(kKey)), some;
    for (int64_t one : each)
      if (one != 0) some.push_back(one);
    if (file().Find(Key(kKey))->type != GgufType::kArray)
      config.attention_every = some.empty() ? 0 : 1;
    else
      for (int64_t one : each) config.attends.push_back(one != 0);
    return some.empty() ? 0 : OneOf(kKey, some);
  }

  void ReadWindow(DecoderConfig& config) const {
    constexpr std::string_view kWindow = "attention.sliding_window",
                               kKey = "attention.sliding_window_pattern";
    const int64_t usual = config.window;
    config.window = 0;
    if (Use(kWindow) == KeyUse::kIgnored) return;
    if (row_->windowed_layers > 0 && row_->windowed_layers != config.layers) return;
    config.window = OwnInt(kWindow, usual);
    // Where there is always a window, one of 0 keys makes all scores NaN.
    if (config.window == 0 && (usual > 0 || Use(kWindow) == KeyUse::kRequired))
      NotPositive(kWindow);
    if (!Reads(kKey)) return;
    if (file().Find(Key(kKey))->type != GgufType::kArray) {
      config.global_every = Int(kKey);
      // In a row with both, layers turn that have a window.
      if (config.no_rotary_every > 0) config.no_rotary_every = config.global_every;
      return;
    }
    const std::vector<bool> windowed = file().Bools(Key(kKey));
    for (size_t layer = 0; layer < windowed.size(); ++layer)
      if (config.window > 0 && windowed[layer] != config.windowed(static_cast<int64_t>(layer)))
        throw Error("unsupported-architecture",
                    fmt::format("layer {} has {} window, which the pattern of the architecture "
                                "does not say",
                                layer, windowed[layer] ? "a" : "no"))
            .At({"", fmt::format("key \"{}\"", Key(kKey))});
  }

  // Layers with windows have heads of the same size as others.
  void CheckWindowed(const DecoderConfig& config) const {
    if (config.window == 0) return;
    for (auto [key, size] : {std::pair{"attention.key_length_swa", config.head},
                             {"attention.value_length_swa", config.value_head},
                             {"rope.dimension_count_swa", config.rotary.size}})
      if (Int(key, size) != size) Refuse(key, "other heads in layers with windows");
  }

  void ReadMixer(DecoderConfig& config) const {
    MixerSizes& sizes = config.recurrent;
    if (config.mixer == Mixer::kShortConvolution) {
      sizes.taps = Int("shortconv.l_cache");
      return;
    }
    sizes.taps = Int("ssm.conv_kernel");
    sizes.inner = Int("ssm.inner_size");
    sizes.state = Int("ssm.state_size");
    if (config.mixer == Mixer::kMamba) {
      sizes.rank = Int("ssm.time_step_rank");
      sizes.normalised_selection = Bool("ssm.dt_b_c_rms", false);
      return;
    }
    sizes.heads = Int("ssm.time_step_rank");
    sizes.groups = Int("ssm.group_count");
    if (config.attention_every > 0) {
      config.attention_every = Int("full_attention_interval", config.attention_every);
      if (config.attention_every < 1)
        throw Error("bad-file", fmt::format("key \"{}\" is {}", Key("full_attention_interval"),
                                            config.attention_every))
            .Expected("1 or more");
      if (Has("attention.recurrent_layers"))
        for (bool recurrent : file().Bools(Key("attention.recurrent_layers")))
          config.attends.push_back(!recurrent);
    }
  }

  void ReadRotary(DecoderConfig& config) const {
    Rotary& rotary = config.rotary;
    constexpr std::string_view kSize = "rope.dimension_count";
    rotary.size = Int(kSize, config.head);
    // llama.cpp, src/llama-model.cpp: "invalid n_rot".
    if ((row_->gguf == "llama" || row_->gguf == "falcon") && rotary.size != config.head)
      throw Error("bad-file",
                  fmt::format("{} of {} elements of a head are rotated", rotary.size, config.head))
          .At({"", fmt::format("key \"{}\"", Key(kSize))})
          .Expected(fmt::format("all of them: \"{}\" has no others", row_->gguf));
    rotary.base = Float("rope.freq_base", rotary.base);
    rotary.used = rotary.used && OwnBool("rope.scaling.finetuned", true);
    if (config.mixer == Mixer::kDeltaNet) CheckSections(rotary.size / 2);
    rotary.original_context = Int("rope.scaling.original_context_length", config.context);
    // As llama.cpp has it, a factor without a type is linear, 0 is none, and that of longrope divides
    // all frequencies beside the factors of the tensors.
    const std::string scaling = Text("rope.scaling.type", "linear");
    rotary.factor = Float("rope.scaling.factor", Float("rope.scale_linear", 0));
    if (rotary.factor == 0) rotary.factor = 1;
    if (!(rotary.factor > 0))
      throw Error("bad-file",
                  fmt::format("key \"{}\" is {}", Key("rope.scaling.factor"), rotary.factor));
    rotary.magnitude = Float("rope.scaling.attn_factor", 1);
    double yarn = 1;  // the part of the magnitude that layers which are not scaled do not have
    if (scaling == "linear" || scaling == "longrope") {
      rotary.scaling = RotaryScaling::kLinear;
    } else if (scaling == "yarn") {
      rotary.scaling = RotaryScaling::kYarn;
      // YaRN, section 3.4: sqrt(1 / t) = 0.1 ln s + 1. llama.cpp divides by it again where s < 1
      // (src/llama-context.cpp).
      yarn = 1 + 0.1 * std::log(rotary.factor);
      if (rotary.factor > 1) rotary.magnitude *= yarn;
    } else if (scaling != "none") {
      throw Error("unsupported-architecture",
                  fmt::format("rotary embedding is scaled by \"{}\"", scaling))
          .At({"", fmt::format("key \"{}\"", Key("rope.scaling.type"))})
          .Expected("none, linear, yarn or longrope");
    }
    ReadLocalRotary(rotary, yarn);
  }

  // Of layers with windows. They are not scaled in rows with a base of their own; in others they are,
  // even where the type is "none" (llama.cpp, src/llama-model.cpp, get_rope_freq_scale).
  void ReadLocalRotary(Rotary& rotary, double yarn) const {
    constexpr std::string_view kKey = "rope.freq_base_swa";
    if (Use(kKey) == KeyUse::kIgnored) return;
    if (rotary.local_base > 0) {
      rotary.local_magnitude = rotary.magnitude / yarn;
    } else {
      rotary.local_base = rotary.base;
      rotary.local_magnitude = rotary.magnitude;
      rotary.local_scaling =
          rotary.scaling == RotaryScaling::kNone ? RotaryScaling::kLinear : rotary.scaling;
    }
    rotary.local_base = OwnFloat(kKey, rotary.local_base);
  }

  // In a text, the places of a token in time, height and width are the same, so that sections for
  // these do not differ; pairs in none of them have a fourth place, which it has not.
  void CheckSections(int64_t pairs) const {
    constexpr std::string_view kKey = "rope.dimension_sections";
    const std::vector<int64_t> sections = file().Ints(Key(kKey));
    int64_t size = 0;
    for (int64_t section : sections) size += std::clamp<int64_t>(section, 0, INT32_MAX);
    for (int64_t pair = 0; pair < std::min(pairs, size == 0 ? 1 : size); ++pair)
      if (sections.size() != 4 || pair / 3 >= sections[pair % 3])
        throw Error("unsupported-architecture",
                    fmt::format("pair {} of rotary embedding is in no section of {}", pair,
                                fmt::join(sections, ", ")))
            .At({"", fmt::format("key \"{}\"", Key(kKey))})
            .Expected("time, height and width by turns, for all pairs");
  }

  Tensor Find(Role role, Part part, int64_t layer) {
    const TensorUse use = UseOfTensor(row_->gguf, role, part);
    if (use == TensorUse::kUnknown || (IsOfLongRope(role) && !HasLongRope())) return {};
    const std::string name = GgufName(row_->gguf, role, part, layer);
    Tensor tensor = Take(name);
    if (!tensor && use == TensorUse::kRequired)
      throw Error("missing-tensor", fmt::format("there is no tensor \"{}\"", name))
          .Expected(fmt::format("it, as llama.cpp requires it of \"{}\"", row_->gguf));
    if (use != TensorUse::kIgnored) return tensor;
    if (tensor) ignored_.insert(name);
    return {};
  }

  static bool IsOfLongRope(Role role) {
    return role == Role::kRotaryLongFactors || role == Role::kRotaryShortFactors;
  }
  // Phi-3 needs no key to have them.
  bool HasLongRope() const {
    return row_->gguf == "phi3" || Text("rope.scaling.type", "") == "longrope";
  }

  // Whether the tensor is of a layer behind those of the model.
  bool GuessesAhead(std::string_view name) const {
    constexpr std::string_view kLayer = "blk.";
    const int64_t blocks = Int("block_count"), ahead = Int("nextn_predict_layers", 0);
    int64_t layer = -1;
    if (name.starts_with(kLayer))
      std::from_chars(name.data() + kLayer.size(), name.data() + name.size(), layer);
    return layer >= blocks - ahead && layer < blocks;
  }

  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  const Architecture* row_ = nullptr;
  std::set<std::string> ignored_;  // tensors that were found and have no effect
};

}  // namespace

Program ImportGguf(const fs::path& path, const ImportOptions& options, Diagnostics& diagnostics,
                   SourceFacts* facts) {
  try {
    GgufFile file = GgufFile::Open(path);
    if (facts)
      for (const auto& part : file.files()) facts->Add(path, part->path());
    if (FindGgufEncoder(file.String("general.architecture")))
      return ImportGgufEncoder(file, options, diagnostics);
    return Importer(file, options, diagnostics).Run();
  } catch (Error& error) {
    throw error.At({path.string(), error.location().where});
  }
}

}  // namespace mlc
