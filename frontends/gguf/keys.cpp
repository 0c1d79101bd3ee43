#include "frontends/gguf/keys.h"

namespace mlc {

namespace {

// ggml-org/llama.cpp, src/models/NAME.cpp: load_arch_hparams, where a key without `false` behind it is
// required, and the graph, which does not use all that was loaded.
struct KeyRow {
  std::string_view key, architecture;
  KeyUse use = KeyUse::kOptional;
};
constexpr KeyUse kRequired = KeyUse::kRequired;
constexpr KeyRow kKeys[] = {
    {"attention.scale", "granite"},
    {"attention.sliding_window", "cohere2", kRequired},
    {"attention.sliding_window", "exaone4"},
    {"attention.sliding_window", "gemma-embedding", kRequired},
    {"attention.sliding_window", "gemma2"},
    {"attention.sliding_window", "gemma3"},
    {"attention.sliding_window", "gpt-oss", kRequired},
    {"attention.sliding_window", "lfm2"},
    {"attention.sliding_window", "modern-bert"},
    {"attention.sliding_window_pattern", "cohere2"},
    {"attention.sliding_window_pattern", "exaone4"},
    {"attention.sliding_window_pattern", "gemma2"},
    {"attention.sliding_window_pattern", "gemma3"},
    {"attention.sliding_window_pattern", "gpt-oss"},
    {"attn_logit_softcapping", "gemma2"},
    {"embedding_scale", "granite"},
    {"expert_feed_forward_length", "gpt-oss", kRequired},
    {"expert_feed_forward_length", "qwen2moe"},
    {"expert_feed_forward_length", "qwen3moe"},
    {"expert_shared_feed_forward_length", "qwen2moe"},
    {"final_logit_softcapping", "gemma2"},
    {"final_logit_softcapping", "gemma3"},
    {"logit_scale", "cohere2", kRequired},
    {"logit_scale", "granite", kRequired},
    {"residual_scale", "granite"},
    {"rope.dimension_sections", "qwen35", kRequired},
    {"rope.freq_base_swa", "gemma2"},
    {"rope.freq_base_swa", "gemma3"},
    {"rope.freq_base_swa", "gpt-oss"},
    {"rope.scaling.finetuned", "granite"},
    {"use_parallel_residual", "gptneox", kRequired},
};

}  // namespace

KeyUse UseOfKey(std::string_view architecture, std::string_view key) {
  bool of_others = false;
  for (const KeyRow& row : kKeys) {
    if (row.key != key) continue;
    if (row.architecture == architecture) return row.use;
    of_others = true;
  }
  return of_others ? KeyUse::kIgnored : KeyUse::kOptional;
}

}  // namespace mlc
