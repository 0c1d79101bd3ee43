#include "lib/calibration/end_to_end_loss.h"

#include <algorithm>
#include <cmath>

#include "lib/compress/weight_view.h"

namespace mlc::calibration {

namespace {

std::vector<float> FloatsOf(const Tensor& tensor) {
  return compress::ReadFloats(tensor, 0, tensor.size());
}

const std::string& UserNameOf(const Function& function, const std::string& output) {
  const auto port = std::ranges::find(function.outputs, output, &Port::name);
  return port == function.outputs.end() ? output : verify::UserName(*port);
}

struct Sums {
  double error = 0, energy = 0, divergence = 0;
  std::map<std::string, double> peaks;
  int64_t rows = 0;
};

void AddNoise(const std::string& output, const std::vector<float>& value,
              const std::vector<float>& reference, Sums& sums) {
  // Relative to the variance: a constant carries no information.
  double mean = 0;
  for (const float x : reference) mean += static_cast<double>(x);
  mean /= static_cast<double>(std::max<size_t>(reference.size(), 1));
  double error = 0, energy = 0, worst = 0, low = 0, high = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double x = static_cast<double>(reference[i]), d = static_cast<double>(value[i]) - x;
    if (!std::isfinite(x)) continue;
    error += d * d;
    worst = std::max(worst, std::isfinite(d) ? std::fabs(d) : INFINITY);
    low = std::min(low, x);
    high = std::max(high, x);
    energy += (x - mean) * (x - mean);
  }
  if (!(energy > 0)) return;
  sums.error += error / energy;
  sums.energy += 1;
  double& peak = sums.peaks[output];
  peak = std::max(peak, worst / (high - low));
}

void AddDivergence(const std::vector<float>& value, const std::vector<float>& reference,
                   int64_t classes, Sums& sums) {
  auto log_sum = [&](const float* x) {
    const double most = static_cast<double>(*std::max_element(x, x + classes));
    double sum = 0;
    for (int64_t i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(x[i]) - most);
    return most + std::log(sum);
  };
  for (int64_t row = 0; row < std::ssize(reference) / classes; ++row) {
    const float *p = &reference[row * classes], *q = &value[row * classes];
    const double p_sum = log_sum(p), q_sum = log_sum(q);
    for (int64_t i = 0; i < classes; ++i) {
      const double log_p = static_cast<double>(p[i]) - p_sum;
      sums.divergence += std::exp(log_p) * (log_p - (static_cast<double>(q[i]) - q_sum));
    }
    ++sums.rows;
  }
}

}  // namespace

compress::Loss EndToEndLoss::operator()(const Program& program,
                                        engine::EngineOptions::Arithmetic arithmetic) {
  const bool first = references_.empty();
  Sums sums;
  for (const auto& function : program.functions) {
    const auto given = samples_.functions.find(function->name);
    if (given == samples_.functions.end()) continue;
    auto& references = references_[function->name];
    const engine::Engine engine(
        *function,
        {.arithmetic = arithmetic, .kernels = engine::EngineOptions::Kernels::kReproducible});
    size_t at = 0;
    const int64_t count = std::ssize(given->second), used = std::min(count, most_samples_);
    for (int64_t i = 0; i < used; ++i) {
      engine::States states;
      for (const verify::StepInputs& inputs : given->second[i * count / used]) {
        std::map<std::string, Tensor> outputs = engine.Run(inputs, states);
        if (first) {
          references.push_back(std::move(outputs));
          continue;
        }
        for (const auto& [name, reference] : references[at++]) {
          const bool logits = logits_.contains(name);
          if (!IsFloat(reference.dtype()) || (!logits_.empty() && !logits)) continue;
          const Tensor& output = outputs.at(name);
          if (output.dims() != reference.dims()) continue;  // sizes that depend on data
          const std::vector<float> value = FloatsOf(output), expected = FloatsOf(reference);
          AddNoise(UserNameOf(*function, name), value, expected, sums);
          if (logits) AddDivergence(value, expected, reference.dims().back(), sums);
        }
      }
    }
  }
  compress::Loss loss;
  if (sums.energy > 0) loss.noise = sums.error / sums.energy;
  for (const auto& [name, peak] : sums.peaks) loss.peak = std::max(loss.peak, peak);
  loss.peaks = std::move(sums.peaks);
  if (sums.rows > 0) loss.divergence = sums.divergence / static_cast<double>(sums.rows);
  return loss;
}

}  // namespace mlc::calibration
