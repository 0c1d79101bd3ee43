#include "frontends/gguf/decoder_rows.h"

namespace mlc::gguf {

namespace {

constexpr GgufDecoderRow kDecoderRows[] = {
    {.name = "cohere2", .architecture = "cohere2", .interleaved = true},
    {.name = "ernie4_5", .architecture = "llama", .interleaved = true},
    {.name = "exaone4", .architecture = "exaone4", .windowed_layers = 64, .window = 4096},
    {.name = "falcon", .architecture = "falcon", .activation = networks::Activation::kGeluTanh},
    {.name = "gemma", .architecture = "gemma"},
    {.name = "gemma2",
     .architecture = "gemma2",
     .scaled_by_width_layers = 46,
     .window = 4096,
     .attention_cap = 50,
     .logit_cap = 30},
    {.name = "gemma3", .architecture = "gemma3", .scaled_by_width_layers = 62},
    {.name = "gpt-oss", .architecture = "gpt-oss"},
    {.name = "gpt2", .architecture = "gpt2"},
    {.name = "gptneox", .architecture = "gptneox"},
    {.name = "granite", .architecture = "granite", .interleaved = true},
    {.name = "lfm2", .architecture = "lfm2"},
    {.name = "llama", .architecture = "llama", .interleaved = true},
    {.name = "mamba", .architecture = "mamba"},
    {.name = "mamba2", .architecture = "mamba2"},
    {.name = "olmo2", .architecture = "olmo2"},
    {.name = "phi2", .architecture = "phi"},
    {.name = "phi3", .architecture = "phi3"},
    {.name = "qwen2", .architecture = "llama"},
    {.name = "qwen2moe", .architecture = "qwen2moe"},
    {.name = "qwen2vl", .architecture = "llama", .rotary_sections = true},
    {.name = "qwen3", .architecture = "qwen3"},
    {.name = "qwen35", .architecture = "qwen35"},
    {.name = "qwen3moe", .architecture = "qwen3"},
    {.name = "qwen3vl",
     .architecture = "qwen3",
     .rotary_sections = true,
     .alternating_sections = true},
    {.name = "seed_oss", .architecture = "llama"},
    {.name = "smollm3", .architecture = "smollm3", .interleaved = true},
    {.name = "stablelm", .architecture = "stablelm", .parallel_without_norm = true},
    {.name = "starcoder2", .architecture = "starcoder2"},
};

}  // namespace

const GgufDecoderRow* FindGgufDecoder(std::string_view name) {
  for (const GgufDecoderRow& row : kDecoderRows)
    if (row.name == name) return &row;
  return nullptr;
}

std::set<std::string> GgufDecoderNames() {
  std::set<std::string> names;
  for (const GgufDecoderRow& row : kDecoderRows) names.emplace(row.name);
  return names;
}

}  // namespace mlc::gguf
