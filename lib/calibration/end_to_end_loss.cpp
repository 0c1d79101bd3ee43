// Operators by name: those that make probabilities of scores.
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

// How an output is computed from scores.
enum class Probabilities : uint8_t { kNone, kSoftmax, kSigmoid };

Probabilities ProbabilitiesOf(const Value* value) {
  // Operations that move or convert the probabilities do not matter.
  while (value->def && (value->def->def->moves != Moves::kNone || value->def->is("cast")) &&
         value->def->def->Find("x") >= 0 && value->def->value("x"))
    value = value->def->value("x");
  if (value->def && value->def->is("softmax")) return Probabilities::kSoftmax;
  if (value->def && value->def->is("sigmoid")) return Probabilities::kSigmoid;
  return Probabilities::kNone;
}

// The scores of probabilities, up to a constant for each row of a softmax. Small probabilities count
// as equal: whether one is 1e-6 or 1e-9 matters to nobody, but would be most of the error.
std::vector<float> ScoresOf(std::vector<float> values, Probabilities kind) {
  constexpr double kLeast = 1e-3;
  for (float& value : values) {
    const double p = static_cast<double>(value);
    double score = std::log(std::max(p, kLeast));
    if (kind == Probabilities::kSigmoid) score -= std::log(std::max(1 - p, kLeast));
    value = static_cast<float>(score);
  }
  return values;
}

// The values of an output with one element, of all samples: alone they have no variance.
struct Single {
  std::vector<float> values, references;
  Probabilities kind;
};

struct Sums {
  double error = 0, energy = 0, divergence = 0;
  double error_of_scores = 0, numbers = 0;
  std::map<std::string, double> peaks;
  std::map<std::string, Single> singles;
  int64_t rows = 0;
};

// The error and the energy of an output, and its largest error relative to its range.
struct Noise {
  double error = 0, energy = 0, peak = 0;
};

Noise NoiseOf(const std::vector<float>& value, const std::vector<float>& reference) {
  // Relative to the variance: a constant carries no information.
  double mean = 0;
  for (const float x : reference) mean += static_cast<double>(x);
  mean /= static_cast<double>(std::max<size_t>(reference.size(), 1));
  double worst = 0, low = 0, high = 0;
  Noise noise;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double x = static_cast<double>(reference[i]), d = static_cast<double>(value[i]) - x;
    if (!std::isfinite(x)) continue;
    noise.error += d * d;
    worst = std::max(worst, std::isfinite(d) ? std::fabs(d) : INFINITY);
    low = std::min(low, x);
    high = std::max(high, x);
    noise.energy += (x - mean) * (x - mean);
  }
  noise.peak = worst / (high - low);
  return noise;
}

// Adds the noise of an output, which counts as much as so many samples.
void AddNoise(const std::vector<float>& value, const std::vector<float>& reference,
              Probabilities kind, double samples, Sums& sums) {
  const Noise noise = NoiseOf(value, reference);
  if (!(noise.energy > 0)) return;
  sums.error += samples * noise.error / noise.energy;
  sums.energy += samples;
  const Noise scores = kind == Probabilities::kNone
                           ? noise
                           : NoiseOf(ScoresOf(value, kind), ScoresOf(reference, kind));
  if (scores.energy > 0) sums.error_of_scores += samples * scores.error / scores.energy;
}

void AddOutput(const std::string& output, const std::vector<float>& value,
               const std::vector<float>& reference, Probabilities kind, Sums& sums) {
  const Noise noise = NoiseOf(value, reference);
  if (noise.energy > 0 || (reference.size() == 1 && reference[0] != 0)) {
    double& peak = sums.peaks[output];
    peak = std::max(peak, noise.peak);
  }
  if (reference.size() != 1) {
    sums.numbers += static_cast<double>(reference.size());
    return AddNoise(value, reference, kind, 1, sums);
  }
  Single& single = sums.singles.try_emplace(output, Single{.kind = kind}).first->second;
  single.values.push_back(value[0]);
  single.references.push_back(reference[0]);
}

void AddSingle(const Single& single, Sums& sums) {
  const auto samples = static_cast<double>(single.values.size());
  AddNoise(single.values, single.references, single.kind, samples, sums);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < single.values.size(); ++i) {
    const double d =
        static_cast<double>(single.values[i]) - static_cast<double>(single.references[i]);
    sum += d;
    squares += d * d;
  }
  const double shared = squares > 0 ? sum * sum / (samples * squares) : 0;  // between 0 and 1
  sums.numbers += 1 / (shared + (1 - shared) / samples);
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
    std::map<std::string, Probabilities> kinds;
    for (const Value* output : function->body.outputs())
      kinds[output->name] = ProbabilitiesOf(output);
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
          AddOutput(UserNameOf(*function, name), value, expected,
                    logits ? Probabilities::kNone : kinds.at(name), sums);
          if (logits) AddDivergence(value, expected, reference.dims().back(), sums);
        }
      }
    }
  }
  for (const auto& [name, single] : sums.singles) AddSingle(single, sums);
  compress::Loss loss;
  if (sums.energy > 0) {
    loss.noise = sums.error / sums.energy;
    loss.noise_of_scores = sums.error_of_scores / sums.energy;
  }
  for (const auto& [name, peak] : sums.peaks) loss.peak = std::max(loss.peak, peak);
  loss.peaks = std::move(sums.peaks);
  loss.numbers = sums.numbers;
  if (sums.rows > 0) loss.divergence = sums.divergence / static_cast<double>(sums.rows);
  return loss;
}

}  // namespace mlc::calibration
