// tools/driver/weights.h - reads and replaces the weights of a program by name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::driver {

// A constant of at least kLeastWeight elements.
inline constexpr int64_t kLeastWeight = 10;
struct NamedWeight {
  std::string name;
  Operation* operation;   // the const; its `val` is the weight
  std::string why_fixed;  // why it cannot be replaced; empty: it can
};
// Returns the weights of all functions, in execution order.
std::vector<NamedWeight> WeightsOf(Program& program);
// Returns the first weight of this name. Error "bad-name", with similar names.
NamedWeight FindWeight(Program& program, const std::string& name);

// Replaces a weight, in all functions that have one of this name with the same elements. The tensor
// has the shape of the weight; between floating-point types it is rounded. Error "bad-name" for an
// unknown name; "bad-input" for another shape or type, and for a weight that cannot be replaced.
void SetWeight(Program& program, const std::string& name, const Tensor& tensor);

}  // namespace mlc::driver
