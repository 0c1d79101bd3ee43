// frontends/safetensors/bends.h - what config.json calls the functions of lib/networks/bends.h.
#pragma once

#include <string>

#include "frontends/safetensors/config.h"
#include "lib/networks/bends.h"

namespace mlc {

// Of a member that is there. Error "unsupported-architecture" for a name that is none of transformers'
// activations.py that mlc knows.
Bend BendOf(const Config& config, const std::string& key);

}  // namespace mlc
