// lib/networks/architectures.h - the supported decoder architectures, one row of flags each. A
// source's names for architectures, and the peculiarities of its files, are in its frontend.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc::networks {

// Returns the flags of the row with this name, which must exist.
const DecoderConfig& DecoderFlags(std::string_view name);

// Returns the error "unsupported-architecture" for a name without a row in a source. `known` has the
// source's names, by kind of network ("decoders"); a similar name is suggested.
Error UnsupportedArchitecture(const std::string& name,
                              const std::map<std::string, std::set<std::string>>& known);

}  // namespace mlc::networks
