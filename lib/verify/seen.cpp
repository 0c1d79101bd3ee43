#include "lib/verify/seen.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/support/half.h"
#include "lib/verify/figures.h"

namespace mlc {

namespace {

constexpr double kWild = 65504 / 16;  // below it no sample is taken for a warning
constexpr size_t kFewLooks = 4;

template <class T>
void Look(const Pin<T>& values, Seen& seen) {
  for (T value : values) {
    float magnitude = std::fabs(static_cast<float>(value));
    if (!(magnitude < std::numeric_limits<float>::infinity()))
      seen.finite = false;
    else if (magnitude > seen.largest)
      seen.largest = magnitude;
  }
}

}  // namespace

void Look(const Tensor& tensor, Seen& seen) {
  Seen once;
  if (tensor.dtype() == DType::kFp32) Look(tensor.data<float>(), once);
  if (tensor.dtype() == DType::kFp16) Look(tensor.data<Half>(), once);
  seen.largest = std::max(seen.largest, once.largest);
  seen.finite = seen.finite && once.finite;
  seen.of_each.push_back(once.largest);
}

double Reach(const Seen& seen) {
  if (seen.largest < kWild || seen.of_each.size() < kFewLooks) return seen.largest;
  return seen.largest * seen.largest / std::max(Median(seen.of_each), 1.0);
}

}  // namespace mlc
