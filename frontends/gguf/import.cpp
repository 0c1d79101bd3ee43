#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "frontends/gguf/adapter.h"
#include "frontends/gguf/decoder_rows.h"
#include "frontends/gguf/encoders.h"
#include "frontends/gguf/file.h"
#include "frontends/gguf/gguf.h"
#include "frontends/gguf/gguf_model.h"
#include "frontends/gguf/mmproj.h"
#include "frontends/gguf/required_keys_and_tensors.h"
#include "lib/networks/architectures.h"
#include "lib/networks/decoder.h"
#include "lib/support/edit_distance.h"

namespace fs = std::filesystem;

namespace mlc::gguf {

namespace {

class Importer : GgufModel {
 public:
  using GgufModel::GgufModel;
  void Add(const Mmproj* mmproj) { mmproj_ = mmproj; }

  Program Run() {
    row_ = FindGgufDecoder(architecture());
    if (!row_) throw Unknown();
    if (options_.target && *options_.target < Opset::kIos18)
      throw Error("target-too-old", "language models keep their cache in states")
          .Expected("iOS18 or later");
    Program program = Build();
    Describe(program, "text-generation");
    if (mmproj_) mmproj_->AddVision(program, file(), config_, options_, diagnostics_);
    return program;
  }

 private:
  Program Build() {
    CheckOthers();
    networks::DecoderConfig config = ReadConfig();
    if (mmproj_) mmproj_->Adapt(config);
    networks::DecoderWeights weights{
        .find = [this](networks::Role role, networks::Part part,
                       int64_t layer) { return Find(role, part, layer); },
        .name = [this](networks::Role role, networks::Part part,
                       int64_t layer) { return GgufName(row_->name, role, part, layer); }};
    const networks::DecoderSizes sizes = networks::PackagedSizes(options_, config);
    Program program = networks::BuildDecoder(config, weights, sizes, diagnostics_);
    if (mmproj_) networks::AddEmbedsFunctions(program, config, weights, sizes, diagnostics_);
    for (const GgufTensor& tensor : file().tensors())
      if (IsInPredictionLayer(tensor.name)) Take(tensor.name);
    CheckAllTaken();
    if (!ignored_.empty())
      diagnostics_.Warn(
          Error("unused-tensor", "unused tensors ({}): \"{}\"", ignored_.size(),
                fmt::join(ignored_, "\", \""))
              .Note("llama.cpp loads them for \"{}\" but computes nothing with them", row_->name));
    config_ = config;
    return program;
  }

  // Tries to import the file as each architecture with a similar name, and reports the results.
  Error Unknown() const {
    if (architecture() == "clip")
      return Error("usage", "the file is a tower and projector for pictures, not a language model")
          .Help("pass the language model as MODEL, and this file with option 'mmproj'");
    Error unknown = networks::UnsupportedArchitecture(
        architecture(), {{"decoders", GgufDecoderNames()}, {"encoders", GgufEncoderNames()}});
    std::string why;
    for (const std::string& near : NearNames(GgufDecoderNames(), architecture())) {
      Diagnostics discarded;
      Importer trial(file(), options_, discarded);
      trial.row_ = FindGgufDecoder(near);
      try {
        trial.Build();
        return unknown.Note(
            "it has the keys and tensors of a \"{}\" model, but its architecture may "
            "use them differently",
            near);
      } catch (const Error& error) {
        if (why.empty()) why = fmt::format("read as \"{}\": {}", near, error.text());
      }
    }
    return unknown.Note(why);
  }

  // Refuses keys that change the network in ways that are not supported.
  void CheckOthers() const {
    const networks::TokenMixer mixer = networks::DecoderFlags(row_->architecture).token_mixer;
    if (mixer != networks::TokenMixer::kMamba && mixer != networks::TokenMixer::kMamba2 &&
        !Bool("attention.causal", true))
      Refuse("attention.causal", "bidirectional attention");
    if (Has("pooling_type") && Int("pooling_type") > 0)
      Refuse("pooling_type", "pooled embeddings instead of logits");
    if (Int("expert_group_count", 0) > 1)
      Refuse("expert_group_count", "expert selection within groups");
    CheckVocabulary();
    if (row_->name == "olmo2" && Int("attention.sliding_window", 0) > 0)
      Refuse("attention.sliding_window", "sliding windows, as in OLMo 3");
  }

  // llama.cpp also requires one embedding for each token.
  void CheckVocabulary() const {
    constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
    const int64_t rows = RowsOf(networks::Role::kTokens, 0);
    const GgufValue* list = file().Find(kTokens);
    if (rows == 0 || (!list && !Has("vocab_size"))) return;
    const int64_t words = list ? static_cast<int64_t>(list->count) : Int("vocab_size");
    if (words != rows)
      throw Error("bad-file", "the vocabulary has {} tokens, but there are {} token embeddings",
                  words, rows)
          .At({"", fmt::format("key \"{}\"", list ? std::string(kTokens) : Key("vocab_size"))})
          .Expected("one embedding for each token");
  }

  networks::DecoderConfig ReadConfig() const {
    networks::DecoderConfig config = networks::DecoderFlags(row_->architecture);
    config.activation = row_->activation.value_or(config.activation);
    config.parallel_without_norm = row_->parallel_without_norm;
    config.rotary.interleaved = row_->interleaved;
    // The last layers are for multi-token prediction and do not affect the logits.
    const int64_t blocks = Int("block_count"), prediction = Int("nextn_predict_layers", 0);
    if (prediction < 0 || prediction > std::max<int64_t>(blocks, 0))
      throw Error("bad-file", "{} of {} layers are for multi-token prediction", prediction, blocks)
          .At({"", fmt::format("key \"{}\"", Key("nextn_predict_layers"))});
    config.layers = blocks - prediction;
    config.width = Int("embedding_length");
    config.context = Int("context_length");
    config.heads = OfAllLayers("attention.head_count", 0);
    config.kv_heads = ReadKvHeads(config);
    config.head_dim =
        Int("attention.key_length", config.heads > 0 ? config.width / config.heads : 0);
    config.value_head_dim = Int("attention.value_length", config.head_dim);
    config.feed_forward = OfAllLayers("feed_forward_length", 0);
    config.vocabulary = RowsOf(networks::Role::kTokens, 0);
    if (config.vocabulary == 0) config.vocabulary = Int("vocab_size");
    config.epsilon = file().Float(Key(config.norm == networks::NormKind::kRms
                                          ? "attention.layer_norm_rms_epsilon"
                                          : "attention.layer_norm_epsilon"));
    config.experts = Int("expert_count", 0);
    config.experts_used = Int("expert_used_count", 0);
    config.expert_feed_forward = OwnInt("expert_feed_forward_length",
                                        RowsOf(networks::Role::kExpertUps, config.feed_forward));
    config.shared_feed_forward =
        OwnInt("expert_shared_feed_forward_length", RowsOf(networks::Role::kSharedUp, 0));
    ReadWindow(config);
    config.attention_cap = Cap("attn_logit_softcapping", row_->attention_cap);
    config.logit_cap = Cap("final_logit_softcapping", row_->logit_cap);
    config.attention_scale = OwnFloat("attention.scale", 0);
    if (row_->scaled_by_width_layers > 0 && row_->scaled_by_width_layers == config.layers &&
        config.heads > 0)
      config.attention_scale = 1 / std::sqrt(static_cast<double>(config.width / config.heads));
    config.embedding_scale = Scale("embedding_scale");
    config.residual_scale = Scale("residual_scale");
    config.logit_scale = config.divided_logits ? OwnFloat("logit_scale", 1) : Scale("logit_scale");
    config.parallel = OwnBool("use_parallel_residual", config.parallel);
    if (config.token_mixer != networks::TokenMixer::kAttention) ReadTokenMixer(config);
    ReadRotary(config);
    CheckWindowed(config);
    return config;
  }

  // Return the value of a key that only some architectures read; `otherwise` if this one does not,
  // or if the key is missing. Error "bad-file" if llama.cpp requires it.
  Requirement RequirementOf(std::string_view key) const {
    return RequirementOfKey(row_->name, key);
  }
  bool Reads(std::string_view key) const {
    return RequirementOf(key) == Requirement::kRequired ||
           (RequirementOf(key) == Requirement::kOptional && Has(key));
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
  // 0 means 1, as in llama.cpp.
  double Scale(std::string_view key) const {
    const double scale = OwnFloat(key, 1);
    return scale == 0 ? 1 : scale;
  }
  // Architectures whose scores are always capped divide by the cap.
  double Cap(std::string_view key, double otherwise) const {
    const double cap = OwnFloat(key, otherwise);
    if (otherwise > 0 && cap == 0) NotPositive(key);
    return cap;
  }
  [[noreturn]] void NotPositive(std::string_view key) const {
    throw Error("bad-file", "key \"{}\" is 0", Key(key)).Expected("a positive number");
  }

  // Returns the number of rows of a tensor of the first layer; `otherwise` if there is none.
  int64_t RowsOf(networks::Role role, int64_t otherwise) const {
    if (RequirementOfTensor(row_->name, role, networks::Part::kWeight) == Requirement::kForeign)
      return otherwise;
    return GgufModel::RowsOf(GgufName(row_->name, role, networks::Part::kWeight, 0), otherwise);
  }

  // Layers of LFM2 without key/value heads have no attention.
  int64_t ReadKvHeads(networks::DecoderConfig& config) const {
    constexpr std::string_view kKey = "attention.head_count_kv";
    if (config.token_mixer != networks::TokenMixer::kShortConvolution)
      return OfAllLayers(kKey, config.heads);
    std::vector<int64_t> each = file().Ints(Key(kKey)), some;
    for (int64_t one : each)
      if (one != 0) some.push_back(one);
    if (file().Find(Key(kKey))->type != GgufType::kArray)
      config.attention_every = some.empty() ? 0 : 1;
    else
      for (int64_t one : each) config.attends.push_back(one != 0);
    return some.empty() ? 0 : OneOf(kKey, some);
  }

  void ReadWindow(networks::DecoderConfig& config) const {
    constexpr std::string_view kWindow = "attention.sliding_window",
                               kKey = "attention.sliding_window_pattern";
    if (RequirementOf(kWindow) == Requirement::kForeign) return;
    if (row_->windowed_layers > 0 && row_->windowed_layers != config.layers) return;
    config.window = OwnInt(kWindow, row_->window);
    // For architectures that always have windows, a window of 0 keys makes all scores NaN.
    if (config.window == 0 &&
        (row_->window > 0 || RequirementOf(kWindow) == Requirement::kRequired))
      NotPositive(kWindow);
    if (!Reads(kKey)) return;
    if (file().Find(Key(kKey))->type != GgufType::kArray) {
      config.global_every = Int(kKey);
      // If an architecture has both, layers with a window have rotary embedding.
      if (config.no_rotary_every > 0) config.no_rotary_every = config.global_every;
      return;
    }
    const std::vector<bool> windowed = file().Bools(Key(kKey));
    for (size_t layer = 0; layer < windowed.size(); ++layer)
      if (config.window > 0 && windowed[layer] != config.windowed(static_cast<int64_t>(layer)))
        throw Error("unsupported-architecture",
                    "layer {} has {} window, unlike the pattern of the architecture", layer,
                    windowed[layer] ? "a" : "no")
            .At({"", fmt::format("key \"{}\"", Key(kKey))});
  }

  // Refuses head dimensions that differ between layers with and without windows.
  void CheckWindowed(const networks::DecoderConfig& config) const {
    if (config.window == 0) return;
    for (auto [key, size] : {std::pair{"attention.key_length_swa", config.head_dim},
                             {"attention.value_length_swa", config.value_head_dim},
                             {"rope.dimension_count_swa", config.rotary.size}})
      if (Int(key, size) != size) Refuse(key, "a different head dimension in layers with windows");
  }

  void ReadTokenMixer(networks::DecoderConfig& config) const {
    networks::TokenMixerSizes& sizes = config.recurrent;
    if (config.token_mixer == networks::TokenMixer::kShortConvolution) {
      sizes.taps = Int("shortconv.l_cache");
      return;
    }
    sizes.taps = Int("ssm.conv_kernel");
    sizes.inner = Int("ssm.inner_size");
    sizes.state = Int("ssm.state_size");
    if (config.token_mixer == networks::TokenMixer::kMamba) {
      sizes.rank = Int("ssm.time_step_rank");
      sizes.normalised_selection = Bool("ssm.dt_b_c_rms", false);
      return;
    }
    sizes.heads = Int("ssm.time_step_rank");
    sizes.groups = Int("ssm.group_count");
    if (config.attention_every > 0) {
      config.attention_every = Int("full_attention_interval", config.attention_every);
      if (config.attention_every < 1)
        throw Error("bad-file", "key \"{}\" is {}", Key("full_attention_interval"),
                    config.attention_every)
            .Expected("1 or more");
      if (Has("attention.recurrent_layers"))
        for (bool recurrent : file().Bools(Key("attention.recurrent_layers")))
          config.attends.push_back(!recurrent);
    }
  }

  void ReadRotary(networks::DecoderConfig& config) const {
    networks::Rotary& rotary = config.rotary;
    constexpr std::string_view kSize = "rope.dimension_count";
    rotary.size = Int(kSize, config.head_dim);
    // llama.cpp, src/llama-gguf_model.cpp: "invalid n_rot".
    if ((row_->name == "llama" || row_->name == "falcon") && rotary.size != config.head_dim)
      throw Error("bad-file", "rotary embedding covers {} of the {} dimensions of a head",
                  rotary.size, config.head_dim)
          .At({"", fmt::format("key \"{}\"", Key(kSize))})
          .Expected("all of them for the architecture \"{}\"", row_->name);
    rotary.base = Float("rope.freq_base", rotary.base);
    rotary.used = rotary.used && OwnBool("rope.scaling.finetuned", true);
    if (config.token_mixer == networks::TokenMixer::kDeltaNet) CheckSections(rotary.size / 2);
    if (row_->rotary_sections) ReadSections(config);
    rotary.original_context = Int("rope.scaling.original_context_length", config.context);
    // As in llama.cpp, a factor without a type is linear, a factor of 0 means 1, and the factor of
    // longrope divides all frequencies in addition to the factors of the tensors.
    const std::string scaling = Text("rope.scaling.type", "linear");
    rotary.factor = Float("rope.scaling.factor", Float("rope.scale_linear", 0));
    if (rotary.factor == 0) rotary.factor = 1;
    if (!(rotary.factor > 0))
      throw Error("bad-file", "key \"{}\" is {}", Key("rope.scaling.factor"), rotary.factor);
    rotary.magnitude = Float("rope.scaling.attn_factor", 1);
    double yarn = 1;  // the part of the magnitude that applies only to scaled layers
    if (scaling == "linear" || scaling == "longrope") {
      rotary.scaling = networks::RotaryScaling::kLinear;
    } else if (scaling == "yarn") {
      rotary.scaling = networks::RotaryScaling::kYarn;
      // YaRN, section 3.4: sqrt(1 / t) = 0.1 ln s + 1. llama.cpp divides by it again where s < 1
      // (src/llama-context.cpp).
      yarn = 1 + 0.1 * std::log(rotary.factor);
      if (rotary.factor > 1) rotary.magnitude *= yarn;
    } else if (scaling != "none") {
      throw Error("unsupported-architecture", "unsupported RoPE scaling \"{}\"", scaling)
          .At({"", fmt::format("key \"{}\"", Key("rope.scaling.type"))})
          .Expected("none, linear, yarn or longrope");
    }
    ReadLocalRotary(rotary, yarn);
  }

  // Reads the rotary embedding of layers with windows. It is not scaled if the architecture has a
  // local base; otherwise it is, even if the type is "none" (llama.cpp, src/llama-gguf_model.cpp,
  // get_rope_freq_scale).
  void ReadLocalRotary(networks::Rotary& rotary, double yarn) const {
    constexpr std::string_view kKey = "rope.freq_base_swa";
    if (RequirementOf(kKey) == Requirement::kForeign) return;
    if (rotary.local_base > 0) {
      rotary.local_magnitude = rotary.magnitude / yarn;
    } else {
      rotary.local_base = rotary.base;
      rotary.local_magnitude = rotary.magnitude;
      rotary.local_scaling = rotary.scaling == networks::RotaryScaling::kNone
                                 ? networks::RotaryScaling::kLinear
                                 : rotary.scaling;
    }
    rotary.local_base = OwnFloat(kKey, rotary.local_base);
  }

  // The positions of a text token in time, height and width are equal, so the sections for them
  // have no effect. A pair outside of these sections would use a fourth position; such models are
  // rejected.
  void CheckSections(int64_t pairs) const {
    constexpr std::string_view kKey = "rope.dimension_sections";
    const std::vector<int64_t> sections = file().Ints(Key(kKey));
    int64_t size = 0;
    for (int64_t section : sections) size += std::clamp<int64_t>(section, 0, INT32_MAX);
    for (int64_t pair = 0; pair < std::min(pairs, size == 0 ? 1 : size); ++pair)
      if (sections.size() != 4 || pair / 3 >= sections[pair % 3])
        throw Error("unsupported-architecture",
                    "pair {} of the rotary embedding belongs to none of the sections {}", pair,
                    fmt::join(sections, ", "))
            .At({"", fmt::format("key \"{}\"", Key(kKey))})
            .Expected("sections that interleave time, height and width and cover all pairs");
  }

  // The places of a picture's tokens in time, height and width; a fourth place is not used.
  void ReadSections(networks::DecoderConfig& config) const {
    constexpr std::string_view kKey = "rope.dimension_sections";
    config.rotary_sections = file().Ints(Key(kKey));
    if (config.rotary_sections.size() == 4 && config.rotary_sections[3] == 0)
      config.rotary_sections.pop_back();
    config.alternating_sections = row_->alternating_sections;
    config.deepstack_layers = Int("n_deepstack_layers", 0);
  }

  Tensor Find(networks::Role role, networks::Part part, int64_t layer) {
    const Requirement use = RequirementOfTensor(row_->name, role, part);
    if (use == Requirement::kForeign || (IsOfLongRope(role) && !HasLongRope())) return {};
    const std::string name = GgufName(row_->name, role, part, layer);
    Tensor tensor = Take(name);
    if (!tensor && use == Requirement::kRequired)
      throw Error("missing-tensor", "tensor \"{}\" is missing", name)
          .Expected("this tensor, which every \"{}\" model has", row_->name)
          .Help("check that the file is complete");
    if (use != Requirement::kIgnored) return tensor;
    if (tensor) ignored_.insert(name);
    return {};
  }

  static bool IsOfLongRope(networks::Role role) {
    return role == networks::Role::kRotaryLongFactors ||
           role == networks::Role::kRotaryShortFactors;
  }
  // Returns whether the model uses LongRoPE; Phi-3 does without a key.
  bool HasLongRope() const {
    return row_->name == "phi3" || Text("rope.scaling.type", "") == "longrope";
  }

  // Returns whether a tensor belongs to a layer for multi-token prediction.
  bool IsInPredictionLayer(std::string_view name) const {
    constexpr std::string_view kLayer = "blk.";
    const int64_t blocks = Int("block_count"), prediction = Int("nextn_predict_layers", 0);
    int64_t layer = -1;
    if (name.starts_with(kLayer))
      std::from_chars(name.data() + kLayer.size(), name.data() + name.size(), layer);
    return layer >= blocks - prediction && layer < blocks;
  }

  const GgufDecoderRow* row_ = nullptr;
  const Mmproj* mmproj_ = nullptr;
  networks::DecoderConfig config_;
  std::set<std::string> ignored_;  // tensors that are present but have no effect
};

}  // namespace

namespace {

void RefusePictureOptions(const ImportOptions& options, bool encoder) {
  if (encoder && !options.mmproj.empty())
    throw Error("usage", "option 'mmproj' is for language models, and this is a text encoder");
  if (!options.mmproj.empty()) return;
  for (const auto& [name, given] :
       {std::pair{"shape", !options.shapes.empty()}, {"io", options.arrays}})
    if (given)
      throw Error("usage", "option '{}' is for models that read pictures", name)
          .Help("option 'mmproj' adds the tower and projector of a GGUF model");
}

}  // namespace

Program ImportGguf(const fs::path& path, const ImportOptions& options, Diagnostics& diagnostics,
                   SourceFacts* facts) {
  try {
    GgufFile file = GgufFile::Open(path);
    if (facts)
      for (const auto& part : file.files()) facts->Add(path, part->path());
    std::vector<fs::path> read;
    file = WithAdapters(std::move(file), options.loras, diagnostics, read);
    if (facts)
      for (const fs::path& each : read) facts->Add(path, each);
    const bool encoder = IsGgufEncoder(file.String("general.architecture"));
    RefusePictureOptions(options, encoder);
    if (encoder) return ImportGgufEncoder(file, options, diagnostics);
    Importer importer(file, options, diagnostics);
    if (options.mmproj.empty()) {
      if (const fs::path beside = MmprojBeside(path);
          !beside.empty() && beside != fs::absolute(path))
        diagnostics.Note("{} in the folder of the model reads pictures, with option 'mmproj'",
                         beside.filename().string());
      return importer.Run();
    }
    const Mmproj mmproj = Mmproj::Open(options.mmproj);
    if (facts) facts->Add(path, mmproj.path());
    importer.Add(&mmproj);
    return importer.Run();
  } catch (Error& error) {
    if (!error.location().file.empty()) throw;
    throw error.At({path.string(), error.location().where});
  }
}

}  // namespace mlc::gguf
