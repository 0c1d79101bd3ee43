#include "frontends/safetensors/encoders.h"

#include <algorithm>
#include <set>

#include "frontends/safetensors/bends.h"
#include "frontends/safetensors/encoder_rows.h"
#include "lib/compress/requant.h"
#include "lib/networks/encoder.h"
#include "lib/support/near_names.h"

namespace mlc {

namespace fs = std::filesystem;

namespace {

using Head = EncoderConfig::Head;
using Relative = EncoderConfig::Relative;

struct HeadRow {
  std::string_view suffix;  // of the architecture: BertForQuestionAnswering
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
        json_(folder.config()),
        row_(row),
        options_(options),
        diagnostics_(diagnostics) {}

  Program Run() {
    ReadConfig();
    if (config_.head == Head::kHidden) ReadModules();
    EncoderWeights weights{.find = [this](const std::string& name) { return Find(name); },
                           .name = [this](const std::string& name) { return Name(name); }};
    weights.stored = Requantising(options_, diagnostics_);
    Program program = BuildEncoder(config_, weights, Tokens(), diagnostics_);
    CheckAllUsed();
    return program;
  }
  const std::vector<fs::path>& read() const { return read_; }

 private:
  // How many there may be.
  Symbol Tokens() const {
    constexpr const char* kTokens = "tokens";
    const int64_t most = MostTokens(config_);
    Symbol sizes{1, most, {}};
    for (const auto& [name, wanted] : options_.dims) {
      if (name != kTokens)
        throw Error("bad-name", fmt::format("--dim {}: there is no such dimension", name))
            .Expected(kTokens);
      if (wanted.high > most)
        throw Error("usage",
                    fmt::format("--dim {}={}: the model was made for {}", name, wanted.high, most))
            .Expected(fmt::format("1 to {}", most));
      sizes = wanted;
    }
    return sizes;
  }

  std::string Key(std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (json_.has(key)) return key;
    return *keys.begin();
  }
  [[noreturn]] void Refuse(const std::string& key, const std::string& expected) const {
    throw Error("unsupported-architecture",
                fmt::format("\"{}\" is {}", json_.KeyPath(key), json_.Json(key)))
        .At({json_.file(), fmt::format("key \"{}\"", json_.KeyPath(key))})
        .Expected(expected);
  }

  Head HeadOf() const {
    const std::string architecture = folder_.architecture();
    std::vector<std::string> known;
    for (const HeadRow& row : kHeads) {
      if (architecture.ends_with(row.suffix)) return row.head;
      known.push_back("..." + std::string(row.suffix));
    }
    if (architecture.empty()) return Head::kHidden;
    Refuse("architectures", fmt::format("{}", fmt::join(known, ", ")));
  }

  void ReadConfig() {
    config_ = row_.flags;
    config_.head = HeadOf();
    config_.layers = json_.Int(Key({"num_hidden_layers", "n_layers", "n_layer"}));
    config_.width = json_.Int(Key({"hidden_size", "dim", "n_embd"}));
    config_.heads = json_.Int(Key({"num_attention_heads", "n_heads", "n_head"}));
    config_.feed_forward = json_.Int(Key({"intermediate_size", "hidden_dim", "n_inner"}));
    config_.vocabulary = json_.Int("vocab_size");
    config_.position_count = json_.Int(Key({"max_position_embeddings", "n_positions"}));
    config_.padding = json_.Int("pad_token_id", 1);
    config_.epsilon =
        json_.Number(Key({"layer_norm_eps", "norm_eps", "layer_norm_epsilon"}), config_.epsilon);
    config_.embedding = config_.width;
    if (row_.flags.projected_tokens) config_.embedding = json_.Int("embedding_size", config_.width);
    config_.projected_tokens = Has("embeddings.projection.weight");
    // Pruned of its pooler, a folder has none.
    config_.pooler = row_.flags.pooler && Has("pooler.weight");
    config_.type_count = json_.Int("type_vocab_size", 0);
    config_.types = config_.type_count > 0 && Has("embeddings.types.weight");
    ReadBend();
    config_.lm_bend = row_.gelu_before_lm ? Bend::kGelu : config_.bend;
    if (row_.shared_layers) groups_ = json_.Int("num_hidden_groups", 1);
    if (groups_ < 1 || groups_ > std::max<int64_t>(config_.layers, 1))
      Refuse("num_hidden_groups", "1 to all layers");
    if (row_.flags.relative == Relative::kBias)
      config_.buckets = json_.Int("relative_attention_num_buckets");
    if (row_.flags.relative == Relative::kDisentangled) ReadDisentangled();
    if (row_.flags.rotary) ReadRotary();
    RefuseOthers();
  }
  bool Has(const std::string& ours) const { return !Stored(Name(ours)).empty(); }

  void ReadBend() {
    const std::string key =
        Key({"hidden_act", "hidden_activation", "activation", "activation_function"});
    if (key == "activation_function" && config_.gated) {
      // GPT-2's configuration names gate and activation together.
      const std::string kind = json_.Text(key);
      if (kind != "swiglu" && kind != "geglu") Refuse(key, "swiglu, geglu");
      config_.bend = kind == "swiglu" ? Bend::kSilu : Bend::kGelu;
      return;
    }
    config_.bend = BendOf(json_, key);
  }

  void ReadRotary() {
    config_.rotary_base = json_.Number(Key({"global_rope_theta", "rotary_emb_base"}), 10000);
    config_.local_rotary_base = json_.Number("local_rope_theta", config_.rotary_base);
    if (json_.has("rope_parameters")) {
      const Config all = json_.Object("rope_parameters");
      for (auto [key, base] : {std::pair("full_attention", &config_.rotary_base),
                               {"sliding_attention", &config_.local_rotary_base}}) {
        if (!all.has(key)) continue;
        if (all.Object(key).Text("rope_type", "default") != "default")
          Refuse("rope_parameters", "the type \"default\"");
        *base = all.Object(key).Number("rope_theta", *base);
      }
    }
    config_.global_every = json_.Int("global_attn_every_n_layers", 0);
    config_.reach = json_.Int("local_attention", 0) / 2;
    if (json_.Text("classifier_pooling", "cls") == "mean") config_.mean_pooling = true;
    if (json_.has("classifier_activation"))
      config_.pooling = config_.lm_bend = BendOf(json_, "classifier_activation");
  }

  // What would be another network.
  void RefuseOthers() const {
    if (json_.Text("position_embedding_type", "absolute") != "absolute")
      Refuse("position_embedding_type", "absolute");
    for (const char* key : {"is_decoder", "prenorm", "use_rms_norm", "causal", "parallel_block",
                            "rotary_emb_interleaved"})
      if (json_.Bool(key, false)) Refuse(key, "false");
    for (const char* key : {"rotary_scaling_factor", "num_experts", "conv_kernel_size"})
      if (json_.Number(key, 0) > 0) Refuse(key, "0, or none");
    for (const char* key : {"rotary_emb_fraction", "inner_group_num"})
      if (json_.Number(key, 1) != 1) Refuse(key, "1");
  }

  // What sentence-transformers does behind a model (its models/Pooling.py and models/Normalize.py).
  void ReadModules() {
    const fs::path modules = folder_.path() / "modules.json";
    std::error_code nowhere;
    if (!fs::exists(modules, nowhere)) return;
    read_.push_back(modules);
    for (const Config& module : Config::ReadList(modules)) {
      const std::string type = module.Text("type"), path = module.Text("path");
      if (type.ends_with(".Pooling"))
        ReadPooling(path);
      else if (type.ends_with(".Normalize") && config_.head == Head::kSentence)
        config_.unit_length = true;
      else if (!type.ends_with(".Transformer") || !path.empty())
        throw Error("unsupported-architecture", fmt::format("the module {} in \"{}\"", type, path))
            .At({modules.string(), ""})
            .Expected("Transformer in the folder itself, then Pooling, then perhaps Normalize");
    }
  }
  void ReadPooling(const std::string& path) {
    if (path.empty() || path == "." || path == ".." || fs::path(path).filename() != path)
      throw Error("bad-file", fmt::format("the module's path is \"{}\"", path))
          .At({(folder_.path() / "modules.json").string(), ""})
          .Expected("a folder in this one");
    read_.push_back(folder_.path() / path / "config.json");
    const Config config = Config::Read(read_.back());
    constexpr const char *kFirst = "pooling_mode_cls_token", *kMean = "pooling_mode_mean_tokens";
    config_.head = Head::kSentence;
    config_.mean_pooling = config.Bool(kMean, false);
    const std::string wanted = config_.mean_pooling ? kMean : kFirst;
    for (const std::string& key : config.keys())
      if (key.starts_with("pooling_mode") && config.Bool(key) != (key == wanted))
        throw Error("unsupported-architecture", fmt::format("\"{}\" is {}", key, config.Json(key)))
            .At({config.file(), ""})
            .Expected(fmt::format("{} or {}, alone", kFirst, kMean));
    config.Bool(wanted);  // which must be there
  }

  void ReadDisentangled() {
    if (!json_.Bool("position_biased_input", true))
      config_.positions = EncoderConfig::Positions::kNone;
    if (json_.Int("embedding_size", config_.width) != config_.width)
      Refuse("embedding_size", std::to_string(config_.width));
    if (json_.has("pooler_hidden_act")) config_.pooling = BendOf(json_, "pooler_hidden_act");
    if (!json_.Bool("relative_attention", false)) {
      config_.relative = Relative::kNone;
      return;
    }
    config_.buckets = std::max<int64_t>(json_.Int("position_buckets", 0), 0);
    config_.farthest = json_.Int("max_relative_positions", -1);
    if (config_.farthest < 1) config_.farthest = config_.position_count;
    config_.shares_projections = json_.Bool("share_att_key", false);
    for (const std::string& kind : Kinds()) {
      config_.position_keys |= kind == "c2p";
      config_.position_queries |= kind == "p2c";
      if (kind != "c2p" && kind != "p2c") Refuse("pos_att_type", "c2p, p2c");
    }
    config_.normed_distances =
        json_.Text("norm_rel_ebd", "none").find("layer_norm") != std::string::npos;
  }
  // A list, or a text with bars.
  std::vector<std::string> Kinds() const {
    if (!json_.has("pos_att_type")) return {};
    if (json_.kind("pos_att_type") == Config::Kind::kList) return json_.Texts("pos_att_type");
    std::vector<std::string> kinds;
    std::string rest = json_.Text("pos_att_type") + "|";
    for (size_t bar; (bar = rest.find('|')) != std::string::npos; rest.erase(0, bar + 1))
      kinds.push_back(rest.substr(0, bar));
    return kinds;
  }

  std::string Name(const std::string& ours) const {
    return EncoderTensorName(row_, ours, groups_, config_.layers);
  }
  // As the folder has it, perhaps without the prefix, which base models leave out; empty: it has not.
  std::string Stored(const std::string& name) const {
    if (folder_.has(name)) return name;
    if (!name.starts_with(row_.prefix)) return "";
    std::string inner = name.substr(row_.prefix.size());
    return folder_.has(inner) ? inner : "";
  }
  Tensor Find(const std::string& ours) {
    const std::string name = Stored(Name(ours));
    if (name.empty()) return {};
    used_.insert(name);
    return folder_.tensor(name);
  }

  // A head's tensors that nobody reads are another model's.
  void CheckAllUsed() const {
    std::vector<std::string> unused;
    for (const std::string& name : folder_.names())
      if (!used_.contains(name) && !name.ends_with("position_ids") &&
          name.find("pooler") == std::string::npos && !IsOfPretraining(name))
        unused.push_back(name);
    if (unused.empty()) return;
    throw Error("unused-tensor",
                fmt::format("{} has no use for {} of {} tensors: {}", folder_.architecture(),
                            unused.size(), folder_.names().size(), Quoted(unused)))
        .Help(
            "the model has parts that mlc does not know; what it computes would be another model");
  }
  // Checkpoints of the heads that a model was trained with beforehand keep those.
  static bool IsOfPretraining(const std::string& name) {
    for (std::string_view head :
         {"cls.", "lm_head.", "vocab_", "lm_predictions.", "mask_predictions."})
      if (name.starts_with(head)) return true;
    return false;
  }

  const Folder& folder_;
  const Config& json_;
  const EncoderRow& row_;
  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  std::vector<fs::path> read_;
  EncoderConfig config_;
  int64_t groups_ = 1;  // of layers that share tensors
  std::set<std::string> used_;
};

}  // namespace

bool IsEncoder(const std::string& model_type) { return FindEncoderRow(model_type) != nullptr; }

std::string EncoderModelTypes() {
  std::vector<std::string_view> types;
  for (const EncoderRow& row : EncoderRows()) types.push_back(row.model_type);
  return fmt::format("{}", fmt::join(types, ", "));
}

Program ImportEncoder(const Folder& folder, const ImportOptions& options, Diagnostics& diagnostics,
                      std::vector<fs::path>* read) {
  const EncoderRow* row = FindEncoderRow(folder.model_type());
  MLC_CHECK(row, "no row for {}", folder.model_type());
  if (options.context)
    throw Error("usage", "--context is for language models, this is an encoder")
        .Help("--dim tokens=... says how many tokens it is for");
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

}  // namespace mlc
