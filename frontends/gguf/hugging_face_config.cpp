// Implements HuggingFaceConfig.
#include <nlohmann/json.hpp>

#include "frontends/gguf/tokenizer.h"
#include "lib/support/json_text.h"

namespace mlc::gguf {

namespace {

// The values of model_type in config.json that differ from general.architecture, apart from "-" for
// "_" (gguf-py/gguf/constants.py of llama.cpp, and the model types of transformers).
constexpr std::pair<std::string_view, std::string_view> kModelTypes[] = {
    {"gemma3", "gemma3_text"}, {"gptneox", "gpt_neox"},   {"phi2", "phi"},
    {"qwen2moe", "qwen2_moe"}, {"qwen3moe", "qwen3_moe"}, {"qwen35", "qwen3_5_text"}};

std::string ModelType(std::string architecture) {
  for (const auto& [name, type] : kModelTypes)
    if (name == architecture) return std::string(type);
  for (char& c : architecture)
    if (c == '-') c = '_';
  return architecture;
}

constexpr std::pair<const char*, const char*> kSizes[] = {
    {"hidden_size", "embedding_length"},
    {"num_hidden_layers", "block_count"},
    {"num_attention_heads", "attention.head_count"},
    {"num_key_value_heads", "attention.head_count_kv"},
    {"max_position_embeddings", "context_length"}};

constexpr std::pair<const char*, const char*> kTokens[] = {{"bos_token_id", "bos_token_id"},
                                                           {"eos_token_id", "eos_token_id"},
                                                           {"pad_token_id", "padding_token_id"}};

}  // namespace

std::string HuggingFaceConfig(const GgufFile& file) {
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  const std::string architecture = file.String("general.architecture", "");
  config["model_type"] = ModelType(architecture);
  if (const GgufValue* tokens = file.Find("tokenizer.ggml.tokens"))
    config["vocab_size"] = tokens->count;
  auto set = [&](const char* name, const std::string& key) {
    const GgufValue* value = file.Find(key);  // some sizes have a value for each layer
    if (value && value->type != GgufType::kArray) config[name] = file.Int(key);
  };
  for (const auto& [name, key] : kSizes) set(name, architecture + "." + key);
  for (const auto& [name, key] : kTokens) set(name, std::string("tokenizer.ggml.") + key);
  return JsonText(config, 2, BadUtf8::kReplace) + "\n";
}

}  // namespace mlc::gguf
