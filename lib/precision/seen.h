// lib/precision/seen.h - the magnitudes of a value in all runs.
#pragma once

#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

struct Seen {
  double largest = 0;                // largest finite magnitude
  bool finite = true;                // all elements were finite
  std::vector<double> of_each = {};  // largest magnitude in each call of Look
};
void Look(const Tensor& tensor, Seen& seen);
// Estimates the magnitude for other inputs. If one sample is much larger than the median, as for
// quotients by numbers near zero, another sample may be larger by that factor again.
double Reach(const Seen& seen);

}  // namespace mlc
