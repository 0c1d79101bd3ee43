// frontends/safetensors/decoder_rows.h - the decoders of Hugging Face folders by model_type, and
// how transformers stores them.
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

}  // namespace mlc::safetensors
