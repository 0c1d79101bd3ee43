// lib/networks/encoder_architectures.h - the known encoder architectures, one row of flags each.
// What a source calls an architecture, and how its files differ, is in the source's frontend.
#pragma once

#include <string_view>

#include "lib/networks/encoder.h"

namespace mlc {

// The flags of the row with this name, which must exist.
const EncoderConfig& EncoderFlags(std::string_view name);

}  // namespace mlc
