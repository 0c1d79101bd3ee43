#include "frontends/safetensors/config_defaults.h"

#include <algorithm>

namespace mlc::safetensors {

namespace {

// Sources: the `bias` of torch.nn.Linear and of norms in huggingface/transformers,
// src/transformers/models/*/modeling_*.py; nomic_bert: nomic-ai/contrastors, models/huggingface.
constexpr BiasRule kNoBiases[] = {{""}};
// The heads of T5 have biases; its other layers have none.
constexpr BiasRule kT5Biases[] = {
    {"classification_head.", "", true}, {"qa_outputs.", "", true}, {""}};
constexpr BiasRule kAttentionBias[] = {{".self_attn.", "attention_bias"}, {""}};
constexpr BiasRule kAttentionAndMlpBias[] = {
    {".self_attn.", "attention_bias"}, {".mlp.", "mlp_bias"}, {""}};
constexpr BiasRule kQkvBiases[] = {
    {".q_proj.", "", true}, {".k_proj.", "", true}, {".v_proj.", "", true}, {""}};
constexpr BiasRule kQwen2MoeBiases[] = {{".q_proj.", "qkv_bias", true},
                                        {".k_proj.", "qkv_bias", true},
                                        {".v_proj.", "qkv_bias", true},
                                        {""}};
constexpr BiasRule kErnieBiases[] = {{".self_attn.", "use_bias"}, {".mlp.", "use_bias"}, {""}};
constexpr BiasRule kFalconBiases[] = {
    {".self_attention.", "bias"}, {".mlp.", "bias"}, {"lm_head."}};
constexpr BiasRule kHeadBias[] = {{"lm_head."}};
constexpr BiasRule kGptNeoxBiases[] = {{".attention.", "attention_bias", true}, {"embed_out."}};
constexpr BiasRule kModernbertBiases[] = {{".attn.", "attention_bias"},
                                          {"norm.", "norm_bias"},
                                          {".mlp.", "mlp_bias"},
                                          {"decoder.", "decoder_bias", true},
                                          {"head.dense.", "classifier_bias"}};
constexpr BiasRule kLfm2Biases[] = {{".conv.", "conv_bias"}, {""}};
constexpr BiasRule kNomicBiases[] = {{".attn.", "qkv_proj_bias", true},
                                     {".mlp.fc1", "mlp_fc1_bias", true},
                                     {".mlp.fc2", "mlp_fc2_bias", true}};
constexpr BiasRule kOptBiases[] = {
    {"norm.", "", true}, {".layers.", "enable_bias", true}, {"lm_head."}};
constexpr BiasRule kSeedOssBiases[] = {{".o_proj.", "attention_out_bias"},
                                       {".self_attn.", "attention_bias", true},
                                       {".mlp.", "mlp_bias"},
                                       {""}};
constexpr BiasRule kStablelmBiases[] = {{".q_proj.", "use_qkv_bias"},
                                        {".k_proj.", "use_qkv_bias"},
                                        {".v_proj.", "use_qkv_bias"},
                                        {"norm.", "", true},
                                        {""}};
constexpr BiasRule kStarcoder2Biases[] = {
    {"norm.", "", true}, {".self_attn.", "use_bias", true}, {".mlp.", "use_bias", true}, {""}};

// Source: huggingface/transformers, src/transformers/models/*/configuration_*.py. A row lists the
// members that mlc reads and that differ from "llama", and optional members that affect results.
// The activations are in the rows of the architectures.
constexpr Family kFamilies[] = {
    {"albert", {}, {}, R"({"hidden_act": "gelu_new", "embedding_size": 128, "layer_norm_eps": 1e-12,
      "max_position_embeddings": 512, "type_vocab_size": 2, "pad_token_id": 0})"},
    {"bert", {}, {}, R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "type_vocab_size": 2,
      "max_position_embeddings": 512, "pad_token_id": 0})"},
    {"cohere2", Windows::kAll, kAttentionBias, R"({"layer_norm_eps": 1e-5, "logit_scale": 0.0625,
      "rope_theta": 10000, "sliding_window": 4096, "max_position_embeddings": 8192,
      "tie_word_embeddings": true})"},
    {"deberta-v2", {}, {}, R"({"hidden_act": "gelu", "layer_norm_eps": 1e-7, "type_vocab_size": 0,
      "max_position_embeddings": 512, "pooler_hidden_act": "gelu"})"},
    {"distilbert", {}, {}, R"({"activation": "gelu", "max_position_embeddings": 512})"},
    {"electra", {}, {}, R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "embedding_size": 128,
      "type_vocab_size": 2, "max_position_embeddings": 512})"},
    {"ernie4_5", {}, kErnieBiases, R"({"rms_norm_eps": 1e-5, "rope_theta": 500000, "head_dim": 128,
      "max_position_embeddings": 131072, "tie_word_embeddings": true})"},
    {"exaone4", Windows::kAll, kNoBiases, R"({"rms_norm_eps": 1e-5, "rope_theta": 10000,
      "num_key_value_heads": 32, "sliding_window": 4096, "max_position_embeddings": 2048,
      "tie_word_embeddings": false})"},
    {"falcon", {}, kFalconBiases, R"({"layer_norm_epsilon": 1e-5, "rope_theta": 10000,
      "multi_query": true, "parallel_attn": true, "max_position_embeddings": 2048,
      "tie_word_embeddings": true})"},
    {"gemma", {}, kAttentionBias, R"({"rms_norm_eps": 1e-6, "rope_theta": 10000, "head_dim": 256,
      "num_key_value_heads": 16, "max_position_embeddings": 8192, "tie_word_embeddings": true})"},
    {"gemma2", Windows::kAll, kAttentionBias, R"({"rms_norm_eps": 1e-6, "rope_theta": 10000,
      "head_dim": 256, "num_key_value_heads": 4, "query_pre_attn_scalar": 256,
      "sliding_window": 4096, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
      "max_position_embeddings": 8192, "tie_word_embeddings": true})"},
    {"gemma3_text", Windows::kAll, kAttentionBias, R"({"rms_norm_eps": 1e-6, "rope_theta": 1000000,
      "rope_local_base_freq": 10000, "head_dim": 256, "num_key_value_heads": 4,
      "query_pre_attn_scalar": 256, "sliding_window": 4096, "max_position_embeddings": 131072,
      "tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh"})"},
    {"gpt2", {}, kHeadBias, R"({"layer_norm_epsilon": 1e-5, "n_positions": 1024,
      "tie_word_embeddings": true})"},
    {"gpt_neox", {}, kGptNeoxBiases, R"({"layer_norm_eps": 1e-5, "rotary_pct": 0.25,
      "rotary_emb_base": 10000, "use_parallel_residual": true, "max_position_embeddings": 2048,
      "tie_word_embeddings": false})"},
    {"granite", {}, kAttentionAndMlpBias, R"({"rms_norm_eps": 1e-6, "rope_theta": 10000,
      "attention_multiplier": 1.0, "max_position_embeddings": 2048,
      "tie_word_embeddings": false})"},
    {"lfm2", {}, kLfm2Biases, R"({"norm_eps": 1e-5, "rope_theta": 1000000,
      "num_key_value_heads": 8, "conv_L_cache": 3, "block_multiple_of": 256,
      "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": true,
      "max_position_embeddings": 128000, "tie_word_embeddings": true})"},
    {"llama", {}, kAttentionAndMlpBias, R"({"rms_norm_eps": 1e-6, "rope_theta": 10000,
      "max_position_embeddings": 2048, "tie_word_embeddings": false})"},
    {"mistral", Windows::kAll, kNoBiases, R"({"rms_norm_eps": 1e-6, "rope_theta": 10000,
      "num_key_value_heads": 8, "sliding_window": 4096, "max_position_embeddings": 131072,
      "tie_word_embeddings": false})"},
    {"mixtral", Windows::kAll, kNoBiases, R"({"rms_norm_eps": 1e-5, "rope_theta": 1000000,
      "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
      "max_position_embeddings": 131072, "tie_word_embeddings": false})"},
    {"modernbert", {}, kModernbertBiases, R"({"hidden_activation": "gelu", "norm_eps": 1e-5,
      "max_position_embeddings": 8192, "global_rope_theta": 160000, "local_rope_theta": 10000,
      "global_attn_every_n_layers": 3, "local_attention": 128, "classifier_activation": "gelu",
      "classifier_pooling": "cls"})"},
    {"mpnet", {}, {}, R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12,
      "max_position_embeddings": 512, "relative_attention_num_buckets": 32, "pad_token_id": 1})"},
    {"mt5", {}, kT5Biases, R"({"d_kv": 64, "feed_forward_proj": "gated-gelu",
      "layer_norm_epsilon": 1e-6, "relative_attention_num_buckets": 32,
      "relative_attention_max_distance": 128, "n_positions": 512, "vocab_size": 250112,
      "d_model": 512, "d_ff": 1024, "num_layers": 8, "num_heads": 6})"},
    {"nomic_bert", {}, kNomicBiases, "{}"},
    {"olmo2", {}, kAttentionBias, R"({"rms_norm_eps": 1e-5, "rope_theta": 10000,
      "max_position_embeddings": 2048, "tie_word_embeddings": false})"},
    {"opt", {}, kOptBiases, R"({"do_layer_norm_before": true, "max_position_embeddings": 2048,
      "tie_word_embeddings": true})"},
    {"phi", {}, {}, R"({"layer_norm_eps": 1e-5, "rope_theta": 10000, "partial_rotary_factor": 0.5,
      "max_position_embeddings": 2048, "tie_word_embeddings": false})"},
    {"phi3", Windows::kAll, kNoBiases, R"({"rms_norm_eps": 1e-5, "rope_theta": 10000,
      "max_position_embeddings": 4096, "original_max_position_embeddings": 4096,
      "tie_word_embeddings": false})"},
    {"qwen2", Windows::kBehind, kQkvBiases, R"({"rms_norm_eps": 1e-6, "rope_theta": 10000,
      "num_key_value_heads": 32, "use_sliding_window": false, "sliding_window": 4096,
      "max_window_layers": 28, "max_position_embeddings": 32768, "tie_word_embeddings": false})"},
    {"qwen2_moe", Windows::kNotWanted, kQwen2MoeBiases, R"({"rms_norm_eps": 1e-6,
      "rope_theta": 10000, "num_key_value_heads": 16, "num_experts": 60, "num_experts_per_tok": 4,
      "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
      "norm_topk_prob": false, "max_position_embeddings": 32768, "tie_word_embeddings": false})"},
    {"qwen3", Windows::kBehind, kAttentionBias, R"({"rms_norm_eps": 1e-6, "rope_theta": 10000,
      "head_dim": 128, "num_key_value_heads": 32, "use_sliding_window": false,
      "sliding_window": 4096, "max_window_layers": 28, "max_position_embeddings": 32768,
      "tie_word_embeddings": false})"},
    {"qwen3_moe", Windows::kNotWanted, kAttentionBias, R"({"rms_norm_eps": 1e-6,
      "rope_theta": 10000, "num_key_value_heads": 4, "num_experts": 128, "num_experts_per_tok": 8,
      "moe_intermediate_size": 768, "norm_topk_prob": false, "max_position_embeddings": 32768,
      "tie_word_embeddings": false})"},
    {"roberta", {}, {}, R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "type_vocab_size": 2,
      "max_position_embeddings": 512, "pad_token_id": 1})"},
    {"seed_oss", {}, kSeedOssBiases, R"({"rms_norm_eps": 1e-6, "rope_theta": 10000, "head_dim": 128,
      "num_key_value_heads": 8, "max_position_embeddings": 524288, "tie_word_embeddings": false})"},
    {"smollm3", Windows::kNotWanted, kAttentionAndMlpBias, R"({"rms_norm_eps": 1e-6,
      "rope_theta": 2000000, "num_key_value_heads": 4, "no_rope_layer_interval": 4,
      "max_position_embeddings": 32768, "tie_word_embeddings": true})"},
    {"stablelm", {}, kStablelmBiases, R"({"layer_norm_eps": 1e-5, "rope_theta": 10000,
      "partial_rotary_factor": 0.25, "num_key_value_heads": 32, "max_position_embeddings": 4096,
      "tie_word_embeddings": false})"},
    {"starcoder2", Windows::kAll, kStarcoder2Biases, R"({"norm_epsilon": 1e-5, "rope_theta": 10000,
      "num_key_value_heads": 2, "max_position_embeddings": 4096, "tie_word_embeddings": true})"},
    {"t5", {}, kT5Biases, R"({"d_kv": 64, "feed_forward_proj": "relu", "layer_norm_epsilon": 1e-6,
      "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
      "n_positions": 512, "vocab_size": 32128, "d_model": 512, "d_ff": 2048, "num_layers": 6,
      "num_heads": 8})"},
    {"umt5", {}, kT5Biases, R"({"d_kv": 64, "feed_forward_proj": "gated-gelu",
      "layer_norm_epsilon": 1e-6, "relative_attention_num_buckets": 32,
      "relative_attention_max_distance": 128, "n_positions": 512, "vocab_size": 250112,
      "d_model": 512, "d_ff": 1024, "num_layers": 8, "num_heads": 6})"},
    {"xlm-roberta", {}, {}, R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "type_vocab_size": 2,
      "max_position_embeddings": 512, "pad_token_id": 1})"},
};

}  // namespace

const Family* FindFamily(std::string_view model_type) {
  for (const Family& family : kFamilies)
    if (family.model_type == model_type) return &family;
  return nullptr;
}

Config WithFamilyDefaults(const Config& config) {
  const Family* family = FindFamily(config.Text("model_type", ""));
  return family ? config.WithDefaults(family->defaults) : config;
}

std::vector<std::string> UnexpectedBiases(const Config& config,
                                          const std::vector<std::string>& names) {
  const Family* family = FindFamily(config.Text("model_type", ""));
  std::vector<std::string> unexpected;
  if (!family) return unexpected;
  for (const std::string& name : names) {
    if (!name.ends_with(".bias")) continue;
    for (const BiasRule& rule : family->biases) {
      if (name.find(rule.where) == std::string::npos) continue;
      const bool there =
          rule.key.empty() ? rule.there : config.Bool(std::string(rule.key), rule.there);
      if (!there) unexpected.push_back(name);
      break;
    }
  }
  return unexpected;
}

std::vector<std::string> MissingBiases(const Config& config,
                                       const std::vector<std::string>& names) {
  const Family* family = FindFamily(config.Text("model_type", ""));
  std::vector<std::string> missing;
  if (!family) return missing;
  for (const BiasRule& rule : family->biases) {
    if (rule.key.empty() || !config.Bool(std::string(rule.key), false)) continue;
    const bool found = std::ranges::any_of(names, [&](const std::string& name) {
      return name.ends_with(".bias") && name.find(rule.where) != std::string::npos;
    });
    if (!found) missing.emplace_back(rule.key);
  }
  return missing;
}

}  // namespace mlc::safetensors
