#include "frontends/safetensors/config_defaults.h"

#include "test/catch.h"

using namespace mlc;
using namespace mlc::safetensors;

namespace {

// Returns the config.json of a family, with only the members in `more`.
Config Silent(const std::string& model_type, const std::string& more = "") {
  return WithFamilyDefaults(
      Config::Parse("{\"model_type\": \"" + model_type + "\"" + more + "}", "config.json"));
}

}  // namespace

// The expected values are the parameter defaults of the classes in transformers'
// models/*/configuration_*.py.
TEST_CASE("families: members missing in config.json have the defaults of the family's class") {
  struct {
    const char *model_type, *key;
    double value;
  } kNumbers[] = {
      {"gemma", "rope_theta", 10000},
      {"gemma", "head_dim", 256},
      {"gemma2", "query_pre_attn_scalar", 256},
      {"gemma2", "final_logit_softcapping", 30},
      {"gemma3_text", "rope_theta", 1e6},
      {"gemma3_text", "rope_local_base_freq", 10000},
      {"qwen3", "head_dim", 128},
      {"qwen2", "rms_norm_eps", 1e-6},
      {"llama", "rms_norm_eps", 1e-6},
      {"llama", "max_position_embeddings", 2048},
      {"phi", "partial_rotary_factor", 0.5},
      {"stablelm", "partial_rotary_factor", 0.25},
      {"gpt_neox", "rotary_pct", 0.25},
      {"cohere2", "logit_scale", 0.0625},
      {"mixtral", "rope_theta", 1e6},
      {"mistral", "num_key_value_heads", 8},
      {"smollm3", "rope_theta", 2e6},
      {"ernie4_5", "rope_theta", 5e5},
      {"t5", "layer_norm_epsilon", 1e-6},
      {"bert", "layer_norm_eps", 1e-12},
      {"deberta-v2", "layer_norm_eps", 1e-7},
      {"modernbert", "global_rope_theta", 160000},
  };
  for (const auto& [model_type, key, value] : kNumbers) {
    INFO(model_type << " " << key);
    CHECK(Silent(model_type).Number(key) == value);
  }
  CHECK_FALSE(Silent("qwen3_moe").Bool("norm_topk_prob"));
  CHECK_FALSE(Silent("llama").Bool("tie_word_embeddings"));
  CHECK(Silent("gemma").Bool("tie_word_embeddings"));
  CHECK_FALSE(Silent("llama").has("head_dim"));
}

TEST_CASE("families: members of config.json override defaults, including null") {
  CHECK(Silent("gemma", ", \"rope_theta\": 5").Number("rope_theta") == 5);
  CHECK_FALSE(Silent("mistral", ", \"sliding_window\": null").has("sliding_window"));
  CHECK(Silent("mistral").Int("sliding_window") == 4096);
  CHECK_FALSE(Silent("another").has("rope_theta"));
  CHECK_FALSE(WithFamilyDefaults(Config()).has("rope_theta"));
}

TEST_CASE("families: families that read sliding_window") {
  for (const char* all : {"mistral", "mixtral", "gemma2", "gemma3_text", "phi3", "starcoder2"})
    CHECK(FindFamily(all)->windows == Windows::kAll);
  for (const char* behind : {"qwen2", "qwen3"})
    CHECK(FindFamily(behind)->windows == Windows::kBehind);
  for (const char* none : {"llama", "gemma", "granite", "olmo2"})
    CHECK(FindFamily(none)->windows == Windows::kNone);
}
