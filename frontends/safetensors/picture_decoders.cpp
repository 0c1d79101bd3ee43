#include "frontends/safetensors/picture_decoders.h"

#include <array>
#include <cmath>
#include <optional>

#include "frontends/safetensors/activation_names.h"
#include "frontends/safetensors/encoder_decoder_rows.h"

namespace mlc::safetensors {

namespace {

using SequenceConfig = networks::EncoderDecoderConfig;

void ReadBartDecoder(const Config& config, SequenceConfig& into) {
  into.normed_embeddings = config.Bool("layernorm_embedding", true);
  into.position_offset = 2;
  if (!config.Bool("use_learned_position_embeddings", true))
    into.positions = SequenceConfig::Positions::kFairseq;
  into.decoder = {.layers = config.Int("decoder_layers"),
                  .width = config.Int("d_model"),
                  .heads = config.Int("decoder_attention_heads"),
                  .feed_forward = config.Int("decoder_ffn_dim"),
                  .vocabulary = config.Int("vocab_size"),
                  .most = config.Int("max_position_embeddings"),
                  .activation = ActivationOf(config, "activation_function")};
  if (config.Bool("scale_embedding"))
    into.embedding_scale = std::sqrt(static_cast<double>(into.decoder.width));
}
void ReadMbart(const Config& config, SequenceConfig& into) {
  into.pre_norms = into.final_norms = true;
  ReadBartDecoder(config, into);
}
void ReadTrOcr(const Config& config, SequenceConfig& into) {
  into.pre_norms = into.final_norms = false;
  ReadBartDecoder(config, into);
}

// transformers' modeling_bert.py, BertLMHeadModel.
void ReadBert(const Config& config, SequenceConfig& into) {
  if (config.Text("position_embedding_type", "absolute") != "absolute")
    config.Refuse("position_embedding_type", "\"absolute\"");
  into.pre_norms = into.final_norms = false;
  into.normed_embeddings = into.dense_logits = true;
  into.epsilon = config.Number("layer_norm_eps");
  into.decoder = {.layers = config.Int("num_hidden_layers"),
                  .width = config.Int("hidden_size"),
                  .heads = config.Int("num_attention_heads"),
                  .feed_forward = config.Int("intermediate_size"),
                  .vocabulary = config.Int("vocab_size"),
                  .most = config.Int("max_position_embeddings"),
                  .activation = ActivationOf(config, "hidden_act")};
}
// The position of the first token follows that of padding.
void ReadRoberta(const Config& config, SequenceConfig& into) {
  ReadBert(config, into);
  into.position_offset = config.Int("pad_token_id") + 1;
  into.decoder.most -= into.position_offset;
  // The head has its own activation.
  if (into.decoder.activation != networks::Activation::kGelu) config.Refuse("hidden_act", "gelu");
}

// transformers' modeling_gpt2.py, GPT2LMHeadModel with add_cross_attention.
void ReadGpt2(const Config& config, SequenceConfig& into) {
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"})
    if (config.Bool(key, false)) config.Refuse(key, "false");
  if (!config.Bool("scale_attn_weights", true)) config.Refuse("scale_attn_weights", "true");
  into.pre_norms = into.final_norms = true;
  into.normed_embeddings = false;
  into.epsilon = config.Number("layer_norm_epsilon");
  const int64_t width = config.Int("n_embd");
  constexpr int64_t kMostWidth = int64_t{1} << 24;
  into.decoder = {.layers = config.Int("n_layer"),
                  .width = width,
                  .heads = config.Int("n_head"),
                  .feed_forward = config.Int("n_inner", std::min(width, kMostWidth) * 4),
                  .vocabulary = config.Int("vocab_size"),
                  .most = config.Int("n_positions"),
                  .activation = ActivationOf(config, "activation_function")};
}

const std::vector<TensorName>& BartNames() { return EncoderDecoderNames(SequenceFamily::kBart); }
const std::vector<TensorName>& BertNames() { return EncoderDecoderNames(SequenceFamily::kBlip); }
const std::vector<TensorName>& RobertaNames() {
  static const std::vector<TensorName> names = [] {
    std::vector<TensorName> all = {{"lm.dense", "lm_head.dense"},
                                   {"lm.norm", "lm_head.layer_norm"},
                                   {"output.weight", "lm_head.decoder.weight"},
                                   {"output.bias", "lm_head.bias"},
                                   {"output.bias", "lm_head.decoder.bias"}};
    all.insert(all.end(), BertNames().begin(), BertNames().end());
    return all;
  }();
  return names;
}
const std::vector<TensorName>& Gpt2Names() {
  static const std::vector<TensorName> names = {
      {"decoder.tokens", "wte"},
      {"decoder.positions", "wpe"},
      {"decoder.norm", "ln_f"},
      {"decoder.layer.{}.attention_norm", "h.{}.ln_1"},
      {"decoder.layer.{}.qkv", "h.{}.attn.c_attn"},
      {"decoder.layer.{}.attention", "h.{}.attn.c_proj"},
      {"decoder.layer.{}.cross_norm", "h.{}.ln_cross_attn"},
      {"decoder.layer.{}.cross_query", "h.{}.crossattention.q_attn"},
      {"decoder.layer.{}.cross_kv", "h.{}.crossattention.c_attn"},
      {"decoder.layer.{}.cross", "h.{}.crossattention.c_proj"},
      {"decoder.layer.{}.norm", "h.{}.ln_2"},
      {"decoder.layer.{}.up", "h.{}.mlp.c_fc"},
      {"decoder.layer.{}.down", "h.{}.mlp.c_proj"},
      {"output.weight", "lm_head.weight"},
  };
  return names;
}

// All tokens have the type 0, whose embedding is part of those of positions.
Tensor FindOfBert(FolderWeights& weights, const std::string& name) {
  Tensor found = weights.Find(name);
  if (name != "decoder.positions.weight" || !found || found.rank() != 2) return found;
  const Tensor types = weights.Find("decoder.types.weight");
  if (!types || types.rank() != 2 || types.dims()[0] < 1 || types.dims()[1] != found.dims()[1])
    return found;
  const Tensor rows = found.Cast(DType::kFp32), first = types.Rows(0, 1).Cast(DType::kFp32);
  const Pin<float> positions = rows.data<float>(), type = first.data<float>();
  std::vector<float> sum(positions.begin(), positions.end());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += type[i % type.size()];
  return Tensor::Of<float>(found.dims(), sum).ComputedFrom(found);
}

// Layers have their inputs in rows, and several projections in one tensor (Conv1D).
Tensor FindOfGpt2(FolderWeights& weights, const std::string& name) {
  struct Part {
    std::string_view ours, theirs;
    int64_t number, count;
  };
  constexpr std::array<Part, 5> kParts = {{{".query.", ".qkv.", 0, 3},
                                           {".key.", ".qkv.", 1, 3},
                                           {".value.", ".qkv.", 2, 3},
                                           {".cross_key.", ".cross_kv.", 0, 2},
                                           {".cross_value.", ".cross_kv.", 1, 2}}};
  constexpr std::string_view kLayer = "decoder.layer.";
  if (!name.starts_with(kLayer)) return weights.Find(name);
  std::string stored = name;
  std::optional<Part> part;
  for (const Part& one : kParts)
    if (const size_t at = name.find(one.ours); at != name.npos) {
      part = one;
      stored.replace(at, one.ours.size(), one.theirs);
    }
  Tensor found = weights.Find(stored);
  if (!found) return found;
  if (found.rank() == 2) found = found.Transposed({1, 0});
  if (!part || found.rank() == 0 || found.dims()[0] % part->count != 0) return found;
  const int64_t rows = found.dims()[0] / part->count;
  return found.Rows(part->number * rows, (part->number + 1) * rows);
}

const PictureDecoder kDecoders[] = {
    {"bert",
     R"({"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu",
      "max_position_embeddings": 512, "layer_norm_eps": 1e-12, "pad_token_id": 0})",
     ReadBert, BertNames, "decoder.bert.", FindOfBert},
    {"gpt2",
     R"({"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12,
      "n_head": 12, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5})",
     ReadGpt2, Gpt2Names, "decoder.transformer.", FindOfGpt2},
    {"mbart",
     R"({"vocab_size": 50265, "d_model": 1024, "decoder_layers": 12,
      "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "activation_function": "gelu",
      "max_position_embeddings": 1024, "scale_embedding": false})",
     ReadMbart, BartNames, "decoder.model."},
    {"roberta",
     R"({"vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu",
      "max_position_embeddings": 512, "layer_norm_eps": 1e-12, "pad_token_id": 1})",
     ReadRoberta, RobertaNames, "decoder.roberta.", FindOfBert},
    {"trocr",
     R"({"vocab_size": 50265, "d_model": 1024, "decoder_layers": 12,
      "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "activation_function": "gelu",
      "max_position_embeddings": 512, "scale_embedding": false})",
     ReadTrOcr, BartNames, "decoder.model."},
};

}  // namespace

const PictureDecoder& PictureDecoderOf(const Config& decoder) {
  const std::string type = decoder.Text("model_type", "");
  std::string known;
  for (const PictureDecoder& row : kDecoders) {
    if (row.model_type == type) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.model_type);
  }
  throw Error("unsupported-architecture", "unsupported decoder \"{}\"", type)
      .At({decoder.file(), fmt::format("key \"{}\"", decoder.KeyPath("model_type"))})
      .Expected(known);
}

}  // namespace mlc::safetensors
