// lib/precision/activation_stats.h - the magnitudes of a value in all runs.
#pragma once

#include <vector>

#include "lib/ir/tensor.h"

namespace mlc::precision {

struct ActivationStats {
  double largest = 0;                // largest finite magnitude
  bool finite = true;                // all elements were finite
  std::vector<double> of_each = {};  // largest magnitude in each call of Look
};
void UpdateStats(const Tensor& tensor, ActivationStats& seen);
// Estimates the magnitude for other inputs. If one sample is much larger than the median, as for
// quotients by numbers near zero, another sample may be larger by that factor again.
double ExtrapolatedMagnitude(const ActivationStats& seen);

}  // namespace mlc::precision
