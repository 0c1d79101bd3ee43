// frontends/safetensors/activation_names.h - the names of activations in config.json.
#pragma once

#include <string>

#include "frontends/safetensors/config.h"
#include "lib/networks/activation.h"

namespace mlc {

// The activation that a member, which must exist, names. Error "unsupported-architecture" for other
// names than those of transformers' activations.py that mlc supports.
Activation ActivationOf(const Config& config, const std::string& key);

}  // namespace mlc
