#include "frontends/safetensors/encoder_rows.h"

#include <charconv>

namespace mlc::safetensors {

namespace {

constexpr EncoderName kBertNames[] = {
    {"embeddings.tokens", "embeddings.word_embeddings"},
    {"embeddings.positions", "embeddings.position_embeddings"},
    {"embeddings.types", "embeddings.token_type_embeddings"},
    {"embeddings.norm", "embeddings.LayerNorm"},
    {"embeddings.projection", "embeddings_project"},   // ELECTRA
    {"relative_positions", "encoder.rel_embeddings"},  // DeBERTa
    {"relative_positions.norm", "encoder.LayerNorm"},
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
constexpr EncoderName kDistilbertNames[] = {
    {"layer.{}.query", "transformer.layer.{}.attention.q_lin"},
    {"layer.{}.key", "transformer.layer.{}.attention.k_lin"},
    {"layer.{}.value", "transformer.layer.{}.attention.v_lin"},
    {"layer.{}.attention", "transformer.layer.{}.attention.out_lin"},
    {"layer.{}.attention_norm", "transformer.layer.{}.sa_layer_norm"},
    {"layer.{}.up", "transformer.layer.{}.ffn.lin1"},
    {"layer.{}.down", "transformer.layer.{}.ffn.lin2"},
    {"layer.{}.norm", "transformer.layer.{}.output_layer_norm"},
};
constexpr EncoderName kMpnetNames[] = {
    {"relative_positions", "encoder.relative_attention_bias"},
    {"layer.{}.query", "encoder.layer.{}.attention.attn.q"},
    {"layer.{}.key", "encoder.layer.{}.attention.attn.k"},
    {"layer.{}.value", "encoder.layer.{}.attention.attn.v"},
    {"layer.{}.attention", "encoder.layer.{}.attention.attn.o"},
    {"layer.{}.attention_norm", "encoder.layer.{}.attention.LayerNorm"},
};
constexpr EncoderName kDebertaNames[] = {
    {"layer.{}.query", "encoder.layer.{}.attention.self.query_proj"},
    {"layer.{}.key", "encoder.layer.{}.attention.self.key_proj"},
    {"layer.{}.value", "encoder.layer.{}.attention.self.value_proj"},
    {"layer.{}.position_key", "encoder.layer.{}.attention.self.pos_key_proj"},
    {"layer.{}.position_query", "encoder.layer.{}.attention.self.pos_query_proj"},
};
// Names of heads, which have no prefix.
constexpr EncoderName kBertHeads[] = {
    {"sequence.dense", "bert.pooler.dense"},
    {"sequence.classifier", "classifier"},
    {"tokens.classifier", "classifier"},
    {"questions", "qa_outputs"},
    {"lm.dense", "cls.predictions.transform.dense"},
    {"lm.norm", "cls.predictions.transform.LayerNorm"},
    {"lm.output.weight", "cls.predictions.decoder.weight"},
    {"lm.output.bias", "cls.predictions.decoder.bias"},
    {"lm.output.bias", "cls.predictions.bias"},
};
constexpr EncoderName kRobertaHeads[] = {
    {"sequence.dense", "classifier.dense"},
    {"sequence.classifier", "classifier.out_proj"},
    {"lm.dense", "lm_head.dense"},
    {"lm.norm", "lm_head.layer_norm"},
    {"lm.output.weight", "lm_head.decoder.weight"},
    {"lm.output.bias", "lm_head.decoder.bias"},
    {"lm.output.bias", "lm_head.bias"},
};
constexpr EncoderName kDistilbertHeads[] = {
    {"sequence.dense", "pre_classifier"},
    {"lm.dense", "vocab_transform"},
    {"lm.norm", "vocab_layer_norm"},
    {"lm.output.weight", "vocab_projector.weight"},
    {"lm.output.bias", "vocab_projector.bias"},
};
constexpr EncoderName kAlbertNames[] = {
    {"embeddings.projection", "encoder.embedding_hidden_mapping_in"},
    {"layer.{}.query", "encoder.albert_layer_groups.{}.albert_layers.0.attention.query"},
    {"layer.{}.key", "encoder.albert_layer_groups.{}.albert_layers.0.attention.key"},
    {"layer.{}.value", "encoder.albert_layer_groups.{}.albert_layers.0.attention.value"},
    {"layer.{}.attention", "encoder.albert_layer_groups.{}.albert_layers.0.attention.dense"},
    {"layer.{}.attention_norm",
     "encoder.albert_layer_groups.{}.albert_layers.0.attention.LayerNorm"},
    {"layer.{}.up", "encoder.albert_layer_groups.{}.albert_layers.0.ffn"},
    {"layer.{}.down", "encoder.albert_layer_groups.{}.albert_layers.0.ffn_output"},
    {"layer.{}.norm", "encoder.albert_layer_groups.{}.albert_layers.0.full_layer_layer_norm"},
    {"pooler", "pooler"},
};
constexpr EncoderName kModernbertNames[] = {
    {"embeddings.tokens", "embeddings.tok_embeddings"},
    {"embeddings.norm", "embeddings.norm"},
    {"layer.{}.qkv", "layers.{}.attn.Wqkv"},
    {"layer.{}.attention", "layers.{}.attn.Wo"},
    {"layer.{}.attention_norm", "layers.{}.attn_norm"},
    {"layer.{}.gate_up", "layers.{}.mlp.Wi"},
    {"layer.{}.down", "layers.{}.mlp.Wo"},
    {"layer.{}.norm", "layers.{}.mlp_norm"},
    {"norm", "final_norm"},
};
constexpr EncoderName kT5Names[] = {
    {"embeddings.tokens", "encoder.embed_tokens"},
    {"embeddings.tokens", "shared"},
    {"relative_positions", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"},
    {"layer.{}.relative_positions",
     "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias"},
    {"layer.{}.query", "encoder.block.{}.layer.0.SelfAttention.q"},
    {"layer.{}.key", "encoder.block.{}.layer.0.SelfAttention.k"},
    {"layer.{}.value", "encoder.block.{}.layer.0.SelfAttention.v"},
    {"layer.{}.attention", "encoder.block.{}.layer.0.SelfAttention.o"},
    {"layer.{}.attention_norm", "encoder.block.{}.layer.0.layer_norm"},
    {"layer.{}.gate", "encoder.block.{}.layer.1.DenseReluDense.wi_0"},
    {"layer.{}.up", "encoder.block.{}.layer.1.DenseReluDense.wi_1"},
    {"layer.{}.up", "encoder.block.{}.layer.1.DenseReluDense.wi"},
    {"layer.{}.down", "encoder.block.{}.layer.1.DenseReluDense.wo"},
    {"layer.{}.norm", "encoder.block.{}.layer.1.layer_norm"},
    {"norm", "encoder.final_layer_norm"},
};
constexpr EncoderName kGemmaNames[] = {
    {"embeddings.tokens", "embed_tokens"},
    {"layer.{}.query", "layers.{}.self_attn.q_proj"},
    {"layer.{}.key", "layers.{}.self_attn.k_proj"},
    {"layer.{}.value", "layers.{}.self_attn.v_proj"},
    {"layer.{}.query_norm", "layers.{}.self_attn.q_norm"},
    {"layer.{}.key_norm", "layers.{}.self_attn.k_norm"},
    {"layer.{}.attention", "layers.{}.self_attn.o_proj"},
    {"layer.{}.attention_norm", "layers.{}.input_layernorm"},
    {"layer.{}.attention_branch_norm", "layers.{}.post_attention_layernorm"},
    {"layer.{}.gate", "layers.{}.mlp.gate_proj"},
    {"layer.{}.up", "layers.{}.mlp.up_proj"},
    {"layer.{}.down", "layers.{}.mlp.down_proj"},
    {"layer.{}.norm", "layers.{}.pre_feedforward_layernorm"},
    {"layer.{}.branch_norm", "layers.{}.post_feedforward_layernorm"},
    {"norm", "norm"},
};
constexpr EncoderName kNomicNames[] = {
    {"embeddings.norm", "emb_ln"},
    {"layer.{}.qkv", "encoder.layers.{}.attn.Wqkv"},
    {"layer.{}.attention", "encoder.layers.{}.attn.out_proj"},
    {"layer.{}.attention_norm", "encoder.layers.{}.norm1"},
    {"layer.{}.gate", "encoder.layers.{}.mlp.fc12"},
    {"layer.{}.up", "encoder.layers.{}.mlp.fc11"},
    {"layer.{}.down", "encoder.layers.{}.mlp.fc2"},
    {"layer.{}.norm", "encoder.layers.{}.norm2"},
};
constexpr EncoderName kAlbertHeads[] = {
    {"sequence.dense", "albert.pooler"},
    {"lm.dense", "predictions.dense"},
    {"lm.norm", "predictions.LayerNorm"},
    {"lm.output.weight", "predictions.decoder.weight"},
    {"lm.output.bias", "predictions.decoder.bias"},
    {"lm.output.bias", "predictions.bias"},
};
constexpr EncoderName kElectraHeads[] = {
    {"sequence.dense", "classifier.dense"},      {"sequence.classifier", "classifier.out_proj"},
    {"lm.dense", "generator_predictions.dense"}, {"lm.norm", "generator_predictions.LayerNorm"},
    {"lm.output", "generator_lm_head"},
};
constexpr EncoderName kModernbertHeads[] = {
    {"sequence.dense", "head.dense"}, {"sequence.norm", "head.norm"},
    {"tokens.dense", "head.dense"},   {"tokens.norm", "head.norm"},
    {"questions", "classifier"},      {"lm.dense", "head.dense"},
    {"lm.norm", "head.norm"},         {"lm.output", "decoder"},
};
constexpr EncoderName kDebertaHeads[] = {
    {"sequence.dense", "pooler.dense"},
};

constexpr EncoderRow kEncoderRows[] = {
    {.model_type = "albert",
     .architecture = "albert",
     .prefix = "albert.",
     .names = kAlbertNames,
     .heads = kAlbertHeads,
     .shared_layers = true},
    {.model_type = "bert", .architecture = "bert", .prefix = "bert."},
    {.model_type = "deberta-v2",
     .architecture = "deberta-v2",
     .prefix = "deberta.",
     .names = kDebertaNames,
     .heads = kDebertaHeads},
    {.model_type = "distilbert",
     .architecture = "distilbert",
     .prefix = "distilbert.",
     .names = kDistilbertNames,
     .heads = kDistilbertHeads},
    {.model_type = "electra",
     .architecture = "electra",
     .prefix = "electra.",
     .heads = kElectraHeads,
     .gelu_before_lm = true},
    {.model_type = "gemma3_text",
     .architecture = "gemma-embedding",
     .prefix = "model.",
     .names = kGemmaNames,
     .where = "use_bidirectional_attention",
     .only = "Gemma3TextModel",
     .norm_adds_one = true},
    {.model_type = "modernbert",
     .architecture = "modernbert",
     .prefix = "model.",
     .names = kModernbertNames,
     .heads = kModernbertHeads},
    {.model_type = "mpnet",
     .architecture = "mpnet",
     .prefix = "mpnet.",
     .names = kMpnetNames,
     .heads = kRobertaHeads,
     .gelu_before_lm = true},
    {.model_type = "nomic_bert",
     .architecture = "nomic-bert",
     .prefix = "bert.",
     .names = kNomicNames},
    {.model_type = "roberta",
     .architecture = "roberta",
     .prefix = "roberta.",
     .heads = kRobertaHeads,
     .gelu_before_lm = true},
    {.model_type = "mt5", .architecture = "t5", .names = kT5Names, .only = "MT5EncoderModel"},
    {.model_type = "t5", .architecture = "t5", .names = kT5Names, .only = "T5EncoderModel"},
    {.model_type = "umt5", .architecture = "umt5", .names = kT5Names, .only = "UMT5EncoderModel"},
    {.model_type = "xlm-roberta",
     .architecture = "roberta",
     .prefix = "roberta.",
     .heads = kRobertaHeads,
     .gelu_before_lm = true},
};

}  // namespace

const EncoderRow* FindEncoderRow(const Config& config) {
  for (const EncoderRow& row : kEncoderRows)
    if (row.model_type == config.Text("model_type", "") &&
        (row.where.empty() || config.Bool(std::string(row.where), false)))
      return &row;
  return nullptr;
}

std::set<std::string> EncoderModelTypes() {
  std::set<std::string> types;
  for (const EncoderRow& row : kEncoderRows) types.emplace(row.model_type);
  return types;
}

std::vector<std::string> EncoderTensorNames(const EncoderRow& row, const std::string& ours,
                                            int64_t groups, int64_t layers) {
  const size_t dot = ours.rfind('.');
  auto [stem, number] = networks::SplitLayer(ours.substr(0, dot));
  if (row.shared_layers && !number.empty()) {
    int64_t layer = 0;
    std::from_chars(number.data(), number.data() + number.size(), layer);
    number = std::to_string(layer * groups / layers);
  }
  for (auto [names, prefix] : {std::pair(row.names, row.prefix),
                               {std::span<const EncoderName>(kBertNames), row.prefix},
                               {row.heads, std::string_view()},
                               {std::span<const EncoderName>(kBertHeads), std::string_view()}}) {
    std::vector<std::string> found;
    for (const EncoderName& name : names) {
      const bool whole = name.ours == ours;
      if (!whole && name.ours != stem) continue;
      std::string theirs(name.theirs);
      if (size_t place = theirs.find("{}"); place != std::string::npos)
        theirs.replace(place, 2, number);
      found.push_back(std::string(prefix) + theirs + (whole ? "" : ours.substr(dot)));
    }
    if (!found.empty()) return found;
  }
  return {ours};
}

}  // namespace mlc::safetensors
