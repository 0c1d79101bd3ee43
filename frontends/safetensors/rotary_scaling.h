// frontends/safetensors/rotary_scaling.h - the RoPE scaling settings of config.json.
#pragma once

#include "frontends/safetensors/config.h"
#include "lib/networks/decoder.h"

namespace mlc::safetensors {

// The divisors of frequencies, one per pair; empty: none. Some models have different divisors for
// contexts up to the training length and for longer ones.
struct RotaryFactors {
  std::vector<double> factors, long_factors, short_factors;
};
// Returns the number of rotated dimensions of a head. `key` gives a fraction of the head; if it is
// missing, all dimensions are rotated. Error "unsupported-architecture" for an invalid fraction.
int64_t RotaryDims(const Config& json, const std::string& key, int64_t head);
// Reads "rope_scaling", or "rope_parameters", which newer versions write, into `config`, whose
// base, size and context are already set (transformers, modeling_rope_utils.py). Error
// "unsupported-architecture" for an unknown type.
RotaryFactors ReadRotaryScaling(const Config& json, networks::DecoderConfig& config);

}  // namespace mlc::safetensors
