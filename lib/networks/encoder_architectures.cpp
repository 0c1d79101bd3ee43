#include "lib/networks/encoder_architectures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace mlc {

namespace {

using Positions = EncoderConfig::Positions;
using Relative = EncoderConfig::Relative;

constexpr Rotary kHalves = {};

const EncoderArchitecture kRows[] = {
    {.hugging_face = "albert", .flags = {.projected_tokens = true, .pooler = true}},
    {.gguf = "bert", .hugging_face = "bert", .flags = {.pooler = true}},
    {.hugging_face = "deberta-v2",
     .flags = {.relative = Relative::kDisentangled, .pooling = Bend::kGelu}},
    {.hugging_face = "distilbert", .flags = {.pooling = Bend::kRelu}},
    {.hugging_face = "electra", .flags = {.projected_tokens = true, .pooling = Bend::kGelu}},
    // Gemma 3 whose tokens see each other (EmbeddingGemma, arXiv 2509.20354, section 2.1).
    {.gguf = "gemma-embedding",
     .hugging_face = "gemma3_text",
     .flags = {.positions = Positions::kNone,
               .rotary = {.local_base = 10000},
               .norm = NormKind::kRms,
               .normed_embeddings = false,
               .pre_norms = true,
               .branch_norms = true,
               .norm_of_heads = true,
               .root_width_scale = true,
               .gated = true,
               .bend = Bend::kGeluTanh,
               .global_every = 6,
               .global_last = true}},
    {.gguf = "modern-bert",
     .hugging_face = "modernbert",
     .flags = {.positions = Positions::kNone,
               .rotary = kHalves,
               .pre_norms = true,
               .gated = true,
               .pooling = Bend::kGelu,
               .normed_pooling = true,
               .global_every = 3}},
    {.hugging_face = "mpnet",
     .flags = {.positions = Positions::kPastPadding, .relative = Relative::kBias, .pooler = true}},
    {.gguf = "nomic-bert",
     .hugging_face = "nomic_bert",
     .flags = {.positions = Positions::kNone, .rotary = kHalves, .gated = true},
     .gguf_bend = Bend::kSilu},
    {.hugging_face = "roberta", .flags = {.positions = Positions::kPastPadding, .pooler = true}},
    // Raffel et al. 2020 (arXiv 1910.10683), section 2.1: no biases, scores are not scaled.
    {.gguf = "t5encoder",
     .hugging_face = "t5",
     .flags = {.positions = Positions::kNone,
               .relative = Relative::kBias,
               .norm = NormKind::kRms,
               .normed_embeddings = false,
               .pre_norms = true,
               .attention_scale = 1}},
    {.hugging_face = "xlm-roberta",
     .flags = {.positions = Positions::kPastPadding, .pooler = true}},
};

const EncoderArchitecture* Find(std::string_view name, std::string_view EncoderArchitecture::*of) {
  for (const EncoderArchitecture& row : kRows)
    if (!name.empty() && row.*of == name) return &row;
  return nullptr;
}

}  // namespace

std::span<const EncoderArchitecture> EncoderArchitectures() { return kRows; }

const EncoderArchitecture* FindGgufEncoder(std::string_view name) {
  return Find(name, &EncoderArchitecture::gguf);
}

const EncoderArchitecture* FindHuggingFaceEncoder(std::string_view model_type) {
  return Find(model_type, &EncoderArchitecture::hugging_face);
}

std::string EncoderNames(std::string_view EncoderArchitecture::*of) {
  std::vector<std::string_view> names;
  for (const EncoderArchitecture& row : kRows)
    if (!(row.*of).empty()) names.push_back(row.*of);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace mlc
