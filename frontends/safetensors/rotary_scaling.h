// frontends/safetensors/rotary_scaling.h - RoPE scaling of config.json.
#pragma once

#include "frontends/safetensors/config.h"
#include "lib/networks/decoder.h"

namespace mlc {

// The divisors of frequencies, one for each pair; empty: none. Some models have different ones for
// long contexts and for those of the training.
struct RotaryFactors {
  std::vector<double> factors, long_factors, short_factors;
};
// The number of rotated dimensions of a head, a fraction of which `key` gives; without the key all.
// Error "unsupported-architecture" for an invalid fraction.
int64_t RotaryDims(const Config& json, const std::string& key, int64_t head);
// Reads "rope_scaling", or "rope_parameters", which newer versions write, into `config`, whose
// base, size and context are already set (transformers, modeling_rope_utils.py). Error
// "unsupported-architecture" for an unknown type.
RotaryFactors ReadRotaryScaling(const Config& json, DecoderConfig& config);

}  // namespace mlc
