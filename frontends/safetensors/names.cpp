// Hugging Face's names of the tensors of a decoder.
#include <fmt/format.h>

#include "frontends/safetensors/decoder_rows.h"

namespace mlc::safetensors {

namespace {

constexpr Arrangement kTransposed = Arrangement::kTransposed, kByHead = Arrangement::kByHead,
                      kPerExpert = Arrangement::kPerExpert,
                      kSkipTwoRows = Arrangement::kSkipTwoRows,
                      kDepthwise = Arrangement::kDepthwise;

// The names are those of modules in transformers' models/MODEL_TYPE/modeling_*.py.
constexpr HuggingFaceName kNames[] = {
    {networks::Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm", "exaone4"},
    {networks::Role::kPostFeedForwardNorm, "model.layers.{}.post_feedforward_layernorm", "exaone4"},

    {networks::Role::kTokens, "transformer.word_embeddings", "falcon"},
    {networks::Role::kOutputNorm, "transformer.ln_f", "falcon"},
    {networks::Role::kAttentionNorm, "transformer.h.{}.input_layernorm", "falcon"},
    {networks::Role::kFeedForwardNorm, "transformer.h.{}.post_attention_layernorm", "falcon"},
    {networks::Role::kQkv, "transformer.h.{}.self_attention.query_key_value", "falcon"},
    {networks::Role::kAttentionOutput, "transformer.h.{}.self_attention.dense", "falcon"},
    {networks::Role::kUp, "transformer.h.{}.mlp.dense_h_to_4h", "falcon"},
    {networks::Role::kDown, "transformer.h.{}.mlp.dense_4h_to_h", "falcon"},

    {networks::Role::kFeedForwardNorm, "model.layers.{}.pre_feedforward_layernorm", "gemma2"},
    {networks::Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm", "gemma2"},
    {networks::Role::kPostFeedForwardNorm, "model.layers.{}.post_feedforward_layernorm", "gemma2"},

    {networks::Role::kFeedForwardNorm, "model.layers.{}.pre_feedforward_layernorm", "gemma3_text"},
    {networks::Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm", "gemma3_text"},
    {networks::Role::kPostFeedForwardNorm, "model.layers.{}.post_feedforward_layernorm",
     "gemma3_text"},

    {networks::Role::kTokens, "transformer.wte", "gpt2"},
    {networks::Role::kPositions, "transformer.wpe", "gpt2"},
    {networks::Role::kOutputNorm, "transformer.ln_f", "gpt2"},
    {networks::Role::kAttentionNorm, "transformer.h.{}.ln_1", "gpt2"},
    {networks::Role::kQkv, "transformer.h.{}.attn.c_attn", "gpt2", kTransposed},
    {networks::Role::kAttentionOutput, "transformer.h.{}.attn.c_proj", "gpt2", kTransposed},
    {networks::Role::kFeedForwardNorm, "transformer.h.{}.ln_2", "gpt2"},
    {networks::Role::kUp, "transformer.h.{}.mlp.c_fc", "gpt2", kTransposed},
    {networks::Role::kDown, "transformer.h.{}.mlp.c_proj", "gpt2", kTransposed},

    {networks::Role::kTokens, "gpt_neox.embed_in", "gpt_neox"},
    {networks::Role::kOutputNorm, "gpt_neox.final_layer_norm", "gpt_neox"},
    {networks::Role::kOutput, "embed_out", "gpt_neox"},
    {networks::Role::kAttentionNorm, "gpt_neox.layers.{}.input_layernorm", "gpt_neox"},
    {networks::Role::kQkv, "gpt_neox.layers.{}.attention.query_key_value", "gpt_neox", kByHead},
    {networks::Role::kAttentionOutput, "gpt_neox.layers.{}.attention.dense", "gpt_neox"},
    {networks::Role::kFeedForwardNorm, "gpt_neox.layers.{}.post_attention_layernorm", "gpt_neox"},
    {networks::Role::kUp, "gpt_neox.layers.{}.mlp.dense_h_to_4h", "gpt_neox"},
    {networks::Role::kDown, "gpt_neox.layers.{}.mlp.dense_4h_to_h", "gpt_neox"},

    {networks::Role::kOutputNorm, "model.embedding_norm", "lfm2"},
    {networks::Role::kAttentionNorm, "model.layers.{}.operator_norm", "lfm2"},
    {networks::Role::kQueryNorm, "model.layers.{}.self_attn.q_layernorm", "lfm2"},
    {networks::Role::kKeyNorm, "model.layers.{}.self_attn.k_layernorm", "lfm2"},
    {networks::Role::kAttentionOutput, "model.layers.{}.self_attn.out_proj", "lfm2"},
    {networks::Role::kFeedForwardNorm, "model.layers.{}.ffn_norm", "lfm2"},
    {networks::Role::kGate, "model.layers.{}.feed_forward.w1", "lfm2"},
    {networks::Role::kUp, "model.layers.{}.feed_forward.w3", "lfm2"},
    {networks::Role::kDown, "model.layers.{}.feed_forward.w2", "lfm2"},
    {networks::Role::kMixerInput, "model.layers.{}.conv.in_proj", "lfm2"},
    {networks::Role::kConvolution, "model.layers.{}.conv.conv", "lfm2", kDepthwise},
    {networks::Role::kMixerOutput, "model.layers.{}.conv.out_proj", "lfm2"},

    {networks::Role::kRouter, "model.layers.{}.block_sparse_moe.gate", "mixtral"},
    {networks::Role::kExpertGates, "model.layers.{}.block_sparse_moe.experts.{}.w1", "mixtral",
     kPerExpert},
    {networks::Role::kExpertUps, "model.layers.{}.block_sparse_moe.experts.{}.w3", "mixtral",
     kPerExpert},
    {networks::Role::kExpertDowns, "model.layers.{}.block_sparse_moe.experts.{}.w2", "mixtral",
     kPerExpert},

    {networks::Role::kTokens, "model.decoder.embed_tokens", "opt"},
    {networks::Role::kPositions, "model.decoder.embed_positions", "opt", kSkipTwoRows},
    {networks::Role::kOutputNorm, "model.decoder.final_layer_norm", "opt"},
    {networks::Role::kAttentionNorm, "model.decoder.layers.{}.self_attn_layer_norm", "opt"},
    {networks::Role::kQuery, "model.decoder.layers.{}.self_attn.q_proj", "opt"},
    {networks::Role::kKey, "model.decoder.layers.{}.self_attn.k_proj", "opt"},
    {networks::Role::kValue, "model.decoder.layers.{}.self_attn.v_proj", "opt"},
    {networks::Role::kAttentionOutput, "model.decoder.layers.{}.self_attn.out_proj", "opt"},
    {networks::Role::kFeedForwardNorm, "model.decoder.layers.{}.final_layer_norm", "opt"},
    {networks::Role::kUp, "model.decoder.layers.{}.fc1", "opt"},
    {networks::Role::kDown, "model.decoder.layers.{}.fc2", "opt"},

    {networks::Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm", "olmo2"},
    {networks::Role::kPostFeedForwardNorm, "model.layers.{}.post_feedforward_layernorm", "olmo2"},

    {networks::Role::kOutputNorm, "model.final_layernorm", "phi"},
    {networks::Role::kAttentionOutput, "model.layers.{}.self_attn.dense", "phi"},
    {networks::Role::kUp, "model.layers.{}.mlp.fc1", "phi"},
    {networks::Role::kDown, "model.layers.{}.mlp.fc2", "phi"},

    {networks::Role::kUp, "model.layers.{}.mlp.gate_up_proj", "phi3"},

    {networks::Role::kUp, "model.layers.{}.mlp.c_fc", "starcoder2"},
    {networks::Role::kDown, "model.layers.{}.mlp.c_proj", "starcoder2"},

    {networks::Role::kTokens, "model.embed_tokens"},
    {networks::Role::kOutputNorm, "model.norm"},
    {networks::Role::kOutput, "lm_head"},
    {networks::Role::kAttentionNorm, "model.layers.{}.input_layernorm"},
    {networks::Role::kQuery, "model.layers.{}.self_attn.q_proj"},
    {networks::Role::kKey, "model.layers.{}.self_attn.k_proj"},
    {networks::Role::kValue, "model.layers.{}.self_attn.v_proj"},
    {networks::Role::kQkv, "model.layers.{}.self_attn.qkv_proj"},
    {networks::Role::kQueryNorm, "model.layers.{}.self_attn.q_norm"},
    {networks::Role::kKeyNorm, "model.layers.{}.self_attn.k_norm"},
    {networks::Role::kAttentionOutput, "model.layers.{}.self_attn.o_proj"},
    {networks::Role::kFeedForwardNorm, "model.layers.{}.post_attention_layernorm"},
    {networks::Role::kGate, "model.layers.{}.mlp.gate_proj"},
    {networks::Role::kUp, "model.layers.{}.mlp.up_proj"},
    {networks::Role::kDown, "model.layers.{}.mlp.down_proj"},
    {networks::Role::kRouter, "model.layers.{}.mlp.gate"},
    {networks::Role::kSharedRouter, "model.layers.{}.mlp.shared_expert_gate"},
    {networks::Role::kSharedGate, "model.layers.{}.mlp.shared_expert.gate_proj"},
    {networks::Role::kSharedUp, "model.layers.{}.mlp.shared_expert.up_proj"},
    {networks::Role::kSharedDown, "model.layers.{}.mlp.shared_expert.down_proj"},
    {networks::Role::kExpertGates, "model.layers.{}.mlp.experts.{}.gate_proj", "", kPerExpert},
    {networks::Role::kExpertUps, "model.layers.{}.mlp.experts.{}.up_proj", "", kPerExpert},
    {networks::Role::kExpertDowns, "model.layers.{}.mlp.experts.{}.down_proj", "", kPerExpert},
};

constexpr std::string_view kLeftOver[] = {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
                                          ".attention.bias", ".attention.masked_bias"};

}  // namespace

const HuggingFaceName* FindHuggingFaceName(std::string_view model_type, networks::Role role) {
  for (const HuggingFaceName& row : kNames)
    if (row.role == role && (row.model_type.empty() || row.model_type == model_type)) return &row;
  return nullptr;
}

std::string NameOf(const HuggingFaceName& row, networks::Part part, int64_t layer, int64_t expert) {
  return fmt::format(fmt::runtime(row.name), layer, expert) +
         (part == networks::Part::kWeight ? ".weight" : ".bias");
}

bool IsLeftOver(std::string_view name) {
  for (std::string_view end : kLeftOver)
    if (name.ends_with(end)) return true;
  return false;
}

}  // namespace mlc::safetensors
