// frontends/gguf/names.h - GGUF's names for the tensors of a decoder.
#pragma once

#include <string>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc::gguf {

// Returns a name like "blk.0.attn_q.weight"; empty if GGUF has no such tensor.
std::string GgufName(std::string_view architecture, networks::Role role, networks::Part part,
                     int64_t layer);

}  // namespace mlc::gguf
