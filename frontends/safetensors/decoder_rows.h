// frontends/safetensors/decoder_rows.h - the decoders that Hugging Face folders may have, by
// model_type, and how transformers stores them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc {

// Biases without which a folder is incomplete; elsewhere there may be one.
enum RequiredBiases : uint8_t {
  kQkvBias = 1,
  kAttentionOutputBias = 2,
  kFeedForwardBias = 4,
};

struct DecoderRow {
  std::string_view model_type;    // of config.json
  std::string_view architecture;  // the row of lib/networks/architectures.h
  bool interleaved = false;       // a pair of rotary embedding is two adjacent elements
  bool norm_adds_one = false;     // scales of norms are stored less 1
  bool fixed_activation = false;  // that of the architecture, whatever config.json says
  uint8_t biases = 0;             // RequiredBiases, unless config.json switches biases off
};

// Null: there is no such row.
const DecoderRow* FindDecoderRow(std::string_view model_type);
std::set<std::string> DecoderModelTypes();

bool RequiresBias(const DecoderRow& row, Role role);

}  // namespace mlc
