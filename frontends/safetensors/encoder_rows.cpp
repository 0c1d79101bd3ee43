#include "frontends/safetensors/encoder_rows.h"

#include <algorithm>
#include <charconv>

namespace mlc {

namespace {

using Positions = EncoderConfig::Positions;
using Relative = EncoderConfig::Relative;

constexpr EncoderName kBertNames[] = {
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
    {"distances", "encoder.relative_attention_bias"},
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
// Of heads, which have no prefix.
constexpr EncoderName kBertHeads[] = {
    {"sequence.dense", "bert.pooler.dense"},
    {"sequence.classifier", "classifier"},
    {"tokens.classifier", "classifier"},
    {"questions", "qa_outputs"},
    {"lm.dense", "cls.predictions.transform.dense"},
    {"lm.norm", "cls.predictions.transform.LayerNorm"},
    {"lm.output.weight", "cls.predictions.decoder.weight"},
    {"lm.output.bias", "cls.predictions.bias"},
};
constexpr EncoderName kRobertaHeads[] = {
    {"sequence.dense", "classifier.dense"},
    {"sequence.classifier", "classifier.out_proj"},
    {"lm.dense", "lm_head.dense"},
    {"lm.norm", "lm_head.layer_norm"},
    {"lm.output.weight", "lm_head.decoder.weight"},
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
    {"sequence.dense", "albert.pooler"},    {"lm.dense", "predictions.dense"},
    {"lm.norm", "predictions.LayerNorm"},   {"lm.output.weight", "predictions.decoder.weight"},
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

const EncoderRow kRows[] = {
    {.model_type = "albert",
     .prefix = "albert.",
     .names = kAlbertNames,
     .heads = kAlbertHeads,
     .flags = {.projected_tokens = true, .pooler = true},
     .shared_layers = true},
    {.model_type = "bert", .prefix = "bert.", .flags = {.pooler = true}},
    {.model_type = "deberta-v2",
     .prefix = "deberta.",
     .names = kDebertaNames,
     .heads = kDebertaHeads,
     .flags = {.relative = Relative::kDisentangled, .pooling = Bend::kGelu}},
    {.model_type = "distilbert",
     .prefix = "distilbert.",
     .names = kDistilbertNames,
     .heads = kDistilbertHeads,
     .flags = {.pooling = Bend::kRelu}},
    {.model_type = "electra",
     .prefix = "electra.",
     .heads = kElectraHeads,
     .flags = {.projected_tokens = true, .pooling = Bend::kGelu},
     .gelu_before_lm = true},
    {.model_type = "modernbert",
     .prefix = "model.",
     .names = kModernbertNames,
     .heads = kModernbertHeads,
     .flags = {.positions = Positions::kNone,
               .rotary = true,
               .pre_norms = true,
               .gated = true,
               .pooling = Bend::kGelu,
               .normed_pooling = true}},
    {.model_type = "mpnet",
     .prefix = "mpnet.",
     .names = kMpnetNames,
     .heads = kRobertaHeads,
     .flags = {.positions = Positions::kPastPadding, .relative = Relative::kBias, .pooler = true},
     .gelu_before_lm = true},
    {.model_type = "nomic_bert",
     .prefix = "bert.",
     .names = kNomicNames,
     .flags = {.positions = Positions::kNone, .rotary = true, .gated = true}},
    {.model_type = "roberta",
     .prefix = "roberta.",
     .heads = kRobertaHeads,
     .flags = {.positions = Positions::kPastPadding, .pooler = true},
     .gelu_before_lm = true},
    {.model_type = "xlm-roberta",
     .prefix = "roberta.",
     .heads = kRobertaHeads,
     .flags = {.positions = Positions::kPastPadding, .pooler = true},
     .gelu_before_lm = true},
};

}  // namespace

std::span<const EncoderRow> EncoderRows() { return kRows; }

const EncoderRow* FindEncoderRow(std::string_view model_type) {
  auto row = std::find_if(std::begin(kRows), std::end(kRows),
                          [&](const EncoderRow& row) { return row.model_type == model_type; });
  return row == std::end(kRows) ? nullptr : row;
}

std::string EncoderTensorName(const EncoderRow& row, const std::string& ours, int64_t groups,
                              int64_t layers) {
  constexpr std::string_view kLayer = "layer.";
  const size_t dot = ours.rfind('.');
  std::string stem = ours.substr(0, dot), number;
  if (stem.starts_with(kLayer)) {
    const size_t end = stem.find('.', kLayer.size());
    number = stem.substr(kLayer.size(), end - kLayer.size());
    stem.replace(kLayer.size(), number.size(), "{}");
    if (row.shared_layers) {
      int64_t layer = 0;
      std::from_chars(number.data(), number.data() + number.size(), layer);
      number = std::to_string(layer * groups / layers);
    }
  }
  for (auto [names, prefix] : {std::pair(row.names, row.prefix),
                               {std::span<const EncoderName>(kBertNames), row.prefix},
                               {row.heads, std::string_view()},
                               {std::span<const EncoderName>(kBertHeads), std::string_view()}})
    for (const EncoderName& name : names) {
      const bool whole = name.ours == ours;
      if (!whole && name.ours != stem) continue;
      std::string theirs(name.theirs);
      if (size_t place = theirs.find("{}"); place != std::string::npos)
        theirs.replace(place, 2, number);
      return std::string(prefix) + theirs + (whole ? "" : ours.substr(dot));
    }
  return ours;
}

}  // namespace mlc
