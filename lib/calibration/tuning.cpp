#include "lib/calibration/tuning.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "lib/compress/latent_weight.h"
#include "lib/compress/weight_view.h"
#include "lib/gradients/gradients.h"
#include "lib/support/threads.h"

namespace mlc::calibration {

namespace {

using compress::LatentWeight;
using compress::Tunable;
using compress::Tuned;

// How much a squared error counts: the loss of an output is its error relative to its variance.
double ImportanceOf(const Tensor& reference) {
  const std::vector<float> values = compress::ReadFloats(reference, 0, reference.size());
  double sum = 0, squares = 0;
  for (const float x : values) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const double energy = squares - sum * sum / static_cast<double>(values.size());
  return energy > 0 && std::isfinite(energy) ? 1 / energy : 0;
}

// Indices in an order that depends on nothing but their number.
std::vector<size_t> Shuffled(size_t count, std::mt19937& random) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t other = random() % (i + 1);
    order[i] = order[other];
    order[other] = i;
  }
  return order;
}

// Runs the program that computes gradients.
class Training {
 public:
  // `inputs_of`: by weight, its inputs among those of the program.
  Training(const gradients::Differentiated& made, const std::vector<std::vector<size_t>>& inputs_of)
      : made_(made),
        inputs_of_(inputs_of),
        engine_(*made.program.functions[0],
                {.arithmetic = engine::EngineOptions::Arithmetic::kExact,
                 .threads = 1,
                 .kernels = engine::EngineOptions::Kernels::kReproducible}) {}

  // Sets the values of a weight for the runs from now on.
  void Set(size_t weight, const Dims& dims, const std::vector<float>& values) {
    const Tensor tensor = Tensor::Of(dims, values);
    for (const size_t input : inputs_of_[weight]) given_[made_.weights[input]] = tensor;
  }

  std::map<std::string, Tensor> Run(const verify::StepInputs& inputs,
                                    const std::map<std::string, Tensor>& references) const {
    std::map<std::string, Tensor> all = given_;
    for (const auto& [name, tensor] : inputs)
      all[name] = IsFloat(tensor.dtype()) ? tensor.Cast(DType::kFp32).InMemory() : tensor;
    for (const auto& [output, names] : made_.references) {
      const Tensor& reference = references.at(output);
      all[names.reference] = reference.Cast(DType::kFp32).InMemory();
      if (!names.importance.empty())
        all[names.importance] = Tensor::Scalar(static_cast<float>(ImportanceOf(reference)));
    }
    return engine_.Run(all);
  }

  double LossOf(const std::map<std::string, Tensor>& results) const {
    return results.at(made_.loss).Doubles()[0];
  }

 private:
  const gradients::Differentiated& made_;
  const std::vector<std::vector<size_t>>& inputs_of_;
  engine::Engine engine_;
  std::map<std::string, Tensor> given_;
};

}  // namespace

Tuner::Tuner(const Samples& samples, std::set<std::string> logits, double work_of_samples,
             double most_work)
    : logits_(std::move(logits)) {
  if (samples.functions.size() != 1) return;
  const auto& [name, all] = *samples.functions.begin();
  // Gradients take about twice the work of the values.
  const double of_step =
      3.0 * kBatch * work_of_samples / static_cast<double>(std::max<size_t>(all.size(), 1));
  steps_ =
      static_cast<int64_t>(std::clamp(most_work / of_step, 0.0, static_cast<double>(kMostSteps)));
  function_ = name;
  // Gradients are built for one step, with fixed sizes.
  for (const Sample& sample : all) {
    const auto same = [&](const auto& input) {
      const auto other = all[0][0].find(input.first);
      return other != all[0][0].end() && other->second.dims() == input.second.dims();
    };
    if (sample.size() == 1 && std::ranges::all_of(sample[0], same)) samples_.push_back(&sample[0]);
  }
}

bool Tuner::Aim(const Program& program) {
  steps_ = std::min(steps_, std::ssize(samples_) * kMostUses / kBatch);
  if (steps_ < kLeastSteps || std::ssize(samples_) < kLeastSamples) return false;
  aim_.emplace(Clone(program));
  return true;
}

std::vector<std::map<std::string, Tensor>> Tuner::References(
    const std::set<std::string>& outputs) const {
  const engine::Engine engine(*verify::FunctionNamed(*aim_, function_),
                              {.arithmetic = engine::EngineOptions::Arithmetic::kExact,
                               .kernels = engine::EngineOptions::Kernels::kReproducible});
  constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  uint64_t bytes = 0;
  std::vector<std::map<std::string, Tensor>> references;
  for (const verify::StepInputs* inputs : samples_) {
    engine::States states;
    auto& made = references.emplace_back(engine.Run(*inputs, states));
    std::erase_if(made, [&](const auto& output) { return !outputs.contains(output.first); });
    for (const auto& [name, tensor] : made) bytes += ByteCount(tensor.dtype(), tensor.size());
    if (bytes > kMostBytes) break;
  }
  return references;
}

Tuned Tuner::operator()(const Program& program, std::vector<Tunable>& tunables,
                        const Progress& progress) const {
  Tuned result;
  const Function& function = *verify::FunctionNamed(program, function_);
  gradients::Request request{.function = function, .logits = logits_};
  for (const auto& [name, tensor] : *samples_[0]) request.input_dims[name] = tensor.dims();
  for (const Value* output : function.body.outputs())
    if (logits_.empty() ? IsFloat(output->type.dtype) : logits_.contains(output->name))
      request.outputs.insert(output->name);

  std::vector<LatentWeight> weights;
  std::vector<Tunable*> trained;
  std::vector<std::vector<size_t>> inputs_of;
  std::vector<Dims> dims;
  for (Tunable& tunable : tunables) {
    std::vector<size_t> inputs;
    auto weight = LatentWeight::Of(tunable.encoded, tunable.source);
    if (!weight) continue;
    for (const Value* value : tunable.values) {
      if (!value->def || value->def->block->function != &function) continue;
      inputs.push_back(request.weights.size());
      request.weights.push_back(value);
    }
    if (inputs.empty()) continue;
    weights.push_back(std::move(*weight));
    trained.push_back(&tunable);
    inputs_of.push_back(std::move(inputs));
    dims.push_back(tunable.encoded.dims());
  }
  if (weights.empty()) {
    result.why = "no weight has a form that can be trained";
    return result;
  }

  Diagnostics ignored;
  std::optional<gradients::Differentiated> made;
  try {
    made.emplace(gradients::Differentiate(request, ignored));
  } catch (const Error& error) {
    result.why = error.text();
    return result;
  }
  const std::vector<std::map<std::string, Tensor>> references = References(request.outputs);
  std::vector<size_t> train, held;
  for (size_t i = 0; i < references.size(); ++i) (i % 8 == 7 ? held : train).push_back(i);
  if (held.empty()) {
    result.why = "the outputs of samples take too much memory";
    return result;
  }
  Training training(*made, inputs_of);
  auto held_loss = [&] {
    std::vector<double> losses(held.size());
    ParallelFor(std::ssize(held), 0, [&](int64_t i) {
      losses[i] = training.LossOf(training.Run(*samples_[held[i]], references[held[i]]));
    });
    double sum = 0;
    for (const double loss : losses) sum += loss;
    return sum / static_cast<double>(held.size());
  };
  auto assign = [&](std::vector<LatentWeight>& weights) {
    for (size_t w = 0; w < weights.size(); ++w) training.Set(w, dims[w], weights[w].Values());
  };
  for (size_t w = 0; w < weights.size(); ++w)
    training.Set(w, dims[w],
                 compress::ReadFloats(Dense(trained[w]->encoded), 0, ElementCount(dims[w])));
  double best = held_loss();
  std::vector<Tensor> best_weights;

  auto train_all = [&](std::vector<LatentWeight> weights) {
    std::mt19937 random(0);
    std::vector<size_t> order;
    const int64_t batch = std::min<int64_t>(kBatch, std::ssize(train));
    constexpr double kRate = 3e-3, kWarmUp = 10;
    constexpr int64_t kBetweenChecks = 25;
    for (int64_t step = 0; step < steps_; ++step) {
      while (std::ssize(order) < batch) {
        const std::vector<size_t> more = Shuffled(train.size(), random);
        order.insert(order.begin(), more.begin(), more.end());
      }
      std::vector<size_t> drawn(order.end() - batch, order.end());
      order.resize(order.size() - static_cast<size_t>(batch));
      assign(weights);
      std::vector<std::map<std::string, Tensor>> results(drawn.size());
      ParallelFor(batch, 0, [&](int64_t i) {
        const size_t sample = train[drawn[i]];
        results[i] = training.Run(*samples_[sample], references[sample]);
      });
      const double left = 1 - static_cast<double>(step) / static_cast<double>(steps_),
                   rate = kRate * left * std::min(1.0, static_cast<double>(step + 1) / kWarmUp);
      ParallelFor(std::ssize(weights), 0, [&](int64_t w) {
        std::vector<float> sum(static_cast<size_t>(ElementCount(dims[w])));
        for (const auto& one : results)
          for (const size_t input : inputs_of[w]) {
            const Pin<float> gradient = one.at(made->gradients[input]).data<float>();
            for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
          }
        for (float& x : sum) x /= static_cast<float>(batch);
        weights[w].Step(sum, rate);
      });
      if ((step + 1) % kBetweenChecks == 0 || step + 1 == steps_) {
        assign(weights);
        if (const double loss = held_loss(); loss < best) {
          best = loss;
          best_weights.clear();
          for (const LatentWeight& weight : weights) best_weights.push_back(weight.Encoded());
        }
      }
      if (progress)
        progress({.name = "training compressed weights",
                  .share = static_cast<double>(step + 1) / static_cast<double>(steps_)});
    }
  };
  result.steps = steps_;
  result.samples = std::ssize(train);
  train_all(weights);
  result.codes = !best_weights.empty();
  if (best_weights.empty()) {
    // Codes were already chosen together, row by row, which gradients cannot always improve.
    for (LatentWeight& weight : weights) weight.KeepCodes();
    train_all(weights);
  }
  if (best_weights.empty()) {
    result.why = "it did not lower the loss on other samples";
    return result;
  }
  result.weights = std::ssize(weights);
  for (size_t i = 0; i < trained.size(); ++i) trained[i]->encoded = best_weights[i];
  return result;
}

}  // namespace mlc::calibration
