// lib/networks/architectures.h - the supported decoder architectures, one row of flags each. A
// source's names for architectures, and the peculiarities of its files, are in its frontend.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc::networks {

// Returns the flags of the row with this name, which must exist.
const DecoderConfig& DecoderFlags(std::string_view name);

// Returns the error "unsupported-architecture" for a name without a row in a source; it lists the
// source's decoders and encoders and a similar name, if there is one.
Error UnsupportedArchitecture(const std::string& name, const std::set<std::string>& decoders,
                              const std::set<std::string>& encoders);

}  // namespace mlc::networks
