// lib/analysis/wants.h - what the operations of a function ask of the values that they read.
#pragma once

#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/analysis/cost.h"
#include "lib/ir/program.h"

namespace mlc {

// What the users of a value ask of its elements.
struct Want {
  double low = -std::numeric_limits<double>::infinity(),
         high = std::numeric_limits<double>::infinity();  // outside is refused or makes no sense
  double soft_low = std::numeric_limits<double>::infinity(),
         soft_high =
             -std::numeric_limits<double>::infinity();  // where results change: tests, clamps
  std::vector<std::pair<double, double>> parts;         // bounds by place in the last dimension
  double center = 0, scale = 0;       // where a float is meant to lie; scale 0: no idea
  bool mask = false, opaque = false;  // opaque: some user is not understood
  int valid = -1;                     // InputRange::valid
  const Operation* branch = nullptr;  // asked for through one side of this select
  std::string why;

  bool bounded() const {
    return low > -std::numeric_limits<double>::infinity() ||
           high < std::numeric_limits<double>::infinity();
  }
};

// Of every value that something asks anything of, at these sizes of the open dimensions. Bounds are
// followed back through moves, casts, and arithmetic with what is known.
std::unordered_map<const Value*, Want> FindWants(const Function& function,
                                                 const SymbolSizes& sizes);

}  // namespace mlc
