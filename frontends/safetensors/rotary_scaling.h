// frontends/safetensors/rotary_scaling.h - how config.json scales rotary embedding for long contexts.
#pragma once

#include "frontends/safetensors/config.h"
#include "lib/networks/decoder.h"

namespace mlc {

// What frequencies are divided by, one for each pair; empty: nothing. Of long contexts and of those
// that the model was trained for where these differ.
struct RotaryFactors {
  std::vector<double> factors, long_factors, short_factors;
};
// How many elements of a head turn, of which `key` says the share; without it all. Error
// "unsupported-architecture" where that is none.
int64_t TurnedElements(const Config& json, const std::string& key, int64_t head);
// Reads "rope_scaling", or "rope_parameters", which newer versions write, into `config`, whose base,
// size and context are there (transformers, modeling_rope_utils.py). Error "unsupported-architecture" for a way that it does not know.
RotaryFactors ReadRotaryScaling(const Config& json, DecoderConfig& config);

}  // namespace mlc
