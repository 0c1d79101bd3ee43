// frontends/gguf/names.h - what GGUF calls the tensors of a decoder, and which of them an architecture has.
#pragma once

#include <string>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc {

// "blk.0.attn_q.weight". Empty: GGUF has no such tensor.
std::string GgufName(std::string_view architecture, Role role, Part part, int64_t layer);

enum class TensorUse : uint8_t {
  kUnknown,   // a file that has it is not of this architecture: llama.cpp refuses it
  kIgnored,   // loaded, and nothing is computed with it
  kOptional,  // the network itself may need it
  kRequired,
};
// Returns what llama.cpp does with a tensor of the architecture.
TensorUse UseOfTensor(std::string_view architecture, Role role, Part part);

}  // namespace mlc
