#include "frontends/safetensors/decoder_rows.h"

namespace mlc::safetensors {

namespace {

constexpr uint8_t kAllBiases = kQkvBias | kAttentionOutputBias | kFeedForwardBias;

constexpr DecoderRow kDecoderRows[] = {
    {.model_type = "cohere2", .architecture = "cohere2", .interleaved = true},
    {.model_type = "ernie4_5", .architecture = "llama", .interleaved = true},
    {.model_type = "exaone4", .architecture = "exaone4"},
    {.model_type = "falcon", .architecture = "falcon"},
    {.model_type = "gemma",
     .architecture = "gemma",
     .norm_adds_one = true,
     .fixed_activation = true},
    {.model_type = "gemma2",
     .architecture = "gemma2",
     .norm_adds_one = true,
     .fixed_activation = true},
    {.model_type = "gemma3_text",
     .architecture = "gemma3",
     .norm_adds_one = true,
     .fixed_activation = true},
    {.model_type = "gpt2", .architecture = "gpt2", .biases = kAllBiases},
    {.model_type = "gpt_neox", .architecture = "gptneox", .biases = kFeedForwardBias},
    {.model_type = "granite", .architecture = "granite"},
    {.model_type = "lfm2", .architecture = "lfm2"},
    {.model_type = "llama", .architecture = "llama"},
    {.model_type = "mistral", .architecture = "llama"},
    {.model_type = "mixtral", .architecture = "llama"},
    {.model_type = "olmo2", .architecture = "olmo2"},
    {.model_type = "opt", .architecture = "opt", .biases = kAllBiases},
    {.model_type = "phi", .architecture = "phi", .biases = kAllBiases},
    {.model_type = "phi3", .architecture = "phi3"},
    {.model_type = "qwen2", .architecture = "llama"},
    {.model_type = "qwen2_moe", .architecture = "qwen2moe"},
    {.model_type = "qwen3", .architecture = "qwen3"},
    {.model_type = "qwen3_moe", .architecture = "qwen3"},
    {.model_type = "seed_oss", .architecture = "llama"},
    {.model_type = "smollm3", .architecture = "smollm3"},
    {.model_type = "stablelm", .architecture = "stablelm"},
    {.model_type = "starcoder2", .architecture = "starcoder2", .biases = kAllBiases},
};

}  // namespace

const DecoderRow* FindDecoderRow(std::string_view model_type) {
  for (const DecoderRow& row : kDecoderRows)
    if (row.model_type == model_type) return &row;
  return nullptr;
}

std::set<std::string> DecoderModelTypes() {
  std::set<std::string> types;
  for (const DecoderRow& row : kDecoderRows) types.emplace(row.model_type);
  return types;
}

bool RequiresBias(const DecoderRow& row, networks::Role role) {
  using enum networks::Role;
  if (role == kAttentionOutput) return (row.biases & kAttentionOutputBias) != 0;
  if (role == kUp || role == kDown) return (row.biases & kFeedForwardBias) != 0;
  const bool of_qkv = role == kQuery || role == kKey || role == kValue || role == kQkv;
  return of_qkv && (row.biases & kQkvBias) != 0;
}

}  // namespace mlc::safetensors
