#include "frontends/gguf/names.h"

#include <fmt/format.h>

namespace mlc {

namespace {

// gguf-py's TENSOR_NAMES (ggml-org/llama.cpp, gguf-py/gguf/constants.py); {} is the layer.
struct NameRow {
  Role role;
  std::string_view name;
  std::string_view architecture = {};  // empty: all architectures without a specific row
  bool no_suffix = false;              // the name of the weight does not end in ".weight"
};
constexpr NameRow kNames[] = {
    {Role::kFeedForwardNorm, "blk.{}.post_attention_norm", "gpt-oss"},
    {Role::kFeedForwardNorm, "blk.{}.post_attention_norm", "seed_oss"},
    {Role::kFeedForwardNorm, "blk.{}.post_attention_norm", "qwen35"},
    {Role::kOutputNorm, "token_embd_norm", "lfm2"},
    {Role::kMixerInput, "blk.{}.shortconv.in_proj", "lfm2"},
    {Role::kConvolution, "blk.{}.shortconv.conv", "lfm2"},
    {Role::kMixerOutput, "blk.{}.shortconv.out_proj", "lfm2"},
    {Role::kTokens, "token_embd"},
    {Role::kPositions, "position_embd"},
    {Role::kRotaryFactors, "rope_freqs"},
    {Role::kRotaryLongFactors, "rope_factors_long"},
    {Role::kRotaryShortFactors, "rope_factors_short"},
    {Role::kOutputNorm, "output_norm"},
    {Role::kOutput, "output"},
    {Role::kAttentionNorm, "blk.{}.attn_norm"},
    {Role::kSecondAttentionNorm, "blk.{}.attn_norm_2"},
    {Role::kQuery, "blk.{}.attn_q"},
    {Role::kKey, "blk.{}.attn_k"},
    {Role::kValue, "blk.{}.attn_v"},
    {Role::kQkv, "blk.{}.attn_qkv"},
    {Role::kQueryNorm, "blk.{}.attn_q_norm"},
    {Role::kKeyNorm, "blk.{}.attn_k_norm"},
    {Role::kSinks, "blk.{}.attn_sinks"},
    {Role::kAttentionOutput, "blk.{}.attn_output"},
    {Role::kPostAttentionNorm, "blk.{}.post_attention_norm"},
    {Role::kFeedForwardNorm, "blk.{}.ffn_norm"},
    {Role::kGate, "blk.{}.ffn_gate"},
    {Role::kUp, "blk.{}.ffn_up"},
    {Role::kDown, "blk.{}.ffn_down"},
    {Role::kPostFeedForwardNorm, "blk.{}.post_ffw_norm"},
    {Role::kRouter, "blk.{}.ffn_gate_inp"},
    {Role::kExpertGates, "blk.{}.ffn_gate_exps"},
    {Role::kExpertUps, "blk.{}.ffn_up_exps"},
    {Role::kExpertDowns, "blk.{}.ffn_down_exps"},
    {Role::kSharedRouter, "blk.{}.ffn_gate_inp_shexp"},
    {Role::kSharedGate, "blk.{}.ffn_gate_shexp"},
    {Role::kSharedUp, "blk.{}.ffn_up_shexp"},
    {Role::kSharedDown, "blk.{}.ffn_down_shexp"},
    {Role::kMixerInput, "blk.{}.ssm_in"},
    {Role::kConvolution, "blk.{}.ssm_conv1d"},
    {Role::kSelection, "blk.{}.ssm_x"},
    {Role::kTimeStep, "blk.{}.ssm_dt"},
    {Role::kAlpha, "blk.{}.ssm_alpha"},
    {Role::kBeta, "blk.{}.ssm_beta"},
    {Role::kDecay, "blk.{}.ssm_a", "", true},
    {Role::kSkip, "blk.{}.ssm_d", "", true},
    {Role::kMixerGate, "blk.{}.attn_gate"},
    {Role::kMixerNorm, "blk.{}.ssm_norm"},
    {Role::kMixerOutput, "blk.{}.ssm_out"},
};

}  // namespace

std::string GgufName(std::string_view architecture, Role role, Part part, int64_t layer) {
  for (const NameRow& row : kNames)
    if (row.role == role && (row.architecture.empty() || row.architecture == architecture))
      return fmt::format(fmt::runtime(row.name), layer) + (part == Part::kBias ? ".bias"
                                                           : row.no_suffix     ? ""
                                                                               : ".weight");
  return "";
}

}  // namespace mlc
