#include "frontends/safetensors/names.h"

#include <fmt/format.h>

namespace mlc {

namespace {

constexpr Arrangement kTransposed = Arrangement::kTransposed, kByHead = Arrangement::kByHead,
                      kPerExpert = Arrangement::kPerExpert,
                      kSkipTwoRows = Arrangement::kSkipTwoRows;

// The names are those of modules in transformers' models/MODEL_TYPE/modeling_*.py.
constexpr HuggingFaceName kNames[] = {
    {Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm", "exaone4"},
    {Role::kPostFeedForwardNorm, "model.layers.{}.post_feedforward_layernorm", "exaone4"},

    {Role::kTokens, "transformer.word_embeddings", "falcon"},
    {Role::kOutputNorm, "transformer.ln_f", "falcon"},
    {Role::kAttentionNorm, "transformer.h.{}.input_layernorm", "falcon"},
    {Role::kFeedForwardNorm, "transformer.h.{}.post_attention_layernorm", "falcon"},
    {Role::kQkv, "transformer.h.{}.self_attention.query_key_value", "falcon"},
    {Role::kAttentionOutput, "transformer.h.{}.self_attention.dense", "falcon"},
    {Role::kUp, "transformer.h.{}.mlp.dense_h_to_4h", "falcon"},
    {Role::kDown, "transformer.h.{}.mlp.dense_4h_to_h", "falcon"},

    {Role::kFeedForwardNorm, "model.layers.{}.pre_feedforward_layernorm", "gemma2"},
    {Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm", "gemma2"},
    {Role::kPostFeedForwardNorm, "model.layers.{}.post_feedforward_layernorm", "gemma2"},

    {Role::kFeedForwardNorm, "model.layers.{}.pre_feedforward_layernorm", "gemma3_text"},
    {Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm", "gemma3_text"},
    {Role::kPostFeedForwardNorm, "model.layers.{}.post_feedforward_layernorm", "gemma3_text"},

    {Role::kTokens, "transformer.wte", "gpt2"},
    {Role::kPositions, "transformer.wpe", "gpt2"},
    {Role::kOutputNorm, "transformer.ln_f", "gpt2"},
    {Role::kAttentionNorm, "transformer.h.{}.ln_1", "gpt2"},
    {Role::kQkv, "transformer.h.{}.attn.c_attn", "gpt2", kTransposed},
    {Role::kAttentionOutput, "transformer.h.{}.attn.c_proj", "gpt2", kTransposed},
    {Role::kFeedForwardNorm, "transformer.h.{}.ln_2", "gpt2"},
    {Role::kUp, "transformer.h.{}.mlp.c_fc", "gpt2", kTransposed},
    {Role::kDown, "transformer.h.{}.mlp.c_proj", "gpt2", kTransposed},

    {Role::kTokens, "gpt_neox.embed_in", "gpt_neox"},
    {Role::kOutputNorm, "gpt_neox.final_layer_norm", "gpt_neox"},
    {Role::kOutput, "embed_out", "gpt_neox"},
    {Role::kAttentionNorm, "gpt_neox.layers.{}.input_layernorm", "gpt_neox"},
    {Role::kQkv, "gpt_neox.layers.{}.attention.query_key_value", "gpt_neox", kByHead},
    {Role::kAttentionOutput, "gpt_neox.layers.{}.attention.dense", "gpt_neox"},
    {Role::kFeedForwardNorm, "gpt_neox.layers.{}.post_attention_layernorm", "gpt_neox"},
    {Role::kUp, "gpt_neox.layers.{}.mlp.dense_h_to_4h", "gpt_neox"},
    {Role::kDown, "gpt_neox.layers.{}.mlp.dense_4h_to_h", "gpt_neox"},

    {Role::kRouter, "model.layers.{}.block_sparse_moe.gate", "mixtral"},
    {Role::kExpertGates, "model.layers.{}.block_sparse_moe.experts.{}.w1", "mixtral", kPerExpert},
    {Role::kExpertUps, "model.layers.{}.block_sparse_moe.experts.{}.w3", "mixtral", kPerExpert},
    {Role::kExpertDowns, "model.layers.{}.block_sparse_moe.experts.{}.w2", "mixtral", kPerExpert},

    {Role::kTokens, "model.decoder.embed_tokens", "opt"},
    {Role::kPositions, "model.decoder.embed_positions", "opt", kSkipTwoRows},
    {Role::kOutputNorm, "model.decoder.final_layer_norm", "opt"},
    {Role::kAttentionNorm, "model.decoder.layers.{}.self_attn_layer_norm", "opt"},
    {Role::kQuery, "model.decoder.layers.{}.self_attn.q_proj", "opt"},
    {Role::kKey, "model.decoder.layers.{}.self_attn.k_proj", "opt"},
    {Role::kValue, "model.decoder.layers.{}.self_attn.v_proj", "opt"},
    {Role::kAttentionOutput, "model.decoder.layers.{}.self_attn.out_proj", "opt"},
    {Role::kFeedForwardNorm, "model.decoder.layers.{}.final_layer_norm", "opt"},
    {Role::kUp, "model.decoder.layers.{}.fc1", "opt"},
    {Role::kDown, "model.decoder.layers.{}.fc2", "opt"},

    {Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm", "olmo2"},
    {Role::kPostFeedForwardNorm, "model.layers.{}.post_feedforward_layernorm", "olmo2"},

    {Role::kOutputNorm, "model.final_layernorm", "phi"},
    {Role::kAttentionOutput, "model.layers.{}.self_attn.dense", "phi"},
    {Role::kUp, "model.layers.{}.mlp.fc1", "phi"},
    {Role::kDown, "model.layers.{}.mlp.fc2", "phi"},

    {Role::kUp, "model.layers.{}.mlp.gate_up_proj", "phi3"},

    {Role::kUp, "model.layers.{}.mlp.c_fc", "starcoder2"},
    {Role::kDown, "model.layers.{}.mlp.c_proj", "starcoder2"},

    {Role::kTokens, "model.embed_tokens"},
    {Role::kOutputNorm, "model.norm"},
    {Role::kOutput, "lm_head"},
    {Role::kAttentionNorm, "model.layers.{}.input_layernorm"},
    {Role::kQuery, "model.layers.{}.self_attn.q_proj"},
    {Role::kKey, "model.layers.{}.self_attn.k_proj"},
    {Role::kValue, "model.layers.{}.self_attn.v_proj"},
    {Role::kQkv, "model.layers.{}.self_attn.qkv_proj"},
    {Role::kQueryNorm, "model.layers.{}.self_attn.q_norm"},
    {Role::kKeyNorm, "model.layers.{}.self_attn.k_norm"},
    {Role::kAttentionOutput, "model.layers.{}.self_attn.o_proj"},
    {Role::kFeedForwardNorm, "model.layers.{}.post_attention_layernorm"},
    {Role::kGate, "model.layers.{}.mlp.gate_proj"},
    {Role::kUp, "model.layers.{}.mlp.up_proj"},
    {Role::kDown, "model.layers.{}.mlp.down_proj"},
    {Role::kRouter, "model.layers.{}.mlp.gate"},
    {Role::kSharedRouter, "model.layers.{}.mlp.shared_expert_gate"},
    {Role::kSharedGate, "model.layers.{}.mlp.shared_expert.gate_proj"},
    {Role::kSharedUp, "model.layers.{}.mlp.shared_expert.up_proj"},
    {Role::kSharedDown, "model.layers.{}.mlp.shared_expert.down_proj"},
    {Role::kExpertGates, "model.layers.{}.mlp.experts.{}.gate_proj", "", kPerExpert},
    {Role::kExpertUps, "model.layers.{}.mlp.experts.{}.up_proj", "", kPerExpert},
    {Role::kExpertDowns, "model.layers.{}.mlp.experts.{}.down_proj", "", kPerExpert},
};

constexpr std::string_view kLeftOver[] = {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
                                          ".attention.bias", ".attention.masked_bias"};

}  // namespace

const HuggingFaceName* FindHuggingFaceName(std::string_view model_type, Role role) {
  for (const HuggingFaceName& row : kNames)
    if (row.role == role && (row.model_type.empty() || row.model_type == model_type)) return &row;
  return nullptr;
}

std::string NameOf(const HuggingFaceName& row, Part part, int64_t layer, int64_t expert) {
  return fmt::format(fmt::runtime(row.name), layer, expert) +
         (part == Part::kWeight ? ".weight" : ".bias");
}

bool IsLeftOver(std::string_view name) {
  for (std::string_view end : kLeftOver)
    if (name.ends_with(end)) return true;
  return false;
}

}  // namespace mlc
