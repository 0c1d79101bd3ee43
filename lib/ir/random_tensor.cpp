#include "lib/ir/random_tensor.h"

#include <cmath>
#include <numbers>

#include "lib/support/error.h"
#include "lib/support/philox.h"

namespace mlc {

Tensor RandomTensor(DType dtype, Dims dims, uint64_t seed, uint64_t stream) {
  if (dtype == DType::kString || Bits(dtype) % 8 != 0)
    throw Error("unsupported-dtype", "cannot generate random values of type {}", Name(dtype));
  std::vector<float> values(ElementCount(dims));
  for (size_t i = 0; i < values.size(); i += 4) {
    PhiloxCounter words = Philox(seed, stream, i / 4);
    double block[4];
    for (int k = 0; k < 4; ++k)
      block[k] = IsFloat(dtype) ? (words[k] + 0.5) * 0x1p-32 : words[k] & 1;
    if (IsFloat(dtype))  // Box-Muller transform: two uniform numbers give two normal ones
      for (int k = 0; k < 4; k += 2) {
        double radius = std::sqrt(-2 * std::log(block[k])),
               angle = 2 * std::numbers::pi * block[k + 1];
        block[k] = radius * std::cos(angle);
        block[k + 1] = radius * std::sin(angle);
      }
    for (size_t k = 0; k < 4 && i + k < values.size(); ++k)
      values[i + k] = static_cast<float>(block[k]);
  }
  return Tensor::Of(std::move(dims), values).Cast(dtype);
}

}  // namespace mlc
