// tools/driver/errors.h - converts exceptions and messages of the library for users of the tools.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/support/error.h"

namespace mlc::driver {

// Returns the errors that the current exception stands for; call it in a catch clause. Exceptions
// of unknown types become "internal".
std::vector<Error> CurrentErrors();

// Replaces field names in a message of the library ("option 'dim'") by the flags of the command
// line ("--dim").
std::string WithFlags(std::string_view text);
// The opposite, for callers without a command line: "--dim" becomes "option 'dim'", and "-o" at the
// beginning the output. Commands in backquotes keep their flags.
std::string WithFields(std::string_view text);

}  // namespace mlc::driver
