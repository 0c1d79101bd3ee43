// lib/precision/seen.h - how great the numbers of a value were in all runs.
#pragma once

#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

struct Seen {
  double largest = 0;                // magnitude of a finite element
  bool finite = true;                // were all
  std::vector<double> of_each = {};  // the largest of each look
};
void Look(const Tensor& tensor, Seen& seen);
// How great other inputs may make them: quotients by numbers near zero are once as great again as
// this time above the usual.
double Reach(const Seen& seen);

}  // namespace mlc
