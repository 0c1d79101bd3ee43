// lib/ir/target_systems.h - the releases of each system that a target stands for.
#pragma once

#include <string_view>
#include <vector>

#include "lib/ir/op_def.h"

namespace mlc {

struct SystemRelease {
  std::string_view system, version;  // "macOS", "14"
};
// Returns the first release of each system that supports `target`, iOS first. Systems that did not
// exist yet are absent: all of their releases support it.
std::vector<SystemRelease> SystemsOf(Opset target);

}  // namespace mlc
