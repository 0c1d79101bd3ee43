// frontends/gguf/required_keys_and_tensors.h - which keys and tensors llama.cpp requires for each
// architecture.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc::gguf {

enum class Requirement : uint8_t {
  // Belongs to other architectures: llama.cpp ignores such a key and rejects a file with such a
  // tensor.
  kForeign,
  kIgnored,   // a tensor that llama.cpp loads but does not use
  kOptional,  // may be absent, unless the network itself needs it
  kRequired,
};

Requirement RequirementOfKey(std::string_view architecture,
                             std::string_view key);  // without the architecture prefix
Requirement RequirementOfTensor(std::string_view architecture, networks::Role role,
                                networks::Part part);

}  // namespace mlc::gguf
