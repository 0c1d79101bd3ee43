// lib/networks/architectures.h - the known decoder architectures, one row of flags each. What a
// source calls an architecture, and how its files differ, is in the source's frontend.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc {

// The flags of the row with this name, which must exist.
const DecoderConfig& DecoderFlags(std::string_view name);

// Error "unsupported-architecture" for a name that a source has no row for, with the names of its
// decoders and encoders and the one that is spelled most like it.
Error UnsupportedArchitecture(const std::string& name, const std::set<std::string>& decoders,
                              const std::set<std::string>& encoders);

}  // namespace mlc
