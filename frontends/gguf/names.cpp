#include "frontends/gguf/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace mlc {

namespace {

// gguf-py's TENSOR_NAMES (ggml-org/llama.cpp, gguf-py/gguf/constants.py); {} is the layer.
struct NameRow {
  Role role;
  std::string_view name;
  std::string_view architecture = {};  // alone; empty: all that have no row of their own
  bool whole = false;                  // the weight has no ".weight" behind
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

// ggml-org/llama.cpp, src/models/NAME.cpp, load_arch_tensors: what is loaded there without
// TENSOR_NOT_REQUIRED is required, and a file with more tensors than were asked for is refused.
constexpr TensorUse kUnknown = TensorUse::kUnknown, kIgnored = TensorUse::kIgnored,
                    kOptional = TensorUse::kOptional, kRequired = TensorUse::kRequired;
constexpr Part kWeight = Part::kWeight, kBias = Part::kBias;
// LayerNorm with a shift.
constexpr std::string_view kShifted = "falcon gpt2 gptneox phi2 stablelm starcoder2";
// The first row of a tensor that names the architecture, or none, says what the tensor is to it. A
// bias that no row speaks of is unknown; a weight is optional.
struct UseRow {
  Role role;
  Part part;
  TensorUse use;
  std::string_view architectures = {};
};
constexpr UseRow kUses[] = {
    {Role::kRotaryFactors, kWeight, kOptional, "exaone4 granite llama"},
    {Role::kRotaryFactors, kWeight, kUnknown},
    {Role::kRotaryLongFactors, kWeight, kOptional, "granite llama phi3"},
    {Role::kRotaryLongFactors, kWeight, kUnknown},
    {Role::kRotaryShortFactors, kWeight, kOptional, "granite llama phi3"},
    {Role::kRotaryShortFactors, kWeight, kUnknown},
    {Role::kOutput, kWeight, kUnknown, "cohere2 gemma gemma2"},
    {Role::kOutput, kWeight, kRequired, "gpt-oss gptneox olmo2 qwen2moe stablelm"},
    {Role::kFeedForwardNorm, kWeight, kUnknown, "cohere2 falcon phi2"},
    {Role::kSecondAttentionNorm, kWeight, kOptional, "falcon"},
    {Role::kSecondAttentionNorm, kWeight, kUnknown},
    {Role::kSharedRouter, kWeight, kRequired, "qwen2moe"},
    {Role::kSharedRouter, kWeight, kUnknown},
    {Role::kSharedGate, kWeight, kRequired, "qwen2moe"},
    {Role::kSharedGate, kWeight, kUnknown},
    {Role::kSharedUp, kWeight, kRequired, "qwen2moe"},
    {Role::kSharedUp, kWeight, kUnknown},
    {Role::kSharedDown, kWeight, kRequired, "qwen2moe"},
    {Role::kSharedDown, kWeight, kUnknown},

    {Role::kOutputNorm, kBias, kRequired, kShifted},
    {Role::kOutput, kBias, kRequired, "phi2"},
    {Role::kOutput, kBias, kOptional, "qwen2"},
    {Role::kAttentionNorm, kBias, kRequired, kShifted},
    {Role::kSecondAttentionNorm, kBias, kOptional, "falcon"},
    {Role::kQuery, kBias, kOptional},
    {Role::kKey, kBias, kOptional},
    {Role::kValue, kBias, kOptional},
    {Role::kQkv, kBias, kRequired, "gpt2 gptneox"},
    {Role::kQkv, kBias, kUnknown, "falcon qwen35"},
    {Role::kQkv, kBias, kOptional},
    {Role::kAttentionOutput, kBias, kRequired, "gpt-oss gpt2 gptneox phi2 starcoder2"},
    {Role::kAttentionOutput, kBias, kOptional, "granite llama"},
    {Role::kAttentionOutput, kBias, kIgnored, "ernie4_5"},
    {Role::kFeedForwardNorm, kBias, kRequired, "gpt2 gptneox starcoder2"},
    {Role::kFeedForwardNorm, kBias, kOptional, "stablelm"},
    {Role::kGate, kBias, kOptional, "granite llama"},
    {Role::kUp, kBias, kRequired, "gpt2 gptneox phi2 starcoder2"},
    {Role::kUp, kBias, kOptional, "granite llama"},
    {Role::kDown, kBias, kRequired, "gpt2 gptneox phi2 starcoder2"},
    {Role::kDown, kBias, kOptional, "granite llama"},
    {Role::kRouter, kBias, kRequired, "gpt-oss"},
    {Role::kExpertGates, kBias, kRequired, "gpt-oss"},
    {Role::kExpertUps, kBias, kRequired, "gpt-oss"},
    {Role::kExpertDowns, kBias, kRequired, "gpt-oss"},
    {Role::kConvolution, kBias, kRequired, "mamba mamba2"},
    {Role::kTimeStep, kBias, kOptional},
};

// Returns whether `words`, which blanks separate, contain the word.
bool HasWord(std::string_view words, std::string_view word) {
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

TensorUse UseOfTensor(std::string_view architecture, Role role, Part part) {
  for (const UseRow& row : kUses)
    if (row.role == role && row.part == part &&
        (row.architectures.empty() || HasWord(row.architectures, architecture)))
      return row.use;
  return part == Part::kBias ? TensorUse::kUnknown : TensorUse::kOptional;
}

std::string GgufName(std::string_view architecture, Role role, Part part, int64_t layer) {
  for (const NameRow& row : kNames)
    if (row.role == role && (row.architecture.empty() || row.architecture == architecture))
      return fmt::format(fmt::runtime(row.name), layer) + (part == Part::kBias ? ".bias"
                                                           : row.whole         ? ""
                                                                               : ".weight");
  return "";
}

}  // namespace mlc
