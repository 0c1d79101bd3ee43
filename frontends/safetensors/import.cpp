#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/adapter.h"
#include "frontends/safetensors/config_defaults.h"
#include "frontends/safetensors/decoder_rows.h"
#include "frontends/safetensors/decoders.h"
#include "frontends/safetensors/encoder_decoders.h"
#include "frontends/safetensors/encoder_rows.h"
#include "frontends/safetensors/encoders.h"
#include "frontends/safetensors/folder.h"
#include "frontends/safetensors/image_processor.h"
#include "frontends/safetensors/picture_nets.h"
#include "frontends/safetensors/rotary_scaling.h"
#include "frontends/safetensors/safetensors.h"
#include "frontends/safetensors/speech_encoders.h"
#include "frontends/safetensors/tied_tensors.h"
#include "frontends/safetensors/vision_language.h"
#include "frontends/safetensors/vision_language_rows.h"
#include "frontends/safetensors/vision_models.h"
#include "frontends/safetensors/vision_rows.h"
#include "lib/ir/concat_slice.h"
#include "lib/networks/architectures.h"
#include "lib/networks/check_weights.h"

namespace fs = std::filesystem;

namespace mlc::safetensors {

namespace {

class DecoderImporter {
 public:
  DecoderImporter(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                  const DecoderForm& form)
      : folder_(folder),
        json_(WithFamilyDefaults(folder.config())),
        options_(options),
        diagnostics_(diagnostics),
        form_(form),
        tied_(folder, diagnostics) {}

  Program Run() {
    row_ = FindDecoderRow(folder_.model_type());
    MLC_CHECK(row_, "no row for {}", folder_.model_type());
    if (options_.target && *options_.target < Opset::kIos18)
      throw Error("target-too-old", "language models keep their cache in states")
          .Expected("iOS18 or later");
    ReadConfig();
    networks::DecoderWeights weights{
        .find = [this](networks::Role role, networks::Part part,
                       int64_t layer) { return Find(role, part, layer); },
        .name = [this](networks::Role role, networks::Part part,
                       int64_t layer) { return Name(role, part, layer); }};
    const networks::DecoderSizes sizes = networks::PackagedSizes(options_, config_);
    Program program = networks::BuildDecoder(config_, weights, sizes, diagnostics_);
    if (form_.embeds) networks::AddEmbedsFunctions(program, config_, weights, sizes, diagnostics_);
    for (const std::string& name : folder_.names())
      if (IsLeftOver(name)) used_.insert(name);
    networks::CheckAllUsed(fmt::format("architecture \"{}\"", row_->model_type), folder_.names(),
                           used_);
    Describe(program);
    return program;
  }

 private:
  // Returns the first of these keys that is present.
  std::string Key(std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (json_.has(key)) return key;
    return *keys.begin();
  }
  int64_t Int(std::initializer_list<const char*> keys) const { return json_.Int(Key(keys)); }
  int64_t Int(std::initializer_list<const char*> keys, int64_t otherwise) const {
    return json_.Int(Key(keys), otherwise);
  }
  double Number(std::initializer_list<const char*> keys, double otherwise) const {
    return json_.Number(Key(keys), otherwise);
  }

  [[noreturn]] void Refuse(const char* key, const std::string& text) const {
    throw Error("unsupported-architecture", text).At({json_.file(), json_.KeyPath(key)});
  }

  void ReadConfig() {
    config_ = networks::DecoderFlags(row_->architecture);
    config_.norm_adds_one = row_->norm_adds_one;
    config_.layers = Int({"num_hidden_layers", "n_layer"});
    config_.width = Int({"hidden_size", "n_embd"});
    config_.heads = Int({"num_attention_heads", "n_head"});
    config_.kv_heads = KvHeads();
    config_.head_dim = Int({"head_dim"}, config_.heads > 0 ? config_.width / config_.heads : 0);
    config_.value_head_dim = config_.head_dim;
    config_.feed_forward =
        Int({"intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner"}, 4 * config_.width);
    config_.vocabulary = Int({"vocab_size"});
    config_.context = Int({"max_position_embeddings", "n_positions"}, 2048);
    config_.epsilon =
        Number({"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon", "norm_eps"},
               config_.epsilon);
    config_.parallel =
        json_.Bool(Key({"parallel_attn", "use_parallel_residual"}), config_.parallel);
    ReadActivation();
    ReadAttention();
    ReadExperts();
    if (json_.has("conv_L_cache")) ReadShortConvolutions();
    networks::Rotary& rotary = config_.rotary;
    rotary.interleaved = row_->interleaved;
    rotary.size = RotaryDims(json_, Key({"partial_rotary_factor", "rotary_pct"}), config_.head_dim);
    rotary.base = Number({"rope_theta", "rotary_emb_base"}, rotary.base);
    rotary.local_base = Number({"rope_local_base_freq"}, rotary.local_base);
    config_.rotary_sections = form_.rotary_sections;
    config_.alternating_sections = form_.alternating_sections;
    config_.deepstack_layers = form_.deepstack_layers;
    config_.scales_embeds = form_.scales_embeds;
    config_.masks_given = form_.masks_given;
    networks::CheckNumbers(config_);  // must precede the computation of tables of these sizes
    if (rotary.used) factors_ = ReadRotaryScaling(json_, config_);
  }

  int64_t KvHeads() const {
    if (json_.Bool("multi_query", false) && !json_.Bool("new_decoder_architecture", false))
      return 1;
    return Int({"num_key_value_heads", "num_kv_heads"}, config_.heads);
  }

  void ReadActivation() {
    std::string key = Key({"hidden_activation", "hidden_act", "activation_function", "activation"});
    // Older Gemma files say "gelu" but mean the tanh approximation.
    if (row_->fixed_activation || !json_.has(key)) return;
    config_.activation = ActivationOf(json_, key);
  }

  void ReadAttention() {
    if (double scalar = Number({"query_pre_attn_scalar"}, 0); scalar > 0)
      config_.attention_scale = 1 / std::sqrt(scalar);
    config_.attention_scale = Number({"attention_multiplier"}, config_.attention_scale);
    config_.embedding_scale = Number({"embedding_multiplier"}, 1);
    config_.residual_scale = Number({"residual_multiplier"}, 1);
    config_.logit_scale = Number({"logits_scaling", "logit_scale"}, 1);
    config_.attention_cap = Number({"attn_logit_softcapping"}, 0);
    config_.logit_cap = Number({"final_logit_softcapping"}, 0);
    ReadWindow();
    ReadPattern(Key({"sliding_window_pattern", "_sliding_window_pattern"}));
    // If an architecture has both, layers with a window have rotary embedding.
    if (config_.global_every > 0 && config_.no_rotary_every > 0)
      config_.no_rotary_every = config_.global_every;
    config_.no_rotary_every = Int({"no_rope_layer_interval"}, config_.no_rotary_every);
    if (json_.has("no_rope_layers")) CheckRotaryLayers(json_.Ints("no_rope_layers"));
    if (json_.has("layer_types") && !json_.has("conv_L_cache"))
      CheckLayers(json_.Texts("layer_types"));
    if (!json_.Bool("do_layer_norm_before", true))
      Refuse("do_layer_norm_before", "norms after attention are not supported");
    if (Int({"word_embed_proj_dim"}, config_.width) != config_.width)
      Refuse("word_embed_proj_dim", "embeddings of another width are not supported");
    // Falcon's older format stores the query, key and value of each head together.
    if (json_.has("multi_query") && !json_.Bool("multi_query", true))
      Refuse("multi_query", "queries, keys and values grouped by head are not supported");
    if (!json_.Bool("scale_attn_weights", true))
      Refuse("scale_attn_weights", "unscaled attention scores are not supported");
    for (const char* key : {"alibi", "new_decoder_architecture", "scale_attn_by_inverse_layer_idx",
                            "use_bidirectional_attention"})
      if (json_.Bool(key, false)) Refuse(key, fmt::format("{} is not supported", key));
  }

  // Reads a number, or a string like "LLLG" (EXAONE 4): L is a local layer, G a global one.
  void ReadPattern(const std::string& key) {
    if (!json_.has(key)) return;
    if (json_.kind(key) != Config::Kind::kText) {
      config_.global_every = json_.Int(key);
      return;
    }
    const std::string pattern = json_.Text(key);
    if (pattern.empty() || pattern.find_first_not_of('L') != pattern.size() - 1 ||
        pattern.back() != 'G')
      Refuse(key.c_str(), "only patterns of L with one G at the end are supported");
    config_.global_every = static_cast<int64_t>(pattern.size());
  }

  void ReadWindow() {
    const Family* family = FindFamily(row_->model_type);
    const Windows windows = family ? family->windows : Windows::kAll;
    // Families that always have windows ignore the key.
    const bool wanted = windows == Windows::kAll || json_.Bool("use_sliding_window", false);
    if (windows == Windows::kNone || !wanted) return;
    if (windows == Windows::kNotWanted)
      Refuse("use_sliding_window", "windows in some of the layers are not supported");
    if (windows == Windows::kBehind) {
      const int64_t first = Int({"max_window_layers"});
      if (first >= config_.layers) return;
      if (first > 0)
        Refuse("max_window_layers", "windows only from some layer on are not supported");
    }
    config_.window = Int({"sliding_window"}, 0);
  }

  void CheckLayers(const std::vector<std::string>& types) const {
    for (size_t layer = 0; layer < types.size(); ++layer) {
      bool windowed = config_.windowed(static_cast<int64_t>(layer));
      if (types[layer] != (windowed ? "sliding_attention" : "full_attention"))
        Refuse("layer_types", fmt::format("layer {} has {}, unlike the pattern of the architecture",
                                          layer, types[layer]));
    }
  }

  // The list has a 1 for each layer with rotary embedding.
  void CheckRotaryLayers(const std::vector<int64_t>& layers) const {
    for (size_t layer = 0; layer < layers.size(); ++layer)
      if (config_.has_rotary(static_cast<int64_t>(layer)) != (layers[layer] != 0))
        Refuse("no_rope_layers",
               fmt::format("layer {} is {}, unlike the pattern of the architecture", layer,
                           layers[layer]));
  }

  // Follows transformers' configuration_lfm2.py and modeling_lfm2.py.
  void ReadShortConvolutions() {
    config_.recurrent.taps = json_.Int("conv_L_cache");
    if (json_.has("block_ff_dim")) config_.feed_forward = json_.Int("block_ff_dim");
    if (json_.Bool("block_auto_adjust_ff_dim")) {
      const int64_t multiple = json_.Int("block_multiple_of");
      const double factor = json_.Number("block_ffn_dim_multiplier");
      constexpr int64_t kMost = INT32_MAX;
      if (multiple < 1 || multiple > kMost || config_.feed_forward < 0 ||
          config_.feed_forward > kMost || !(factor > 0 && factor < 1e4))
        Refuse("block_multiple_of", "the width of feed-forward layers is not a positive number");
      const auto part =
          static_cast<int64_t>(factor * static_cast<double>(2 * config_.feed_forward / 3));
      config_.feed_forward = (part + multiple - 1) / multiple * multiple;
    }
    if (json_.has("layer_types")) {
      for (const std::string& type : json_.Texts("layer_types")) {
        if (type != "full_attention" && type != "conv")
          Refuse("layer_types", fmt::format("layers of type \"{}\" are not supported", type));
        config_.attends.push_back(type == "full_attention");
      }
    } else {
      const bool listed = json_.has("full_attn_idxs");
      constexpr int64_t kMostLayers = 1 << 16;
      config_.attends.assign(
          static_cast<size_t>(std::clamp<int64_t>(config_.layers, 0, kMostLayers)), !listed);
      for (int64_t layer : listed ? json_.Ints("full_attn_idxs") : std::vector<int64_t>())
        if (layer >= 0 && layer < std::ssize(config_.attends))
          config_.attends[static_cast<size_t>(layer)] = true;
    }
  }

  void ReadExperts() {
    config_.experts = Int({"num_local_experts", "num_experts"}, 0);
    if (config_.experts == 0) return;
    config_.experts_used = Int({"num_experts_per_tok"});
    config_.expert_feed_forward = Int({"moe_intermediate_size"}, config_.feed_forward);
    config_.shared_feed_forward = Int({"shared_expert_intermediate_size"}, 0);
    config_.normalised_gates = json_.Bool("norm_topk_prob", config_.normalised_gates);
    if (Int({"decoder_sparse_step"}, 1) != 1 ||
        (json_.has("mlp_only_layers") && !json_.Ints("mlp_only_layers").empty()))
      Refuse("decoder_sparse_step", "layers without experts are not supported");
  }

  std::string Name(networks::Role role, networks::Part part, int64_t layer) const {
    const HuggingFaceName* row = FindHuggingFaceName(row_->model_type, role);
    return row ? NameOf(*row, part, layer) : "";
  }

  // Returns the name in the folder, which may lack the name of the outermost module; empty if there
  // is no such tensor.
  std::string Stored(const std::string& name) const {
    if (name.empty() || folder_.has(name)) return name;
    std::string inner = name.substr(name.find('.') + 1);
    return folder_.has(inner) ? inner : "";
  }

  static Tensor Numbers(const std::vector<double>& numbers) {
    return numbers.empty() ? Tensor() : Tensor::Vector<double>(numbers);
  }

  Tensor Find(networks::Role role, networks::Part part, int64_t layer) {
    if (role == networks::Role::kRotaryFactors) return Numbers(factors_.factors);
    if (role == networks::Role::kRotaryLongFactors) return Numbers(factors_.long_factors);
    if (role == networks::Role::kRotaryShortFactors) return Numbers(factors_.short_factors);
    const HuggingFaceName* row = FindHuggingFaceName(row_->model_type, role);
    if (!row) return {};
    if (row->arrangement == Arrangement::kPerExpert) return Together(*row, part, layer);
    std::string name = Stored(NameOf(*row, part, layer));
    if (part == networks::Part::kWeight && role == networks::Role::kOutput && !HasOutput(name))
      return {};
    if (part == networks::Part::kWeight && role == networks::Role::kTokens && name.empty() &&
        tied())
      name = Stored(Name(networks::Role::kOutput, networks::Part::kWeight, 0));
    if (name.empty() && part == networks::Part::kBias && NeedsBias(role))
      throw Error("missing-tensor", "tensor \"{}\" is missing", NameOf(*row, part, layer))
          .Note("every \"{}\" model has it", row_->model_type);
    if (name.empty()) return {};
    Use(name);
    Tensor tensor = folder_.tensor(name);
    if (row->arrangement == Arrangement::kTransposed && tensor.rank() == 2)
      return tensor.Transposed({1, 0});
    if (row->arrangement == Arrangement::kSkipTwoRows && tensor.rank() == 2 && tensor.dims()[0] > 2)
      return tensor.Rows(2, tensor.dims()[0]);
    if (row->arrangement == Arrangement::kDepthwise && tensor.rank() == 3 && tensor.dims()[1] == 1)
      return tensor.Reshaped({tensor.dims()[0], tensor.dims()[2]});
    if (row->arrangement == Arrangement::kByHead) return ByPart(tensor);
    return tensor;
  }

  bool NeedsBias(networks::Role role) const {
    return RequiresBias(*row_, role) && json_.Bool(Key({"use_bias", "enable_bias"}), true);
  }

  void Use(const std::string& name) { used_.insert(folder_.stored_name(name)); }

  // Returns whether logits use the token embeddings. If a folder does not say so but stores a
  // separate matrix for logits, they are not tied.
  bool tied() const {
    return json_.Bool(Key({"tie_embedding", "tie_word_embeddings"}),
                      Stored(Name(networks::Role::kOutput, networks::Part::kWeight, 0)).empty());
  }

  // Returns whether logits have a separate matrix, `name`.
  bool HasOutput(const std::string& name) {
    if (tied()) {
      if (!name.empty()) Use(name);
      return tied_.Differ(name, Stored(Name(networks::Role::kTokens, networks::Part::kWeight, 0)));
    }
    if (name.empty())
      throw Error("missing-tensor", "tensor \"{}\" is missing",
                  Name(networks::Role::kOutput, networks::Part::kWeight, 0))
          .Note("it is required because tie_word_embeddings is false");
    return true;
  }

  // Reorders rows: the source has the query, key and value of each head together, the result all
  // queries, then all keys, then all values.
  Tensor ByPart(const Tensor& tensor) const {
    Dims split = {config_.heads, 3, config_.head_dim}, dims = tensor.dims();
    std::vector<int> perm = {1, 0, 2};
    if (dims.empty() || ElementCount(split) != dims[0] || config_.heads != config_.kv_heads)
      return tensor;  // a wrong shape is rejected later
    if (dims.size() > 1) {
      split.push_back(dims[1]);
      perm.push_back(3);
    }
    return tensor.Reshaped(split).Transposed(perm).Reshaped(dims);
  }

  // Concatenates the tensors of all experts.
  Tensor Together(const HuggingFaceName& row, networks::Part part, int64_t layer) {
    std::vector<Tensor> each;
    for (int64_t expert = 0; expert < config_.experts; ++expert) {
      std::string name = Stored(NameOf(row, part, layer, expert));
      if (name.empty()) break;
      Use(name);
      Tensor one = folder_.tensor(name);
      Dims dims = one.dims();
      dims.insert(dims.begin(), 1);
      each.push_back(one.Reshaped(dims));
      if (each.back().dims() != each.front().dims() || one.dtype() != each.front().dtype())
        throw Error("bad-tensor",
                    "tensor \"{}\" differs in shape or type from those of other experts", name);
    }
    return each.empty() ? Tensor() : Join(each, 0);
  }

  void Describe(Program& program) const {
    program.interface.metadata = {{"co.huggingface.exporters.task", "text-generation"}};
    // swift-transformers loads the tokenizer from the hub's "owner/name". The member may instead be
    // the path to which a model was saved, which must not be published.
    const std::string name = json_.Text("_name_or_path", "");
    if (IsRepository(name))
      program.interface.metadata.emplace_back("co.huggingface.exporters.name", name);
    std::ranges::sort(program.interface.metadata);
  }

  static bool IsRepository(std::string_view name) {
    const size_t slash = name.find('/');
    return slash != std::string_view::npos && slash > 0 && slash + 1 < name.size() &&
           name.find('/', slash + 1) == std::string_view::npos && name[0] != '.' &&
           name.find('\\') == std::string_view::npos;
  }

  const Folder& folder_;
  const Config json_;
  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  const DecoderForm form_;
  const DecoderRow* row_ = nullptr;
  networks::DecoderConfig config_;
  RotaryFactors factors_;
  std::set<std::string> used_;
  TiedTensors tied_;
};

void WarnOfMissingBiases(const Folder& folder, Diagnostics& diagnostics) {
  for (const std::string& key : MissingBiases(folder.config(), folder.names()))
    diagnostics.Warn(
        Error("missing-tensor", "config.json sets \"{}\", but no such bias is stored", key)
            .At({folder.path().string(), ""})
            .Note(
                "the model is compiled without these biases; transformers initialises them to zero")
            .Help("check that the folder is complete, or set \"{}\" to false", key));
}

Folder WithoutUnexpectedBiases(const Folder& folder, Diagnostics& diagnostics) {
  std::vector<std::string> unexpected = UnexpectedBiases(folder.config(), folder.names());
  std::erase_if(unexpected, IsLeftOver);
  if (unexpected.empty()) return folder;
  diagnostics.Warn(
      Error("unused-tensor",
            "config.json does not use {} of the stored biases, which "
            "are ignored, such as \"{}\"",
            unexpected.size(), unexpected.front())
          .At({folder.path().string(), ""})
          .Note("transformers ignores them, too")
          .Help("if the model needs them, set attention_bias, mlp_bias or the corresponding key of "
                "this family"));
  return folder.Without(unexpected);
}

// Notes that FP8 weights are plain casts if the folder has no scales at all.
void NoteUnscaled(const Folder& folder, Diagnostics& diagnostics) {
  int64_t count = 0;
  for (const std::string& name : folder.names())
    count += folder.item(name).problem.empty() && folder.item(name).type.starts_with("F8") &&
             !folder.has(name + "_scale_inv") && !folder.has(name + "_scale");
  if (count > 0)
    diagnostics.Note("{} FP8 {} without scales: the values are used unscaled", count,
                     count == 1 ? "tensor" : "tensors");
}

bool IsDecoder(const Config& config) { return FindDecoderRow(config.Text("model_type", "")); }

Program ImportPlainDecoder(const Folder& folder, const ImportOptions& options,
                           Diagnostics& diagnostics, std::vector<fs::path>*) {
  return ImportDecoder(folder, options, diagnostics, {});
}

// A kind of network that folders contain. The first row whose `reads` accepts config.json imports
// the folder.
struct NetworkKind {
  std::string_view name;  // in messages; a plural in s
  bool (*reads)(const Config& config);
  // `read` receives the files that were read in addition to those of the folder.
  Program (*import)(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                    std::vector<fs::path>* read);
  std::set<std::string> (*model_types)();
  bool pictures = false;  // takes the options of inputs and outputs
};
constexpr NetworkKind kNetworks[] = {
    {"encoder-decoders", IsEncoderDecoder, ImportEncoderDecoder, EncoderDecoderModelTypes},
    {"decoders of pictures", IsPictureDecoder, ImportEncoderDecoder, PictureDecoderModelTypes,
     true},
    {"encoders", IsEncoder, ImportEncoder, EncoderModelTypes},
    {"decoders", IsDecoder, ImportPlainDecoder, DecoderModelTypes},
    {"vision-language models", IsVisionLanguage, ImportVisionLanguage, VisionLanguageModelTypes,
     true},
    {"vision models", IsVisionModel, ImportVisionModel, VisionModelTypes, true},
    {"picture networks", IsPictureNet, ImportPictureNet, PictureNetModelTypes, true},
    {"timm models", IsTimm, ImportTimm, TimmArchitectures, true},
    {"encoders of speech", IsSpeechEncoder, ImportSpeechEncoder, SpeechEncoderModelTypes},
};

const NetworkKind& NetworkOf(const Config& config) {
  std::map<std::string, std::set<std::string>> known;
  for (const NetworkKind& kind : kNetworks) {
    if (kind.reads(config)) return kind;
    known[std::string(kind.name)] = kind.model_types();
  }
  throw networks::UnsupportedArchitecture(config.Text("model_type", ""), known);
}

// Refuses options that the network does not take.
void RefuseOptionsOf(const NetworkKind& kind, const ImportOptions& options) {
  if (options.runtime == kWhisperKit && kind.import != ImportEncoderDecoder)
    throw Error("usage", "option 'runtime' {} is for Whisper; this is one of {}", kWhisperKit,
                kind.name);
  if (kind.pictures) return;
  for (auto [name, given] : {std::pair{"shape", !options.shapes.empty()},
                             {"image", !options.images.empty()},
                             {"outputs", !options.outputs.empty()},
                             {"io", options.arrays}})
    if (given)
      throw Error("usage", "option '{}' is for models that take pictures, not for {}", name,
                  kind.name);
}

// Returns the quantisation method of config.json, or an empty string.
std::string QuantisedBy(const fs::path& folder) {
  const Config config = Config::Read(folder / "config.json");
  if (config.kind("quantization_config") != Config::Kind::kObject) return "";
  const Config how = config.Object("quantization_config");
  return how.kind("quant_method") == Config::Kind::kText ? how.Text("quant_method") : "";
}

}  // namespace

std::map<std::string, std::set<std::string>> HuggingFaceModelTypes() {
  std::map<std::string, std::set<std::string>> types;
  for (const NetworkKind& kind : kNetworks)
    types[std::string(kind.name.substr(0, kind.name.size() - 1))] = kind.model_types();
  return types;
}

Program ImportDecoder(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                      const DecoderForm& form) {
  return DecoderImporter(folder, options, diagnostics, form).Run();
}

Program ImportHuggingFace(const fs::path& path, const ImportOptions& options,
                          Diagnostics& diagnostics, SourceFacts* facts) {
  try {
    Folder folder = WithoutUnexpectedBiases(Folder::Open(path), diagnostics);
    WarnOfMissingBiases(folder, diagnostics);
    NoteUnscaled(folder, diagnostics);
    std::vector<fs::path> read = folder.paths();
    folder = WithAdapters(std::move(folder), options.loras, diagnostics, read);
    const NetworkKind& kind = NetworkOf(folder.config());
    RefuseOptionsOf(kind, options);
    Program program = kind.import(folder, options, diagnostics, &read);
    if (facts) {
      for (const fs::path& file : read) facts->Add(path, file);
      if (kind.pictures && !options.arrays) {
        if (IsTimm(folder.config()))
          facts->class_labels = TimmLabels(folder.config());
        else if (folder.architecture().ends_with("ForImageClassification"))
          facts->class_labels = LabelsOf(folder.config());
      }
    }
    return program;
  } catch (Error& error) {
    if (error.id() == "missing-tensor" || error.id() == "bad-tensor")
      if (const std::string method = QuantisedBy(path); !method.empty())
        error.Help(
            "the weights are quantised by {}, which is not supported; use the original "
            "model",
            method);
    if (!error.location().file.empty()) throw;
    throw error.At({path.string(), error.location().where});
  }
}

}  // namespace mlc::safetensors
