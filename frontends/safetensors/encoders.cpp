#include "frontends/safetensors/encoders.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/config_defaults.h"
#include "frontends/safetensors/encoder_rows.h"
#include "frontends/safetensors/tied_tensors.h"
#include "lib/networks/check_weights.h"
#include "lib/networks/encoder_architectures.h"

namespace mlc::safetensors {

namespace fs = std::filesystem;

namespace {

using Head = networks::EncoderConfig::Head;
using Relative = networks::EncoderConfig::Relative;

struct HeadRow {
  std::string_view suffix;  // suffix of the architecture's name: BertForQuestionAnswering
  Head head;
};
constexpr HeadRow kHeads[] = {
    {"ForQuestionAnswering", Head::kQuestions},
    {"ForSequenceClassification", Head::kSequence},
    {"ForTokenClassification", Head::kTokens},
    {"ForMaskedLM", Head::kMaskedLm},
    {"Model", Head::kHidden},
};

class Importer {
 public:
  Importer(const Folder& folder, const EncoderRow& row, const ImportOptions& options,
           Diagnostics& diagnostics)
      : folder_(folder),
        json_(WithFamilyDefaults(folder.config())),
        row_(row),
        options_(options),
        diagnostics_(diagnostics),
        tied_(folder, diagnostics) {}

  Program Run() {
    ReadConfig();
    if (config_.output == Head::kHidden) ReadModules();
    networks::NetworkWeights weights{
        .find = [this](const std::string& name) { return Find(name); },
        .name = [this](const std::string& name) { return Name(name); }};
    Program program = networks::BuildEncoder(
        config_, weights, networks::PackagedTokens(options_, config_), diagnostics_);
    for (const std::string& name : folder_.names())
      if (IsLeftOver(name)) used_.insert(name);
    networks::CheckAllUsed(folder_.architecture(), folder_.names(), used_);
    return program;
  }
  const std::vector<fs::path>& read() const { return read_; }

 private:
  static constexpr const char *kTokens = "embeddings.tokens.weight", *kOutput = "lm.output.weight";

  std::string Key(std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (json_.has(key)) return key;
    return *keys.begin();
  }
  Head HeadOf() const {
    const std::string architecture = folder_.architecture();
    if (!row_.only.empty() && !architecture.empty() && architecture != row_.only)
      json_.Refuse("architectures", fmt::format("{}, the encoder without a head", row_.only));
    std::vector<std::string> known;
    for (const HeadRow& row : kHeads) {
      if (architecture.ends_with(row.suffix)) return row.head;
      known.push_back("..." + std::string(row.suffix));
    }
    if (architecture.empty()) return Head::kHidden;
    json_.Refuse("architectures", fmt::format("{}", fmt::join(known, ", ")));
  }

  void ReadConfig() {
    const networks::EncoderConfig& flags = networks::EncoderFlags(row_.architecture);
    config_ = flags;
    config_.norm_adds_one = row_.norm_adds_one;
    config_.output = HeadOf();
    config_.layers = json_.Int(Key({"num_hidden_layers", "n_layers", "n_layer", "num_layers"}));
    config_.width = json_.Int(Key({"hidden_size", "dim", "n_embd", "d_model"}));
    config_.heads = json_.Int(Key({"num_attention_heads", "n_heads", "n_head", "num_heads"}));
    config_.kv_heads = json_.Int("num_key_value_heads", 0);
    config_.head_dim = json_.Int(Key({"head_dim", "d_kv"}), 0);
    config_.feed_forward = json_.Int(Key({"intermediate_size", "hidden_dim", "n_inner", "d_ff"}));
    config_.vocabulary = json_.Int("vocab_size");
    config_.position_count = json_.Int(Key({"max_position_embeddings", "n_positions"}));
    config_.padding = json_.Int("pad_token_id", 1);
    config_.epsilon = json_.Number(
        Key({"layer_norm_eps", "norm_eps", "layer_norm_epsilon", "rms_norm_eps"}), config_.epsilon);
    config_.embedding = config_.width;
    if (flags.projected_tokens) config_.embedding = json_.Int("embedding_size", config_.width);
    config_.projected_tokens = Has("embeddings.projection.weight");
    // Some folders are stored without the pooler.
    config_.pooler = flags.pooler && Has("pooler.weight");
    config_.type_count = json_.Int("type_vocab_size", 0);
    config_.types = config_.type_count > 0 && Has("embeddings.types.weight");
    ReadActivation();
    config_.lm_activation = row_.gelu_before_lm ? networks::Activation::kGelu : config_.activation;
    if (row_.shared_layers) groups_ = json_.Int("num_hidden_groups", 1);
    if (groups_ < 1 || groups_ > std::max<int64_t>(config_.layers, 1))
      json_.Refuse("num_hidden_groups", "1 to the number of layers");
    if (flags.relative == Relative::kBias || flags.relative == Relative::kOwnBias) {
      config_.buckets = json_.Int("relative_attention_num_buckets");
      config_.max_distance = json_.Int("relative_attention_max_distance", config_.max_distance);
    }
    if (flags.relative == Relative::kDisentangled) ReadDisentangled();
    if (flags.rotary.used) ReadRotary();
    RefuseOthers();
  }
  void ReadActivation() {
    const std::string key =
        Key({"hidden_act", "hidden_activation", "activation", "activation_function"});
    if (key == "activation_function" && config_.gated) {
      // GPT-2's configuration combines the gate and the activation in one value.
      const std::string kind = json_.Text(key);
      if (kind != "swiglu" && kind != "geglu") json_.Refuse(key, "swiglu, geglu");
      config_.activation =
          kind == "swiglu" ? networks::Activation::kSilu : networks::Activation::kGelu;
      return;
    }
    if (json_.has("feed_forward_proj")) {
      // T5's configuration also combines them (transformers' configuration_t5.py).
      const std::string kind = json_.Text("feed_forward_proj");
      config_.gated = kind.starts_with("gated-");
      if (kind != "relu" && kind != "gated-gelu")
        json_.Refuse("feed_forward_proj", "relu, gated-gelu");
      config_.activation =
          config_.gated ? networks::Activation::kGeluTanh : networks::Activation::kRelu;
      return;
    }
    config_.activation = ActivationOf(json_, key);
  }

  void ReadRotary() {
    networks::Rotary& rotary = config_.rotary;
    rotary.base =
        json_.Number(Key({"global_rope_theta", "rotary_emb_base", "rope_theta"}), rotary.base);
    rotary.local_base =
        json_.Number(Key({"local_rope_theta", "rope_local_base_freq"}), rotary.local_base);
    if (json_.has("rope_parameters")) {
      const Config all = json_.Object("rope_parameters");
      for (auto [key, base] :
           {std::pair("full_attention", &rotary.base), {"sliding_attention", &rotary.local_base}}) {
        if (!all.has(key)) continue;
        if (all.Object(key).Text("rope_type", "default") != "default")
          json_.Refuse("rope_parameters", "the type \"default\"");
        *base = all.Object(key).Number("rope_theta", *base);
      }
    }
    config_.global_every = json_.Int(
        Key({"global_attn_every_n_layers", "sliding_window_pattern", "_sliding_window_pattern"}),
        config_.global_every);
    // Half of the window is on each side.
    config_.half_window = json_.Int(Key({"local_attention", "sliding_window"}), 0) / 2;
    if (double scalar = json_.Number("query_pre_attn_scalar", 0); scalar > 0)
      config_.attention_scale = 1 / std::sqrt(scalar);
    if (json_.has("layer_types")) CheckLayers(json_.Texts("layer_types"));
    if (json_.Text("classifier_pooling", "cls") == "mean") config_.mean_pooling = true;
    if (json_.has("classifier_activation"))
      config_.pooling = config_.lm_activation = ActivationOf(json_, "classifier_activation");
  }

  void CheckLayers(const std::vector<std::string>& types) const {
    for (size_t layer = 0; layer < types.size(); ++layer)
      if ((types[layer] == "sliding_attention") != config_.local(static_cast<int64_t>(layer)))
        json_.Refuse("layer_types", "the pattern of the architecture");
  }

  // Refuses keys that change the network in ways that are not supported.
  void RefuseOthers() const {
    if (json_.Text("position_embedding_type", "absolute") != "absolute")
      json_.Refuse("position_embedding_type", "absolute");
    for (const char* key : {"is_decoder", "prenorm", "use_rms_norm", "causal", "parallel_block",
                            "rotary_emb_interleaved"})
      if (json_.Bool(key, false)) json_.Refuse(key, "false");
    if (json_.has("rope_scaling")) json_.Refuse("rope_scaling", "none");
    for (const char* key :
         {"rotary_scaling_factor", "num_experts", "conv_kernel_size", "attn_logit_softcapping"})
      if (json_.Number(key, 0) > 0) json_.Refuse(key, "0, or none");
    for (const char* key : {"rotary_emb_fraction", "inner_group_num"})
      if (json_.Number(key, 1) != 1) json_.Refuse(key, "1");
  }

  // Reads the modules that sentence-transformers applies after the model (its models/Pooling.py and
  // models/Normalize.py).
  void ReadModules() {
    const fs::path modules = folder_.path() / "modules.json";
    std::error_code nowhere;
    if (!fs::exists(modules, nowhere)) return;
    read_.push_back(modules);
    for (const Config& module : Config::ReadList(modules)) {
      const std::string type = module.Text("type"), path = module.Text("path");
      if (type.ends_with(".Pooling"))
        ReadPooling(path);
      else if (type.ends_with(".Dense") && config_.output == Head::kSentence &&
               !config_.unit_length)
        ReadDense(path);
      else if (type.ends_with(".Normalize") && config_.output == Head::kSentence)
        config_.unit_length = true;
      else if (!type.ends_with(".Transformer") || !path.empty())
        throw Error("unsupported-architecture", "unsupported module {} in \"{}\"", type, path)
            .At({modules.string(), ""})
            .Expected(
                "Transformer in the folder itself, then Pooling, then optionally Dense and "
                "Normalize");
    }
  }
  fs::path ModuleFolder(const std::string& path) const {
    if (path.empty() || path == "." || path == ".." || fs::path(path).filename() != path)
      throw Error("bad-file", "the module's path is \"{}\"", path)
          .At({(folder_.path() / "modules.json").string(), ""})
          .Expected("a subfolder");
    return folder_.path() / path;
  }
  // Reads a linear layer, which has separate weights (models/Dense.py).
  void ReadDense(const std::string& path) {
    const Folder folder = Folder::Open(ModuleFolder(path));
    for (const fs::path& file : folder.paths()) read_.push_back(file);
    const std::string ours = fmt::format("sentence.{}", config_.dense.size()),
                      activation = folder.config().Text("activation_function");
    const bool tanh = activation.ends_with(".Tanh");
    if (!tanh && !activation.ends_with(".Identity"))
      throw Error("unsupported-architecture", "unsupported activation \"{}\"", activation)
          .At({folder.config().file(), "key \"activation_function\""})
          .Expected("Identity or Tanh of torch.nn.modules");
    config_.dense.push_back(tanh ? networks::Activation::kTanh : networks::Activation::kNone);
    for (const std::string part : {".weight", ".bias"})
      if (part == ".weight" || folder.config().Bool("bias", true))
        dense_[ours + part] = {path + "/linear" + part, folder.tensor("linear" + part)};
  }
  void ReadPooling(const std::string& path) {
    read_.push_back(ModuleFolder(path) / "config.json");
    const Config config = Config::Read(read_.back());
    constexpr const char *kFirst = "pooling_mode_cls_token", *kMean = "pooling_mode_mean_tokens";
    config_.output = Head::kSentence;
    config_.mean_pooling = config.Bool(kMean, false);
    const std::string wanted = config_.mean_pooling ? kMean : kFirst;
    for (const std::string& key : config.keys())
      if (key.starts_with("pooling_mode") && config.Bool(key) != (key == wanted))
        throw Error("unsupported-architecture", "\"{}\" is {}", key, config.Json(key))
            .At({config.file(), ""})
            .Expected("only {} or only {}", kFirst, kMean);
    config.Bool(wanted);  // throws if the key is missing
  }

  void ReadDisentangled() {
    if (!json_.Bool("position_biased_input", true))
      config_.positions = networks::EncoderConfig::Positions::kNone;
    if (json_.Int("embedding_size", config_.width) != config_.width)
      json_.Refuse("embedding_size", std::to_string(config_.width));
    if (json_.has("pooler_hidden_act")) config_.pooling = ActivationOf(json_, "pooler_hidden_act");
    if (!json_.Bool("relative_attention", false)) {
      config_.relative = Relative::kNone;
      return;
    }
    config_.buckets = std::max<int64_t>(json_.Int("position_buckets", 0), 0);
    config_.max_distance = json_.Int("max_relative_positions", -1);
    if (config_.max_distance < 1) config_.max_distance = config_.position_count;
    config_.shares_projections = json_.Bool("share_att_key", false);
    for (const std::string& kind : Kinds()) {
      config_.position_keys |= kind == "c2p";
      config_.position_queries |= kind == "p2c";
      if (kind != "c2p" && kind != "p2c") json_.Refuse("pos_att_type", "c2p, p2c");
    }
    config_.relative_norm =
        json_.Text("norm_rel_ebd", "none").find("layer_norm") != std::string::npos;
  }
  // Returns the kinds of relative attention; pos_att_type is a list, or a string separated by bars.
  std::vector<std::string> Kinds() const {
    if (!json_.has("pos_att_type")) return {};
    if (json_.kind("pos_att_type") == Config::Kind::kList) return json_.Texts("pos_att_type");
    std::vector<std::string> kinds;
    std::string rest = json_.Text("pos_att_type") + "|";
    for (size_t bar; (bar = rest.find('|')) != std::string::npos; rest.erase(0, bar + 1))
      kinds.push_back(rest.substr(0, bar));
    return kinds;
  }

  std::vector<std::string> Names(const std::string& ours) const {
    return EncoderTensorNames(row_, ours, groups_, config_.layers);
  }
  // Returns the name in the folder, without the prefix for a base model; empty if there is no such
  // tensor.
  std::string Stored(const std::string& name) const {
    if (folder_.has(name)) return name;
    if (!name.starts_with(row_.prefix)) return "";
    std::string inner = name.substr(row_.prefix.size());
    return folder_.has(inner) ? inner : "";
  }
  std::vector<std::string> AllStored(const std::string& ours) const {
    std::vector<std::string> stored;
    for (const std::string& name : Names(ours))
      if (std::string one = Stored(name); !one.empty()) stored.push_back(one);
    return stored;
  }
  bool Has(const std::string& ours) const { return !AllStored(ours).empty(); }
  std::string Name(const std::string& ours) const {
    if (auto it = dense_.find(ours); it != dense_.end()) return it->second.name;
    std::vector<std::string> stored = AllStored(ours);
    if (ours == kTokens && stored.empty() && tied()) stored = AllStored(kOutput);
    return stored.empty() ? Names(ours).front() : stored.front();
  }
  // A folder may store tied tensors under several names; the first name is used.
  Tensor Find(const std::string& ours) {
    if (auto it = dense_.find(ours); it != dense_.end()) return it->second.tensor;
    std::vector<std::string> stored = AllStored(ours);
    for (const std::string& name : stored) used_.insert(folder_.stored_name(name));
    for (size_t i = 1; i < stored.size(); ++i) tied_.Differ(stored[0], stored[i]);
    if (ours == kOutput && !HasOutput(stored)) return {};
    if (ours == kTokens && stored.empty() && tied()) stored = AllStored(kOutput);
    return stored.empty() ? Tensor() : folder_.tensor(stored.front());
  }

  bool tied() const { return json_.Bool("tie_word_embeddings", true); }
  // Returns whether the logits of kMaskedLm have a separate matrix.
  bool HasOutput(const std::vector<std::string>& stored) {
    const std::vector<std::string> tokens = AllStored(kTokens);
    if (tied()) return !stored.empty() && !tokens.empty() && tied_.Differ(stored[0], tokens[0]);
    if (stored.empty())
      throw Error("missing-tensor", "tensor \"{}\" is missing", Names(kOutput).front())
          .Note("it is required because tie_word_embeddings is false");
    return true;
  }

  // Returns whether a tensor belongs to a head of earlier training, which checkpoints keep although
  // it is not part of the network.
  static bool IsLeftOver(const std::string& name) {
    if (name.ends_with("position_ids") || name.find("pooler") != std::string::npos) return true;
    for (std::string_view head :
         {"cls.", "lm_head.", "vocab_", "lm_predictions.", "mask_predictions."})
      if (name.starts_with(head)) return true;
    return false;
  }

  const Folder& folder_;
  const Config json_;
  const EncoderRow& row_;
  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<fs::path> read_;
  networks::EncoderConfig config_;
  int64_t groups_ = 1;  // groups of layers that share tensors
  struct Held {
    std::string name;
    Tensor tensor;
  };
  std::map<std::string, Held> dense_;  // layers after the pooling, by name in encoder.h
  std::set<std::string> used_;
  TiedTensors tied_;
};

}  // namespace

bool IsEncoder(const Config& config) { return FindEncoderRow(config) != nullptr; }

Program ImportEncoder(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                      std::vector<fs::path>* read) {
  const EncoderRow* row = FindEncoderRow(folder.config());
  MLC_CHECK(row, "no row for {}", folder.model_type());
  try {
    Importer importer(folder, *row, options, diagnostics);
    Program program = importer.Run();
    if (read) read->insert(read->end(), importer.read().begin(), importer.read().end());
    return program;
  } catch (Error& error) {
    if (!error.has_location()) error.At({folder.path().string(), ""});
    throw;
  }
}

}  // namespace mlc::safetensors
