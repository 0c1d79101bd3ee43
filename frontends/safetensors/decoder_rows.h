// frontends/safetensors/decoder_rows.h - the decoders of Hugging Face folders by model_type, and
// how transformers stores them: names and layouts of tensors.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc::safetensors {

// Biases that a folder must have; other biases are optional.
enum RequiredBiases : uint8_t {
  kQkvBias = 1,
  kAttentionOutputBias = 2,
  kFeedForwardBias = 4,
};

struct DecoderRow {
  std::string_view model_type;    // in config.json
  std::string_view architecture;  // the row of lib/networks/architectures.h
  bool interleaved = false;       // rotary embedding pairs two adjacent elements
  bool norm_adds_one = false;     // scales of norms are stored minus 1
  bool fixed_activation = false;  // the architecture's activation is used; config.json is ignored
  uint8_t biases = 0;             // RequiredBiases, unless config.json disables biases
};

// Returns null if there is no such row.
const DecoderRow* FindDecoderRow(std::string_view model_type);
std::set<std::string> DecoderModelTypes();

bool RequiresBias(const DecoderRow& row, networks::Role role);

enum class Arrangement : uint8_t {
  kPlain,
  kTransposed,   // a matrix is [in, out]
  kByHead,       // fused queries, keys and values are grouped by head
  kPerExpert,    // one tensor per expert
  kSkipTwoRows,  // the first two rows are skipped
  kDepthwise,    // [channels, 1, taps] for [channels, taps]
};

struct HuggingFaceName {
  networks::Role role;
  std::string_view name;             // {} is the layer, a second {} the expert; without ".weight"
  std::string_view model_type = {};  // empty: all families without a specific row
  Arrangement arrangement = Arrangement::kPlain;
};
// Returns null if Hugging Face has no such tensor.
const HuggingFaceName* FindHuggingFaceName(std::string_view model_type, networks::Role role);
// Returns a name like "model.layers.0.mlp.experts.7.up_proj.weight".
std::string NameOf(const HuggingFaceName& row, networks::Part part, int64_t layer,
                   int64_t expert = 0);
// Returns whether a tensor is a table that older versions of transformers saved with the weights
// but that is not needed.
bool IsLeftOver(std::string_view name);

}  // namespace mlc::safetensors
