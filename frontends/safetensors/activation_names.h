// frontends/safetensors/activation_names.h - the names of activations in config.json.
#pragma once

#include <string>

#include "frontends/safetensors/config.h"
#include "lib/networks/activation.h"

namespace mlc::safetensors {

// Returns the activation that a member names; the member must exist. Error
// "unsupported-architecture" for names in transformers' activations.py that mlc does not support,
// and for unknown names.
networks::Activation ActivationOf(const Config& config, const std::string& key);

}  // namespace mlc::safetensors
