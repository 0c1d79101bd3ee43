#include "frontends/gguf/encoders.h"

#include "frontends/gguf/gguf_model.h"
#include "frontends/gguf/required_keys_and_tensors.h"
#include "lib/networks/encoder_architectures.h"

namespace mlc::gguf {

namespace {

using Head = networks::EncoderConfig::Head;
using Positions = networks::EncoderConfig::Positions;
using Relative = networks::EncoderConfig::Relative;

struct ArchitectureRow {
  std::string_view name;          // general.architecture
  std::string_view architecture;  // the row of lib/networks/encoder_architectures.h
  networks::Activation activation =
      networks::Activation::kGeluTanh;  // in feed-forward layers, unless a key overrides it
};
constexpr ArchitectureRow kEncoderRows[] = {
    {"bert", "bert"},
    {"gemma-embedding", "gemma-embedding"},
    {"modern-bert", "modernbert"},
    {"nomic-bert", "nomic-bert", networks::Activation::kSilu},
    {"t5encoder", "t5"},
};

const ArchitectureRow* FindRow(std::string_view name) {
  for (const ArchitectureRow& row : kEncoderRows)
    if (row.name == name) return &row;
  return nullptr;
}

// gguf-py's TENSOR_NAMES (ggml-org/llama.cpp, gguf-py/gguf/constants.py); {} is the layer. The
// first matching row is used.
struct NameRow {
  std::string_view ours, theirs;
  std::string_view architecture = {};  // empty: all architectures without a specific row
};
constexpr NameRow kNames[] = {
    {"layer.{}.gate_up", "blk.{}.ffn_up", "modern-bert"},
    {"layer.{}.attention_norm", "blk.{}.attn_norm", "modern-bert"},
    {"layer.{}.norm", "blk.{}.ffn_norm", "modern-bert"},

    {"layer.{}.attention_norm", "blk.{}.attn_norm", "gemma-embedding"},
    {"layer.{}.norm", "blk.{}.ffn_norm", "gemma-embedding"},
    {"layer.{}.attention_branch_norm", "blk.{}.post_attention_norm", "gemma-embedding"},
    {"layer.{}.branch_norm", "blk.{}.post_ffw_norm", "gemma-embedding"},

    {"relative_positions", "enc.blk.0.attn_rel_b", "t5encoder"},
    {"layer.{}.query", "enc.blk.{}.attn_q", "t5encoder"},
    {"layer.{}.key", "enc.blk.{}.attn_k", "t5encoder"},
    {"layer.{}.value", "enc.blk.{}.attn_v", "t5encoder"},
    {"layer.{}.attention", "enc.blk.{}.attn_o", "t5encoder"},
    {"layer.{}.attention_norm", "enc.blk.{}.attn_norm", "t5encoder"},
    {"layer.{}.norm", "enc.blk.{}.ffn_norm", "t5encoder"},
    {"layer.{}.gate", "enc.blk.{}.ffn_gate", "t5encoder"},
    {"layer.{}.up", "enc.blk.{}.ffn_up", "t5encoder"},
    {"layer.{}.down", "enc.blk.{}.ffn_down", "t5encoder"},
    {"norm", "enc.output_norm", "t5encoder"},

    {"embeddings.tokens", "token_embd"},
    {"embeddings.positions", "position_embd"},
    {"embeddings.types", "token_types"},
    {"embeddings.norm", "token_embd_norm"},
    {"layer.{}.query", "blk.{}.attn_q"},
    {"layer.{}.key", "blk.{}.attn_k"},
    {"layer.{}.value", "blk.{}.attn_v"},
    {"layer.{}.qkv", "blk.{}.attn_qkv"},
    {"layer.{}.query_norm", "blk.{}.attn_q_norm"},
    {"layer.{}.key_norm", "blk.{}.attn_k_norm"},
    {"layer.{}.attention", "blk.{}.attn_output"},
    {"layer.{}.attention_norm", "blk.{}.attn_output_norm"},
    {"layer.{}.gate", "blk.{}.ffn_gate"},
    {"layer.{}.up", "blk.{}.ffn_up"},
    {"layer.{}.down", "blk.{}.ffn_down"},
    {"layer.{}.norm", "blk.{}.layer_output_norm"},
    {"norm", "output_norm"},
    {"sequence.dense", "cls"},
    {"sequence.norm", "cls.norm"},
    {"sequence.classifier", "cls.output"},
    {"sentence.0", "dense_2"},
    {"sentence.1", "dense_3"},
};

// gguf-py's PoolingType.
enum class Pooling : int64_t { kNone, kMean, kFirst, kLast, kRank };

class Importer : GgufModel {
 public:
  using GgufModel::GgufModel;

  Program Run() {
    const ArchitectureRow* row = FindRow(architecture());
    MLC_CHECK(row, "no row for {}", architecture());
    ReadConfig(*row);
    networks::NetworkWeights weights{
        .find = [this](const std::string& name) { return Take(Name(name)); },
        .name = [this](const std::string& name) { return Name(name); }};
    Program program = networks::BuildEncoder(
        config_, weights, networks::PackagedTokens(options_, config_), diagnostics_);
    CheckAllTaken();
    Describe(program,
             config_.output == Head::kSequence ? "text-classification" : "feature-extraction");
    return program;
  }

 private:
  // Returns GGUF's name for one of our names, which end in .weight or .bias; our name if GGUF has
  // no such tensor.
  std::string Name(const std::string& ours) const {
    const auto [stem, number] = networks::SplitLayer(ours.substr(0, ours.rfind('.')));
    for (const NameRow& row : kNames)
      if (row.ours == stem && (row.architecture.empty() || row.architecture == architecture()))
        return fmt::format(fmt::runtime(row.theirs), number) + ours.substr(ours.rfind('.'));
    return ours;
  }
  bool Stored(const std::string& ours) const { return file().FindTensor(Name(ours)); }

  void ReadConfig(const ArchitectureRow& row) {
    config_ = networks::EncoderFlags(row.architecture);
    config_.layers = Int("block_count");
    config_.width = Int("embedding_length");
    config_.embedding = config_.width;
    config_.position_count = Int("context_length");
    config_.heads = OfAllLayers("attention.head_count", 0);
    config_.kv_heads = OfAllLayers("attention.head_count_kv", config_.heads);
    config_.head_dim = Int("attention.key_length", 0);
    config_.feed_forward = OfAllLayers("feed_forward_length", 0);
    config_.vocabulary = RowsOf(Name("embeddings.tokens.weight"), 0);
    if (config_.vocabulary == 0) config_.vocabulary = Int("vocab_size");
    config_.epsilon = file().Float(Key(config_.norm == networks::NormKind::kRms
                                           ? "attention.layer_norm_rms_epsilon"
                                           : "attention.layer_norm_epsilon"));
    config_.type_count = file().Int("tokenizer.ggml.token_type_count", 0);
    config_.types = config_.type_count > 0 && Stored("embeddings.types.weight");
    config_.pooler = false;
    config_.activation = row.activation;
    if (config_.relative == Relative::kBias) {
      config_.buckets = Int("attention.relative_buckets_count");
      config_.gated = Stored("layer.0.gate.weight");
      if (!config_.gated) config_.activation = networks::Activation::kRelu;
    }
    ReadActivation();
    ReadRotary();
    ReadPooling();
    CheckOthers();
  }

  // The names are those of transformers (llama.cpp's src/llama-gguf_model.cpp,
  // LLM_FFN_OP_TYPES_FROM_STRING).
  void ReadActivation() {
    const std::string name = Text("hidden_activation", "");
    if (name == "silu" || name == "swish" || name == "swiglu")
      config_.activation = networks::Activation::kSilu;
    else if (!name.empty() && name != "gelu" && name != "geglu")
      Refuse("hidden_activation", fmt::format("the unsupported activation \"{}\"", name));
  }

  void ReadRotary() {
    networks::Rotary& rotary = config_.rotary;
    ReadWindow();
    if (!rotary.used) return;
    rotary.base = Float("rope.freq_base", rotary.base);
    // The default is llama.cpp's (src/llama-hparams.h, rope_freq_base_train_swa).
    if (config_.global_every > 0) rotary.local_base = Float("rope.freq_base_swa", 10000);
    int64_t head_dim = config_.head_dim;
    if (head_dim == 0 && config_.heads > 0) head_dim = config_.width / config_.heads;
    if (Int("rope.dimension_count", head_dim) != head_dim)
      Refuse("rope.dimension_count", "partial rotary embedding");
    const std::string scaling = Text("rope.scaling.type", "linear");
    const double factor = Float("rope.scaling.factor", Float("rope.scale_linear", 0));
    if (scaling != "none" && scaling != "linear") Refuse("rope.scaling.type", "RoPE scaling");
    if (scaling == "linear" && factor != 0 && factor != 1)
      Refuse("rope.scaling.factor", "RoPE scaling");
    if (Float("rope.scaling.attn_factor", 1) != 1)
      Refuse("rope.scaling.attn_factor", "RoPE scaling");
  }

  // Half of the window is on each side. 0 means no window.
  void ReadWindow() {
    constexpr std::string_view kWindow = "attention.sliding_window",
                               kPattern = "attention.sliding_window_pattern";
    const Requirement use = RequirementOfKey(architecture(), kWindow);
    int64_t window = 0;
    if (use != Requirement::kForeign)
      window = use == Requirement::kRequired ? Int(kWindow) : Int(kWindow, 0);
    config_.half_window = window / 2;
    if (window == 0)
      config_.global_every = 0;
    else if (Has(kPattern))
      config_.global_every = Int(kPattern);
  }

  void ReadPooling() {
    const int64_t type = Int("pooling_type", 0);
    const Pooling pooling{type};
    if (pooling == Pooling::kNone) {
      config_.output = Head::kHidden;
    } else if (pooling == Pooling::kMean || pooling == Pooling::kFirst) {
      config_.output = Head::kSentence;
      config_.mean_pooling = pooling == Pooling::kMean;
    } else if (pooling == Pooling::kRank) {
      // llama.cpp's src/llama-graph.cpp, build_pooling.
      config_.output = Head::kSequence;
      config_.pooling =
          config_.normed_pooling ? networks::Activation::kGeluTanh : networks::Activation::kTanh;
      config_.mean_pooling = config_.normed_pooling;
    } else {
      Refuse("pooling_type", fmt::format("the unsupported pooling type {}", type));
    }
    while (config_.output == Head::kSentence &&
           Stored(fmt::format("sentence.{}.weight", config_.dense.size())))
      config_.dense.push_back(networks::Activation::kNone);
  }

  void CheckOthers() const {
    if (Bool("attention.causal", false)) Refuse("attention.causal", "causal attention");
    if (Int("attention.value_length", config_.head_dim) != config_.head_dim)
      Refuse("attention.value_length", "different head dimensions for keys and values");
    if (Int("expert_count", 0) > 0) Refuse("expert_count", "experts");
  }

  networks::EncoderConfig config_;
};

}  // namespace

bool IsGgufEncoder(std::string_view architecture) { return FindRow(architecture) != nullptr; }

std::set<std::string> GgufEncoderNames() {
  std::set<std::string> names;
  for (const ArchitectureRow& row : kEncoderRows) names.emplace(row.name);
  return names;
}

Program ImportGgufEncoder(const GgufFile& file, const ImportOptions& options,
                          Diagnostics& diagnostics) {
  return Importer(file, options, diagnostics).Run();
}

}  // namespace mlc::gguf
