#include "lib/networks/relative_position_buckets.h"

#include <algorithm>
#include <cmath>

namespace mlc::networks {

namespace {

template <class F>
Tensor ForDistances(int64_t most, F&& bucket) {
  std::vector<int32_t> all;
  for (int64_t distance = 1 - most; distance < most; ++distance)
    all.push_back(static_cast<int32_t>(bucket(distance)));
  return Tensor::Vector<int32_t>(all);
}

}  // namespace

Tensor BiasBuckets(int64_t most, int64_t buckets, int64_t max_distance, bool one_sided) {
  const int64_t half = one_sided ? buckets : buckets / 2, exact = half / 2;
  return ForDistances(most, [&](int64_t distance) {
    if (one_sided) distance = std::max<int64_t>(distance, 0);
    const int64_t side = distance < 0 ? half : 0, far = std::abs(distance);
    if (far < exact) return side + far;
    float part = std::log(static_cast<float>(far) / static_cast<float>(exact));
    part /= static_cast<float>(
        std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
    auto step = static_cast<int64_t>(part * static_cast<float>(half - exact));
    return side + std::min(exact + step, half - 1);
  });
}

Tensor DisentangledBuckets(int64_t most, int64_t buckets, int64_t max_distance, int64_t span) {
  const int64_t middle = buckets / 2;
  return ForDistances(most, [&](int64_t distance) {
    int64_t bucket = distance;
    if (buckets > 0 && std::abs(distance) > middle) {
      const auto mid = static_cast<float>(middle);
      float part = std::log(static_cast<float>(std::abs(distance)) / mid);
      part /= std::log(
          static_cast<float>(static_cast<double>(max_distance - 1) / static_cast<double>(middle)));
      bucket = static_cast<int64_t>(std::ceil(part * (mid - 1))) + middle;
      if (distance < 0) bucket = -bucket;
    }
    return std::clamp<int64_t>(bucket + span, 0, 2 * span - 1);
  });
}

}  // namespace mlc::networks
