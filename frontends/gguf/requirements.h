// frontends/gguf/requirements.h - what llama.cpp does with the keys and tensors of each architecture.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc {

enum class Requirement : uint8_t {
  kForeign,   // of other architectures: llama.cpp does not read such a key, and refuses a file with
              // such a tensor
  kIgnored,   // a tensor that is loaded, and with which nothing is computed
  kOptional,  // the network itself may need it
  kRequired,
};

Requirement RequirementOfKey(std::string_view architecture,
                             std::string_view key);  // without the architecture in front
Requirement RequirementOfTensor(std::string_view architecture, Role role, Part part);

}  // namespace mlc
