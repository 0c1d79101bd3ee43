#include "frontends/gguf/required_keys_and_tensors.h"

#include <algorithm>
#include <cstddef>

namespace mlc::gguf {

namespace {

constexpr Requirement kForeign = Requirement::kForeign, kIgnored = Requirement::kIgnored,
                      kOptional = Requirement::kOptional, kRequired = Requirement::kRequired;
constexpr networks::Part kWeight = networks::Part::kWeight, kBias = networks::Part::kBias;

// The first row of an item that names the architecture, or no architecture, is used. An item is
// foreign to an architecture if all of its rows name others.
template <class Item>
struct RequirementRow {
  Item item;
  Requirement use;
  std::string_view architectures = {};  // separated by spaces; empty: all
};

// Taken from ggml-org/llama.cpp, src/models/NAME.cpp: load_arch_hparams, where a key is required
// unless it is read with the argument `false`, and the graph, which does not use everything that
// was loaded.
constexpr RequirementRow<std::string_view> kKeys[] = {
    {"attention.scale", kOptional, "granite"},
    {"attention.sliding_window", kRequired, "cohere2 gemma-embedding gpt-oss"},
    {"attention.sliding_window", kOptional, "exaone4 gemma2 gemma3 lfm2 modern-bert"},
    {"attention.sliding_window_pattern", kOptional, "cohere2 exaone4 gemma2 gemma3 gpt-oss"},
    {"attn_logit_softcapping", kOptional, "gemma2"},
    {"embedding_scale", kOptional, "granite"},
    {"expert_feed_forward_length", kRequired, "gpt-oss"},
    {"expert_feed_forward_length", kOptional, "qwen2moe qwen3moe"},
    {"expert_shared_feed_forward_length", kOptional, "qwen2moe"},
    {"final_logit_softcapping", kOptional, "gemma2 gemma3"},
    {"logit_scale", kRequired, "cohere2 granite"},
    {"residual_scale", kOptional, "granite"},
    {"rope.dimension_sections", kRequired, "qwen2vl qwen35 qwen3vl"},
    {"rope.freq_base_swa", kOptional, "gemma2 gemma3 gpt-oss"},
    {"rope.scaling.finetuned", kOptional, "granite"},
    {"use_parallel_residual", kRequired, "gptneox"},
};

struct TensorPart {
  networks::Role role;
  networks::Part part;
  friend bool operator==(const TensorPart&, const TensorPart&) = default;
};
// Architectures with LayerNorm that has a bias.
constexpr std::string_view kShifted = "falcon gpt2 gptneox phi2 stablelm starcoder2";
// We treat a file without these biases as incomplete; llama.cpp assumes zeros.
constexpr std::string_view kQkvBiases = "gpt-oss gpt2 phi2 starcoder2";
// Taken from load_arch_tensors: tensors loaded without TENSOR_NOT_REQUIRED are required, and
// llama.cpp rejects a file with additional tensors.
constexpr RequirementRow<TensorPart> kTensors[] = {
    {{networks::Role::kRotaryFactors, kWeight}, kOptional, "exaone4 granite llama"},
    {{networks::Role::kRotaryLongFactors, kWeight}, kOptional, "granite llama phi3"},
    {{networks::Role::kRotaryShortFactors, kWeight}, kOptional, "granite llama phi3"},
    {{networks::Role::kOutput, kWeight}, kForeign, "cohere2 gemma gemma2"},
    {{networks::Role::kOutput, kWeight}, kRequired, "gpt-oss gptneox olmo2 qwen2moe stablelm"},
    {{networks::Role::kOutput, kWeight}, kOptional},
    {{networks::Role::kFeedForwardNorm, kWeight}, kForeign, "cohere2 falcon phi2"},
    {{networks::Role::kFeedForwardNorm, kWeight}, kOptional},
    {{networks::Role::kSecondAttentionNorm, kWeight}, kOptional, "falcon"},
    {{networks::Role::kSharedRouter, kWeight}, kRequired, "qwen2moe"},
    {{networks::Role::kSharedGate, kWeight}, kRequired, "qwen2moe"},
    {{networks::Role::kSharedUp, kWeight}, kRequired, "qwen2moe"},
    {{networks::Role::kSharedDown, kWeight}, kRequired, "qwen2moe"},
    {{networks::Role::kOutputNorm, kBias}, kRequired, kShifted},
    {{networks::Role::kOutput, kBias}, kRequired, "phi2"},
    {{networks::Role::kOutput, kBias}, kOptional, "qwen2"},
    {{networks::Role::kAttentionNorm, kBias}, kRequired, kShifted},
    {{networks::Role::kSecondAttentionNorm, kBias}, kOptional, "falcon"},
    {{networks::Role::kQuery, kBias}, kRequired, kQkvBiases},
    {{networks::Role::kQuery, kBias}, kOptional},
    {{networks::Role::kKey, kBias}, kRequired, kQkvBiases},
    {{networks::Role::kKey, kBias}, kOptional},
    {{networks::Role::kValue, kBias}, kRequired, kQkvBiases},
    {{networks::Role::kValue, kBias}, kOptional},
    {{networks::Role::kQkv, kBias}, kRequired, kQkvBiases},
    {{networks::Role::kQkv, kBias}, kRequired, "gptneox"},
    {{networks::Role::kQkv, kBias}, kForeign, "falcon qwen35"},
    {{networks::Role::kQkv, kBias}, kOptional},
    {{networks::Role::kAttentionOutput, kBias}, kRequired, "gpt-oss gpt2 gptneox phi2 starcoder2"},
    {{networks::Role::kAttentionOutput, kBias}, kOptional, "granite llama"},
    {{networks::Role::kAttentionOutput, kBias}, kIgnored, "ernie4_5"},
    {{networks::Role::kFeedForwardNorm, kBias}, kRequired, "gpt2 gptneox starcoder2"},
    {{networks::Role::kFeedForwardNorm, kBias}, kOptional, "stablelm"},
    {{networks::Role::kGate, kBias}, kOptional, "granite llama"},
    {{networks::Role::kUp, kBias}, kRequired, "gpt2 gptneox phi2 starcoder2"},
    {{networks::Role::kUp, kBias}, kOptional, "granite llama"},
    {{networks::Role::kDown, kBias}, kRequired, "gpt2 gptneox phi2 starcoder2"},
    {{networks::Role::kDown, kBias}, kOptional, "granite llama"},
    {{networks::Role::kRouter, kBias}, kRequired, "gpt-oss"},
    {{networks::Role::kExpertGates, kBias}, kRequired, "gpt-oss"},
    {{networks::Role::kExpertUps, kBias}, kRequired, "gpt-oss"},
    {{networks::Role::kExpertDowns, kBias}, kRequired, "gpt-oss"},
    {{networks::Role::kConvolution, kBias}, kRequired, "mamba mamba2"},
    {{networks::Role::kTimeStep, kBias}, kOptional},
};

// Returns whether the space-separated list `words` contains the word.
bool HasWord(std::string_view words, std::string_view word) {
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

template <class Item, size_t count>
Requirement RequirementOf(const RequirementRow<Item> (&rows)[count], const Item& item,
                          std::string_view architecture, Requirement otherwise) {
  for (const RequirementRow<Item>& row : rows) {
    if (row.item != item) continue;
    if (row.architectures.empty() || HasWord(row.architectures, architecture)) return row.use;
    otherwise = kForeign;
  }
  return otherwise;
}

}  // namespace

Requirement RequirementOfKey(std::string_view architecture, std::string_view key) {
  return RequirementOf(kKeys, key, architecture, kOptional);
}

Requirement RequirementOfTensor(std::string_view architecture, networks::Role role,
                                networks::Part part) {
  return RequirementOf(kTensors, {role, part}, architecture, part == kBias ? kForeign : kOptional);
}

}  // namespace mlc::gguf
