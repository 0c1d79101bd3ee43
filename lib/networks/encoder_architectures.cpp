#include "lib/networks/encoder_architectures.h"

#include <algorithm>

namespace mlc::networks {

namespace {

using Positions = EncoderConfig::Positions;
using Relative = EncoderConfig::Relative;

struct EncoderArchitecture {
  std::string_view name;
  EncoderConfig flags = {};
};

constexpr Rotary kRotary = {};

const EncoderArchitecture kRows[] = {
    {"albert", {.projected_tokens = true, .pooler = true}},
    {"bert", {.pooler = true}},
    {"deberta-v2", {.relative = Relative::kDisentangled, .pooling = Activation::kGelu}},
    {"distilbert", {.pooling = Activation::kRelu}},
    {"electra", {.projected_tokens = true, .pooling = Activation::kGelu}},
    // Gemma 3 with bidirectional attention (EmbeddingGemma, arXiv 2509.20354, section 2.1).
    {"gemma-embedding",
     {.positions = Positions::kNone,
      .rotary = {.local_base = 10000},
      .norm = NormKind::kRms,
      .normed_embeddings = false,
      .pre_norms = true,
      .branch_norms = true,
      .qk_norm = true,
      .root_width_scale = true,
      .gated = true,
      .activation = Activation::kGeluTanh,
      .global_every = 6,
      .global_last = true}},
    {"modernbert",
     {.positions = Positions::kNone,
      .rotary = kRotary,
      .pre_norms = true,
      .gated = true,
      .pooling = Activation::kGelu,
      .normed_pooling = true,
      .global_every = 3}},
    {"mpnet", {.positions = Positions::kPastPadding, .relative = Relative::kBias, .pooler = true}},
    {"nomic-bert", {.positions = Positions::kNone, .rotary = kRotary, .gated = true}},
    {"roberta", {.positions = Positions::kPastPadding, .pooler = true}},
    // Raffel et al. 2020 (arXiv 1910.10683), section 2.1: there are no biases, and scores are not
    // scaled.
    {"t5",
     {.positions = Positions::kNone,
      .relative = Relative::kBias,
      .norm = NormKind::kRms,
      .normed_embeddings = false,
      .pre_norms = true,
      .attention_scale = 1}},
    {"umt5",
     {.positions = Positions::kNone,
      .relative = Relative::kOwnBias,
      .norm = NormKind::kRms,
      .normed_embeddings = false,
      .pre_norms = true,
      .attention_scale = 1}},
};

}  // namespace

const EncoderConfig& EncoderFlags(std::string_view name) {
  const auto* row =
      std::find_if(std::begin(kRows), std::end(kRows),
                   [&](const EncoderArchitecture& each) { return each.name == name; });
  MLC_CHECK(row != std::end(kRows), "no encoder architecture {}", name);
  return row->flags;
}

}  // namespace mlc::networks
