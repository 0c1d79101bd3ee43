#include "frontends/safetensors/encoders.h"

#include <algorithm>
#include <optional>
#include <set>

#include "lib/networks/encoder.h"
#include "lib/support/near_names.h"

namespace mlc {

namespace {

using Head = EncoderConfig::Head;
using Positions = EncoderConfig::Positions;
using Relative = EncoderConfig::Relative;

// What a folder calls a tensor of lib/networks/encoder.h, the base model's prefix left out; {} is the
// layer.
struct NameRow {
  std::string_view ours, theirs;
};
constexpr NameRow kBertNames[] = {
    {"embeddings.tokens", "embeddings.word_embeddings"},
    {"embeddings.positions", "embeddings.position_embeddings"},
    {"embeddings.types", "embeddings.token_type_embeddings"},
    {"embeddings.norm", "embeddings.LayerNorm"},
    {"embeddings.projection", "embeddings_project"},  // ELECTRA's
    {"distances", "encoder.rel_embeddings"},          // DeBERTa's
    {"distances.norm", "encoder.LayerNorm"},
    {"layer.{}.query", "encoder.layer.{}.attention.self.query"},
    {"layer.{}.key", "encoder.layer.{}.attention.self.key"},
    {"layer.{}.value", "encoder.layer.{}.attention.self.value"},
    {"layer.{}.attention", "encoder.layer.{}.attention.output.dense"},
    {"layer.{}.attention_norm", "encoder.layer.{}.attention.output.LayerNorm"},
    {"layer.{}.up", "encoder.layer.{}.intermediate.dense"},
    {"layer.{}.down", "encoder.layer.{}.output.dense"},
    {"layer.{}.norm", "encoder.layer.{}.output.LayerNorm"},
    {"pooler", "pooler.dense"},
};
constexpr NameRow kDistilbertNames[] = {
    {"layer.{}.query", "transformer.layer.{}.attention.q_lin"},
    {"layer.{}.key", "transformer.layer.{}.attention.k_lin"},
    {"layer.{}.value", "transformer.layer.{}.attention.v_lin"},
    {"layer.{}.attention", "transformer.layer.{}.attention.out_lin"},
    {"layer.{}.attention_norm", "transformer.layer.{}.sa_layer_norm"},
    {"layer.{}.up", "transformer.layer.{}.ffn.lin1"},
    {"layer.{}.down", "transformer.layer.{}.ffn.lin2"},
    {"layer.{}.norm", "transformer.layer.{}.output_layer_norm"},
};
constexpr NameRow kMpnetNames[] = {
    {"distances", "encoder.relative_attention_bias"},
    {"layer.{}.query", "encoder.layer.{}.attention.attn.q"},
    {"layer.{}.key", "encoder.layer.{}.attention.attn.k"},
    {"layer.{}.value", "encoder.layer.{}.attention.attn.v"},
    {"layer.{}.attention", "encoder.layer.{}.attention.attn.o"},
    {"layer.{}.attention_norm", "encoder.layer.{}.attention.LayerNorm"},
};
constexpr NameRow kDebertaNames[] = {
    {"layer.{}.query", "encoder.layer.{}.attention.self.query_proj"},
    {"layer.{}.key", "encoder.layer.{}.attention.self.key_proj"},
    {"layer.{}.value", "encoder.layer.{}.attention.self.value_proj"},
    {"layer.{}.position_key", "encoder.layer.{}.attention.self.pos_key_proj"},
    {"layer.{}.position_query", "encoder.layer.{}.attention.self.pos_query_proj"},
};
// Of heads, which have no prefix.
constexpr NameRow kBertHeads[] = {
    {"sequence.dense", "bert.pooler.dense"},
    {"sequence.classifier", "classifier"},
    {"tokens.classifier", "classifier"},
    {"questions", "qa_outputs"},
    {"lm.dense", "cls.predictions.transform.dense"},
    {"lm.norm", "cls.predictions.transform.LayerNorm"},
    {"lm.output.weight", "cls.predictions.decoder.weight"},
    {"lm.output.bias", "cls.predictions.bias"},
};
constexpr NameRow kRobertaHeads[] = {
    {"sequence.dense", "classifier.dense"},
    {"sequence.classifier", "classifier.out_proj"},
    {"lm.dense", "lm_head.dense"},
    {"lm.norm", "lm_head.layer_norm"},
    {"lm.output.weight", "lm_head.decoder.weight"},
    {"lm.output.bias", "lm_head.bias"},
};
constexpr NameRow kDistilbertHeads[] = {
    {"sequence.dense", "pre_classifier"},
    {"lm.dense", "vocab_transform"},
    {"lm.norm", "vocab_layer_norm"},
    {"lm.output.weight", "vocab_projector.weight"},
    {"lm.output.bias", "vocab_projector.bias"},
};
constexpr NameRow kDebertaHeads[] = {
    {"sequence.dense", "pooler.dense"},
};

// A model_type, and where it differs from BERT. transformers' models/*/modeling_*.py.
struct Row {
  std::string_view model_type, prefix;
  std::span<const NameRow> names, heads;  // before those of BERT
  Positions positions = Positions::kCounted;
  Relative relative = Relative::kNone;
  bool pooler = false;
  Activation pooling = Activation::kTanh;
};
constexpr Row kRows[] = {
    {.model_type = "bert", .prefix = "bert.", .pooler = true},
    {.model_type = "deberta-v2",
     .prefix = "deberta.",
     .names = kDebertaNames,
     .heads = kDebertaHeads,
     .relative = Relative::kDisentangled,
     .pooling = Activation::kGelu},
    {.model_type = "distilbert",
     .prefix = "distilbert.",
     .names = kDistilbertNames,
     .heads = kDistilbertHeads,
     .pooling = Activation::kRelu},
    {.model_type = "mpnet",
     .prefix = "mpnet.",
     .names = kMpnetNames,
     .heads = kRobertaHeads,
     .positions = Positions::kPastPadding,
     .relative = Relative::kBias,
     .pooler = true},
    {.model_type = "roberta",
     .prefix = "roberta.",
     .heads = kRobertaHeads,
     .positions = Positions::kPastPadding,
     .pooler = true},
    {.model_type = "xlm-roberta",
     .prefix = "roberta.",
     .heads = kRobertaHeads,
     .positions = Positions::kPastPadding,
     .pooler = true},
};

const Row* RowOf(std::string_view model_type) {
  auto row = std::find_if(std::begin(kRows), std::end(kRows),
                          [&](const Row& row) { return row.model_type == model_type; });
  return row == std::end(kRows) ? nullptr : row;
}

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

struct ActivationRow {
  std::string_view name;
  Activation activation;
};
// transformers' activations.py, ACT2FN.
constexpr ActivationRow kActivations[] = {
    {"gelu", Activation::kGelu},         {"gelu_python", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"relu", Activation::kRelu},         {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},        {"tanh", Activation::kTanh},
};

class Importer {
 public:
  Importer(const Folder& folder, const Row& row, Diagnostics& diagnostics)
      : folder_(folder), json_(folder.config()), row_(row), diagnostics_(diagnostics) {}

  Program Run() {
    ReadConfig();
    EncoderWeights weights{.find = [this](const std::string& name) { return Find(name); },
                           .name = [this](const std::string& name) { return Name(name); }};
    Program program = BuildEncoder(config_, weights, diagnostics_);
    CheckAllUsed();
    return program;
  }

 private:
  std::string Key(std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (json_.has(key)) return key;
    return *keys.begin();
  }
  [[noreturn]] void Refuse(const std::string& key, const std::string& expected) const {
    throw Error("unsupported-operator",
                fmt::format("\"{}\" is {}", json_.KeyPath(key), json_.Json(key)))
        .At({json_.file(), fmt::format("key \"{}\"", json_.KeyPath(key))})
        .Expected(expected);
  }

  template <class Rows>
  auto Named(const std::string& key, const Rows& rows) const {
    const std::string name = json_.Text(key);
    std::vector<std::string> known;
    for (const auto& row : rows) {
      if (row.name == name) return row.activation;
      known.emplace_back(row.name);
    }
    Refuse(key, fmt::format("{}", fmt::join(known, ", ")));
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
    config_.positions = row_.positions;
    config_.relative = row_.relative;
    config_.pooling = row_.pooling;
    config_.head = HeadOf();
    config_.layers = json_.Int(Key({"num_hidden_layers", "n_layers"}));
    config_.width = json_.Int(Key({"hidden_size", "dim"}));
    config_.embedding = config_.width;
    config_.heads = json_.Int(Key({"num_attention_heads", "n_heads"}));
    config_.feed_forward = json_.Int(Key({"intermediate_size", "hidden_dim"}));
    config_.vocabulary = json_.Int("vocab_size");
    config_.position_count = json_.Int("max_position_embeddings");
    config_.padding = json_.Int("pad_token_id", 1);
    config_.epsilon = json_.Number("layer_norm_eps", 1e-12);
    config_.activation = Named(Key({"hidden_act", "activation"}), kActivations);
    // Pruned of its pooler, a folder has none.
    config_.pooler = row_.pooler && !Stored(Name("pooler.weight")).empty();
    config_.type_count = json_.Int("type_vocab_size", 0);
    config_.types = config_.type_count > 0 && !Stored(Name("embeddings.types.weight")).empty();
    if (row_.relative == Relative::kBias) {
      config_.buckets = json_.Int("relative_attention_num_buckets");
    }
    if (row_.relative == Relative::kDisentangled) ReadDisentangled();
    if (std::string kind = json_.Text("position_embedding_type", "absolute"); kind != "absolute")
      Refuse("position_embedding_type", "absolute");
    for (const char* key : {"is_decoder", "sinusoidal_pos_embds"})
      if (json_.Bool(key, false) && Stored(Name("embeddings.positions.weight")).empty())
        Refuse(key, "false");
  }

  void ReadDisentangled() {
    if (!json_.Bool("position_biased_input", true)) config_.positions = Positions::kNone;
    if (json_.has("conv_kernel_size") && json_.Int("conv_kernel_size") > 0)
      Refuse("conv_kernel_size", "0");
    if (json_.Int("embedding_size", config_.width) != config_.width)
      Refuse("embedding_size", std::to_string(config_.width));
    if (json_.has("pooler_hidden_act")) config_.pooling = Named("pooler_hidden_act", kActivations);
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

  // What transformers calls a tensor of ours.
  std::string Name(const std::string& ours) const {
    const size_t dot = ours.rfind('.');
    std::string stem = ours.substr(0, dot), layer;
    if (stem.starts_with("layer.")) {
      size_t end = stem.find('.', 6);
      layer = stem.substr(6, end - 6);
      stem.replace(6, end - 6, "{}");
    }
    for (auto [rows, prefix] : {std::pair(row_.names, row_.prefix),
                                {std::span<const NameRow>(kBertNames), row_.prefix},
                                {row_.heads, std::string_view()},
                                {std::span<const NameRow>(kBertHeads), std::string_view()}})
      for (const NameRow& row : rows) {
        const bool whole = row.ours == ours;
        if (!whole && row.ours != stem) continue;
        std::string theirs(row.theirs);
        if (size_t place = theirs.find("{}"); place != std::string::npos)
          theirs.replace(place, 2, layer);
        return std::string(prefix) + theirs + (whole ? "" : ours.substr(dot));
      }
    MLC_CHECK(false, "there is no name for {}", ours);
    return "";
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
    throw Error("bad-file",
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
  const Row& row_;
  Diagnostics& diagnostics_;
  EncoderConfig config_;
  std::set<std::string> used_;
};

}  // namespace

bool IsEncoder(const std::string& model_type) { return RowOf(model_type) != nullptr; }

Program ImportEncoder(const Folder& folder, Diagnostics& diagnostics) {
  const Row* row = RowOf(folder.model_type());
  MLC_CHECK(row, "no row for {}", folder.model_type());
  try {
    return Importer(folder, *row, diagnostics).Run();
  } catch (Error& error) {
    if (!error.has_location()) error.At({folder.path().string(), ""});
    throw;
  }
}

}  // namespace mlc
