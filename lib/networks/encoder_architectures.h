// lib/networks/encoder_architectures.h - the supported encoder architectures, one row of flags
// each. A source's names for architectures, and the peculiarities of its files, are in its
// frontend.
#pragma once

#include <string_view>

#include "lib/networks/encoder.h"

namespace mlc::networks {

// Returns the flags of the row with this name, which must exist.
const EncoderConfig& EncoderFlags(std::string_view name);

}  // namespace mlc::networks
