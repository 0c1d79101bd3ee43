// GGUF's names of the tensors of a decoder.
#include <fmt/format.h>

#include "frontends/gguf/decoder_rows.h"

namespace mlc::gguf {

namespace {

// gguf-py's TENSOR_NAMES (ggml-org/llama.cpp, gguf-py/gguf/constants.py); {} is the layer.
struct NameRow {
  networks::Role role;
  std::string_view name;
  std::string_view architecture = {};  // empty: all architectures without a specific row
  bool no_suffix = false;              // the name of the weight does not end in ".weight"
};
constexpr NameRow kNames[] = {
    {networks::Role::kFeedForwardNorm, "blk.{}.post_attention_norm", "gpt-oss"},
    {networks::Role::kFeedForwardNorm, "blk.{}.post_attention_norm", "seed_oss"},
    {networks::Role::kFeedForwardNorm, "blk.{}.post_attention_norm", "qwen35"},
    {networks::Role::kOutputNorm, "token_embd_norm", "lfm2"},
    {networks::Role::kMixerInput, "blk.{}.shortconv.in_proj", "lfm2"},
    {networks::Role::kConvolution, "blk.{}.shortconv.conv", "lfm2"},
    {networks::Role::kMixerOutput, "blk.{}.shortconv.out_proj", "lfm2"},
    {networks::Role::kTokens, "token_embd"},
    {networks::Role::kPositions, "position_embd"},
    {networks::Role::kRotaryFactors, "rope_freqs"},
    {networks::Role::kRotaryLongFactors, "rope_factors_long"},
    {networks::Role::kRotaryShortFactors, "rope_factors_short"},
    {networks::Role::kOutputNorm, "output_norm"},
    {networks::Role::kOutput, "output"},
    {networks::Role::kAttentionNorm, "blk.{}.attn_norm"},
    {networks::Role::kSecondAttentionNorm, "blk.{}.attn_norm_2"},
    {networks::Role::kQuery, "blk.{}.attn_q"},
    {networks::Role::kKey, "blk.{}.attn_k"},
    {networks::Role::kValue, "blk.{}.attn_v"},
    {networks::Role::kQkv, "blk.{}.attn_qkv"},
    {networks::Role::kQueryNorm, "blk.{}.attn_q_norm"},
    {networks::Role::kKeyNorm, "blk.{}.attn_k_norm"},
    {networks::Role::kSinks, "blk.{}.attn_sinks"},
    {networks::Role::kAttentionOutput, "blk.{}.attn_output"},
    {networks::Role::kPostAttentionNorm, "blk.{}.post_attention_norm"},
    {networks::Role::kFeedForwardNorm, "blk.{}.ffn_norm"},
    {networks::Role::kGate, "blk.{}.ffn_gate"},
    {networks::Role::kUp, "blk.{}.ffn_up"},
    {networks::Role::kDown, "blk.{}.ffn_down"},
    {networks::Role::kPostFeedForwardNorm, "blk.{}.post_ffw_norm"},
    {networks::Role::kRouter, "blk.{}.ffn_gate_inp"},
    {networks::Role::kExpertGates, "blk.{}.ffn_gate_exps"},
    {networks::Role::kExpertUps, "blk.{}.ffn_up_exps"},
    {networks::Role::kExpertDowns, "blk.{}.ffn_down_exps"},
    {networks::Role::kSharedRouter, "blk.{}.ffn_gate_inp_shexp"},
    {networks::Role::kSharedGate, "blk.{}.ffn_gate_shexp"},
    {networks::Role::kSharedUp, "blk.{}.ffn_up_shexp"},
    {networks::Role::kSharedDown, "blk.{}.ffn_down_shexp"},
    {networks::Role::kMixerInput, "blk.{}.ssm_in"},
    {networks::Role::kConvolution, "blk.{}.ssm_conv1d"},
    {networks::Role::kSelection, "blk.{}.ssm_x"},
    {networks::Role::kTimeStep, "blk.{}.ssm_dt"},
    {networks::Role::kAlpha, "blk.{}.ssm_alpha"},
    {networks::Role::kBeta, "blk.{}.ssm_beta"},
    {networks::Role::kDecay, "blk.{}.ssm_a", "", true},
    {networks::Role::kSkip, "blk.{}.ssm_d", "", true},
    {networks::Role::kMixerGate, "blk.{}.attn_gate"},
    {networks::Role::kMixerNorm, "blk.{}.ssm_norm"},
    {networks::Role::kMixerOutput, "blk.{}.ssm_out"},
};

}  // namespace

std::string GgufName(std::string_view architecture, networks::Role role, networks::Part part,
                     int64_t layer) {
  for (const NameRow& row : kNames)
    if (row.role == role && (row.architecture.empty() || row.architecture == architecture))
      return fmt::format(fmt::runtime(row.name), layer) + (part == networks::Part::kBias ? ".bias"
                                                           : row.no_suffix               ? ""
                                                                           : ".weight");
  return "";
}

}  // namespace mlc::gguf
