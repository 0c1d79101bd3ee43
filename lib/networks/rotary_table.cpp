#include "lib/networks/rotary_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mlc::networks {

namespace {

// YaRN (Peng et al. 2023, section 3.2): high frequencies are kept, low ones are divided by the
// factor, and those between are interpolated.
class Yarn {
 public:
  Yarn(const Rotary& rotary, double base) : factor_(rotary.factor) {
    auto pair = [&](double turns) {
      double length = static_cast<double>(rotary.original_context);
      return static_cast<double>(rotary.size) * std::log(length / (turns * 2 * std::numbers::pi)) /
             (2 * std::log(base));
    };
    low_ = std::max(std::floor(pair(rotary.fast)), 0.0);
    high_ = std::min(std::ceil(pair(rotary.slow)), static_cast<double>(rotary.size - 1));
  }
  double Frequency(double frequency, int64_t i) const {
    double at = (static_cast<double>(i) - low_) / std::max(0.001, high_ - low_);
    double stays = 1 - std::clamp(at, 0.0, 1.0);
    return frequency / factor_ * (1 - stays) + frequency * stays;
  }

 private:
  double factor_, low_, high_;
};

}  // namespace

RotaryTable MakeRotaryTable(const Rotary& rotary, int64_t positions,
                            const std::vector<double>& factors, bool local) {
  bool own = local && rotary.local_base > 0;
  const double base = own ? rotary.local_base : rotary.base;
  const RotaryScaling scaling = own ? rotary.local_scaling : rotary.scaling;
  const double magnitude = own ? rotary.local_magnitude : rotary.magnitude;
  const int64_t pairs = rotary.size / 2;
  std::vector<double> frequencies;
  for (int64_t i = 0; i < pairs; ++i) {
    double frequency =
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(rotary.size));
    if (!factors.empty() && !own) frequency /= factors[i];
    if (scaling == RotaryScaling::kLinear) frequency /= rotary.factor;
    if (scaling == RotaryScaling::kYarn) frequency = Yarn(rotary, base).Frequency(frequency, i);
    frequencies.push_back(frequency);
  }
  std::vector<float> cosine, sine;
  cosine.reserve(static_cast<size_t>(positions * pairs));
  sine.reserve(static_cast<size_t>(positions * pairs));
  for (int64_t position = 0; position < positions; ++position)
    for (double frequency : frequencies) {
      double angle = static_cast<double>(position) * frequency;
      cosine.push_back(static_cast<float>(std::cos(angle) * magnitude));
      sine.push_back(static_cast<float>(std::sin(angle) * magnitude));
    }
  return {Tensor::Of<float>({positions, pairs}, cosine),
          Tensor::Of<float>({positions, pairs}, sine)};
}

}  // namespace mlc::networks
