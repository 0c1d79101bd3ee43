#include "lib/networks/architectures.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "lib/networks/encoder_architectures.h"
#include "lib/support/near_names.h"

namespace mlc {

namespace {

constexpr Rotary kHalves = {};
constexpr Rotary kNeighbours = {.interleaved = true};
constexpr Rotary kUnturned = {.used = false};

constexpr Architecture kRows[] = {
    {.gguf = "cohere2",
     .hugging_face = "cohere2",
     .flags = {.norm = NormKind::kLayer,
               .parallel = true,
               .rotary = kNeighbours,
               .no_rotary_every = 4,
               .global_every = 4},
     .neighbours_there = true},
    {.gguf = "ernie4_5",
     .hugging_face = "ernie4_5",
     .flags = {.rotary = kNeighbours},
     .neighbours_there = true},
    // Where some layers have windows, the others do not turn. What a file leaves out: llama.cpp,
    // src/models/exaone4.cpp.
    {.gguf = "exaone4",
     .hugging_face = "exaone4",
     .flags = {.pre_norms = false,
               .post_norms = true,
               .norm_of_heads = NormOfHeads::kEach,
               .rotary = kHalves,
               .turned_in_windows = true,
               .global_every = 4,
               .window = 4096},
     .windowed_layers = 64},
    {.gguf = "falcon",
     .hugging_face = "falcon",
     .flags = {.norm = NormKind::kLayer,
               .parallel = true,
               .bend = Bend::kGeluTanh,
               .gated = false,
               .rotary = kHalves},
     .bend_there = Bend::kGelu},
    {.gguf = "gemma",
     .hugging_face = "gemma",
     .flags = {.bend = Bend::kGeluTanh, .root_width_scale = true, .rotary = kHalves},
     .adds_one_there = true,
     .fixed_bend_there = true},
    // What a file leaves out: llama.cpp, src/models/gemma2.cpp.
    {.gguf = "gemma2",
     .hugging_face = "gemma2",
     .flags = {.post_norms = true,
               .bend = Bend::kGeluTanh,
               .root_width_scale = true,
               .rotary = kHalves,
               .global_every = 2,
               .window = 4096,
               .attention_cap = 50,
               .logit_cap = 30},
     .even_scale_layers = 46,
     .adds_one_there = true,
     .fixed_bend_there = true},
    {.gguf = "gemma3",
     .hugging_face = "gemma3_text",
     .flags = {.post_norms = true,
               .norm_of_heads = NormOfHeads::kEach,
               .bend = Bend::kGeluTanh,
               .root_width_scale = true,
               .rotary = {.local_base = 10000},
               .global_every = 6},
     .even_scale_layers = 62,
     .adds_one_there = true,
     .fixed_bend_there = true},
    {.gguf = "gpt-oss",
     .flags = {.bend = Bend::kClampedSilu,
               .biases = kQkvBias | kAttentionOutputBias | kFeedForwardBias,
               .sinks = true,
               .rotary = kHalves,
               .global_every = 2,
               .gating = Gating::kSoftmaxOfChosen}},
    {.gguf = "gpt2",
     .hugging_face = "gpt2",
     .flags = {.norm = NormKind::kLayer,
               .bend = Bend::kGeluTanh,
               .gated = false,
               .biases = kQkvBias | kAttentionOutputBias | kFeedForwardBias,
               .learned_positions = true,
               .rotary = kUnturned}},
    {.gguf = "gptneox",
     .hugging_face = "gpt_neox",
     .flags = {.norm = NormKind::kLayer,
               .parallel = true,
               .bend = Bend::kGelu,
               .gated = false,
               .biases = kFeedForwardBias,
               .rotary = kHalves}},
    {.gguf = "granite",
     .hugging_face = "granite",
     .flags = {.divided_logits = true, .rotary = kNeighbours}},
    {.gguf = "lfm2",
     .flags = {.norm_of_heads = NormOfHeads::kEach,
               .mixer = Mixer::kShortConvolution,
               .rotary = kHalves}},
    {.gguf = "llama", .hugging_face = "llama", .flags = {.rotary = kNeighbours}},
    {.gguf = "mamba",
     .flags = {.feed_forwards = false, .mixer = Mixer::kMamba, .rotary = kUnturned}},
    {.gguf = "mamba2",
     .flags = {.feed_forwards = false, .mixer = Mixer::kMamba2, .rotary = kUnturned}},
    {.gguf = "olmo2",
     .hugging_face = "olmo2",
     .flags = {.pre_norms = false,
               .post_norms = true,
               .norm_of_heads = NormOfHeads::kWhole,
               .rotary = kHalves}},
    {.gguf = "phi2",
     .hugging_face = "phi",
     .flags = {.norm = NormKind::kLayer,
               .parallel = true,
               .bend = Bend::kGeluTanh,
               .gated = false,
               .biases = kQkvBias | kAttentionOutputBias | kFeedForwardBias,
               .rotary = kHalves}},
    {.gguf = "phi3", .hugging_face = "phi3", .flags = {.gate_in_up = true, .rotary = kHalves}},
    {.gguf = "qwen2", .hugging_face = "qwen2", .flags = {.rotary = kHalves}},
    {.gguf = "qwen2moe",
     .hugging_face = "qwen2_moe",
     .flags = {.rotary = kHalves, .normalised_gates = false}},
    {.gguf = "qwen3",
     .hugging_face = "qwen3",
     .flags = {.norm_of_heads = NormOfHeads::kEach, .rotary = kHalves}},
    {.gguf = "qwen35",
     .flags = {.norm_of_heads = NormOfHeads::kEach,
               .gated_attention = true,
               .mixer = Mixer::kDeltaNet,
               .attention_every = 4,
               .rotary = kHalves}},
    {.gguf = "qwen3moe",
     .hugging_face = "qwen3_moe",
     .flags = {.norm_of_heads = NormOfHeads::kEach, .rotary = kHalves}},
    {.gguf = "seed_oss", .hugging_face = "seed_oss", .flags = {.rotary = kHalves}},
    {.gguf = "smollm3",
     .hugging_face = "smollm3",
     .flags = {.rotary = kNeighbours, .no_rotary_every = 4}},
    {.gguf = "stablelm",
     .hugging_face = "stablelm",
     .flags = {.norm = NormKind::kLayer,
               .norm_or_parallel = true,
               .norm_of_heads = NormOfHeads::kEachOwn,
               .rotary = kHalves}},
    {.gguf = "starcoder2",
     .hugging_face = "starcoder2",
     .flags = {.norm = NormKind::kLayer,
               .bend = Bend::kGeluTanh,
               .gated = false,
               .biases = kQkvBias | kAttentionOutputBias | kFeedForwardBias,
               .rotary = kHalves}},
    {.hugging_face = "mistral", .flags = {.rotary = kHalves}},
    {.hugging_face = "mixtral", .flags = {.rotary = kHalves}},
    {.hugging_face = "opt",
     .flags = {.norm = NormKind::kLayer,
               .bend = Bend::kRelu,
               .gated = false,
               .biases = kQkvBias | kAttentionOutputBias | kFeedForwardBias,
               .learned_positions = true,
               .rotary = kUnturned}},
};

}  // namespace

std::span<const Architecture> Architectures() { return kRows; }

const Architecture* FindGgufArchitecture(std::string_view name) {
  for (const Architecture& row : kRows)
    if (!name.empty() && row.gguf == name) return &row;
  return nullptr;
}

const Architecture* FindHuggingFaceArchitecture(std::string_view model_type) {
  for (const Architecture& row : kRows)
    if (!model_type.empty() && row.hugging_face == model_type) return &row;
  return nullptr;
}

std::vector<const Architecture*> NearArchitectures(const std::string& name,
                                                   std::string_view Architecture::*of) {
  std::set<std::string> names;
  for (const Architecture& row : kRows)
    if (!(row.*of).empty()) names.emplace(row.*of);
  std::vector<const Architecture*> rows;
  for (const std::string& near : NearNames(names, name))
    rows.push_back(std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Architecture& row) { return row.*of == near; }));
  return rows;
}

Error UnknownArchitecture(const std::string& name, std::string_view Architecture::*of) {
  std::set<std::string> names, all;
  for (const Architecture& row : kRows)
    if (!(row.*of).empty()) names.emplace(row.*of);
  const auto encoders =
      of == &Architecture::gguf ? &EncoderArchitecture::gguf : &EncoderArchitecture::hugging_face;
  all = names;
  for (const EncoderArchitecture& row : EncoderArchitectures())
    if (!(row.*encoders).empty()) all.emplace(row.*encoders);
  Error error("unsupported-architecture",
              fmt::format("there is no row for the architecture \"{}\"", name));
  error.Expected(fmt::format("\"{}\"", fmt::join(names, "\", \"")));
  error.Note("encoders: " + EncoderNames(encoders));
  if (std::vector<std::string> near = NearNames(all, name); !near.empty())
    error.Note(fmt::format("the nearest: \"{}\"", near[0]));
  return error;
}

}  // namespace mlc
