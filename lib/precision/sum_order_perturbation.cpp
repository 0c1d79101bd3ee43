#include "lib/precision/sum_order_perturbation.h"

#include <bit>
#include <cmath>

#include "lib/support/half.h"
#include "lib/support/philox.h"

namespace mlc::precision {

namespace {

constexpr double kMoved = 0x1p-22;
// Values that are whole numbers below these bounds are probably exact.
template <class T>
constexpr float kWhole = std::is_same_v<T, Half> ? 0x1p8f : 0x1p20f;

// A fast generator of numbers from -1 to 1; it is called once for each element of a run.
class Draws {
 public:
  explicit Draws(uint64_t seed) {
    const PhiloxCounter words = Philox(seed, 0, 0);
    state_ = uint64_t{words[0]} << 32 | words[1];
  }
  double Next() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<double>(static_cast<int64_t>(state_) >> 24) * 0x1p-39;
  }

 private:
  uint64_t state_;
};

// The distance between adjacent fp16 numbers.
float StepOfHalf(float value) {
  const float power = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0x7F800000);
  return std::max(power * 0x1p-10f, 0x1p-24f);
}

template <class T>
Tensor Moved(const Tensor& tensor, uint64_t seed) {
  Pin<T> values = tensor.data<T>();
  std::vector<T> moved(values.begin(), values.end());
  double sum = 0;
  int64_t finite = 0;
  for (T value : moved)
    if (const double v = static_cast<float>(value); std::isfinite(v)) {
      sum += v * v;
      ++finite;
    }
  if (sum == 0) return tensor;
  const double most = kMoved * std::sqrt(sum / static_cast<double>(finite));
  Draws draws(seed);
  for (T& value : moved) {
    const auto before = static_cast<float>(value);
    double by = most * draws.Next();
    // An fp16 value stands for any number within half a step, so the noise covers that interval.
    if constexpr (std::is_same_v<T, Half>) by += 0.5 * StepOfHalf(before) * draws.Next();
    if (!std::isfinite(before)) continue;
    if (std::fabs(before) < kWhole<T> && before == std::nearbyint(before)) continue;
    value = static_cast<T>(double{before} + by);
  }
  return Tensor::Of<T>(tensor.dims(), moved);
}

}  // namespace

void PerturbSumOrder(const Operation& op, std::span<Tensor> results, uint64_t seed) {
  if (!op.def->work) return;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].dtype() == DType::kFp32) results[i] = Moved<float>(results[i], seed + i);
    if (results[i].dtype() == DType::kFp16) results[i] = Moved<Half>(results[i], seed + i);
  }
}

}  // namespace mlc::precision
