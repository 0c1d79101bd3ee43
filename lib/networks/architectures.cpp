#include "lib/networks/architectures.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/support/edit_distance.h"

namespace mlc::networks {

namespace {

struct DecoderArchitecture {
  std::string_view name;
  DecoderConfig flags = {};
};

constexpr Rotary kNoRotary = {.used = false};

constexpr DecoderArchitecture kRows[] = {
    {"cohere2",
     {.norm = NormKind::kLayer, .parallel = true, .no_rotary_every = 4, .global_every = 4}},
    {"exaone4",
     {.pre_norms = false,
      .post_norms = true,
      .qk_norm = QkNorm::kPerHead,
      .rotary_in_windows_only = true,
      .global_every = 4}},
    {"falcon",
     {.norm = NormKind::kLayer, .parallel = true, .activation = Activation::kGelu, .gated = false}},
    {"gemma", {.activation = Activation::kGeluTanh, .root_width_scale = true}},
    {"gemma2",
     {.post_norms = true,
      .activation = Activation::kGeluTanh,
      .root_width_scale = true,
      .global_every = 2}},
    {"gemma3",
     {.post_norms = true,
      .qk_norm = QkNorm::kPerHead,
      .activation = Activation::kGeluTanh,
      .root_width_scale = true,
      .rotary = {.local_base = 10000},
      .global_every = 6}},
    {"gpt-oss",
     {.activation = Activation::kClampedSilu,
      .sinks = true,
      .global_every = 2,
      .gating = Gating::kSoftmaxOfChosen}},
    {"gpt2",
     {.norm = NormKind::kLayer,
      .activation = Activation::kGeluTanh,
      .gated = false,
      .learned_positions = true,
      .rotary = kNoRotary}},
    {"gptneox",
     {.norm = NormKind::kLayer, .parallel = true, .activation = Activation::kGelu, .gated = false}},
    {"granite", {.divided_logits = true}},
    {"lfm2", {.qk_norm = QkNorm::kPerHead, .token_mixer = TokenMixer::kShortConvolution}},
    {"llama", {}},
    {"mamba", {.feed_forwards = false, .token_mixer = TokenMixer::kMamba, .rotary = kNoRotary}},
    {"mamba2", {.feed_forwards = false, .token_mixer = TokenMixer::kMamba2, .rotary = kNoRotary}},
    {"olmo2", {.pre_norms = false, .post_norms = true, .qk_norm = QkNorm::kWhole}},
    {"opt",
     {.norm = NormKind::kLayer,
      .activation = Activation::kRelu,
      .gated = false,
      .learned_positions = true,
      .rotary = kNoRotary}},
    {"phi",
     {.norm = NormKind::kLayer,
      .parallel = true,
      .activation = Activation::kGeluTanh,
      .gated = false}},
    {"phi3", {.gate_in_up = true}},
    {"qwen2moe", {.normalised_gates = false}},
    {"qwen3", {.qk_norm = QkNorm::kPerHead}},
    {"qwen35",
     {.qk_norm = QkNorm::kPerHead,
      .gated_attention = true,
      .token_mixer = TokenMixer::kDeltaNet,
      .attention_every = 4}},
    {"smollm3", {.no_rotary_every = 4}},
    {"stablelm", {.norm = NormKind::kLayer, .qk_norm = QkNorm::kPerHeadOwnScale}},
    {"starcoder2", {.norm = NormKind::kLayer, .activation = Activation::kGeluTanh, .gated = false}},
};

}  // namespace

const DecoderConfig& DecoderFlags(std::string_view name) {
  const auto* row =
      std::find_if(std::begin(kRows), std::end(kRows),
                   [&](const DecoderArchitecture& each) { return each.name == name; });
  MLC_CHECK(row != std::end(kRows), "no decoder architecture {}", name);
  return row->flags;
}

Error UnsupportedArchitecture(const std::string& name,
                              const std::map<std::string, std::set<std::string>>& known) {
  std::set<std::string> all;
  for (const auto& [kind, names] : known) all.insert(names.begin(), names.end());
  Error error("unsupported-architecture", "unsupported architecture \"{}\"{}", name,
              DidYouMean(all, name));
  error.Expected("a supported architecture");
  for (const auto& [kind, names] : known) error.Note("{}: {}", kind, fmt::join(names, ", "));
  return error;
}

}  // namespace mlc::networks
