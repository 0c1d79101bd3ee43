// tools/driver/errors.h - what exceptions and texts of the library are for those outside.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/support/error.h"

namespace mlc {

// In a catch clause: the errors that the exception stands for; what is none of ours is "internal".
std::vector<Error> CurrentErrors();

// The library names an option by its field, "option 'dim'"; the command line calls that --dim.
std::string WithFlags(std::string_view text);

}  // namespace mlc
