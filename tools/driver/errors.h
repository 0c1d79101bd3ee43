// tools/driver/errors.h - what an exception is for those outside.
#pragma once

#include <vector>

#include "lib/support/error.h"

namespace mlc {

// In a catch clause: the errors that the exception stands for; what is none of ours is "internal".
std::vector<Error> CurrentErrors();

}  // namespace mlc
