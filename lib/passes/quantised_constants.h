// lib/passes/quantised_constants.h - what the pass quantised-constants asks of a target.
#pragma once

#include <optional>

#include "lib/passes/pass.h"

namespace mlc {

// The first target that stores the constant in its quantised form as it is; nothing where the pass
// leaves it dense whatever the target.
std::optional<Opset> QuantisedSince(const Operation& op, PassContext::Precision precision);

}  // namespace mlc
