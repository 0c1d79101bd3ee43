#include "lib/calibration/tuning.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <span>

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
double ImportanceOf(std::span<const float> values) {
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

std::vector<std::map<std::string, Tensor>> Tuner::Inputs(
    const gradients::Differentiated& made) const {
  const engine::Engine engine(*verify::FunctionNamed(*aim_, function_),
                              {.arithmetic = engine::EngineOptions::Arithmetic::kExact,
                               .kernels = engine::EngineOptions::Kernels::kReproducible});
  constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  uint64_t bytes = 0;
  std::vector<std::map<std::string, Tensor>> all;
  for (const verify::StepInputs* inputs : samples_) {
    auto& own = all.emplace_back();
    for (const auto& [name, tensor] : *inputs)
      own[name] = IsFloat(tensor.dtype()) ? tensor.Cast(DType::kFp32) : tensor;
    engine::States states;
    const std::map<std::string, Tensor> outputs = engine.Run(*inputs, states);
    for (const auto& [output, names] : made.references) {
      const Tensor& reference = own[names.reference] = outputs.at(output).Cast(DType::kFp32);
      if (!names.importance.empty())
        own[names.importance] = Tensor::Scalar(
            static_cast<float>(ImportanceOf(compress::ReadFloats(reference, 0, reference.size()))));
      bytes += ByteCount(DType::kFp32, reference.size());
    }
    if (bytes > kMostBytes) break;
  }
  // A single number has a variance over samples only.
  for (const auto& [output, names] : made.references) {
    if (names.importance.empty() || all[0][names.reference].size() != 1) continue;
    std::vector<float> numbers;
    for (auto& own : all) numbers.push_back(own[names.reference].data<float>()[0]);
    const double importance = ImportanceOf(numbers) * static_cast<double>(numbers.size());
    for (auto& own : all) own[names.importance] = Tensor::Scalar(static_cast<float>(importance));
  }
  return all;
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

  std::vector<Tunable*> trained;
  std::vector<std::vector<size_t>> inputs_of;  // by weight, its inputs among those of the program
  int64_t elements = 0;
  for (Tunable& tunable : tunables) {
    if (!LatentWeight::Knows(tunable.encoded)) continue;
    std::vector<size_t> inputs;
    for (const Value* value : tunable.values) {
      if (!value->def || value->def->block->function != &function) continue;
      inputs.push_back(request.weights.size());
      request.weights.push_back(value);
    }
    if (inputs.empty()) continue;
    trained.push_back(&tunable);
    inputs_of.push_back(std::move(inputs));
    elements += tunable.encoded.size();
  }
  auto leave = [&](std::string why) {
    result.why = std::move(why);
    return result;
  };
  if (trained.empty()) return leave("no weight has a form that can be trained");
  if (elements > kMostElements) return leave("the weights take too much memory");
  Diagnostics ignored;
  std::optional<gradients::Differentiated> made;
  try {
    made.emplace(gradients::Differentiate(request, ignored));
  } catch (const Error& error) {
    return leave(error.text());
  }
  const std::vector<std::map<std::string, Tensor>> samples = Inputs(*made);
  std::vector<size_t> train, held;
  for (size_t i = 0; i < samples.size(); ++i) (i % 8 == 7 ? held : train).push_back(i);
  if (held.empty()) return leave("the outputs of samples take too much memory");

  const engine::Engine engine(*made->program.functions[0],
                              {.arithmetic = engine::EngineOptions::Arithmetic::kExact,
                               .threads = 1,
                               .kernels = engine::EngineOptions::Kernels::kReproducible});
  std::map<std::string, Tensor> values;  // of the weights, by input
  auto set = [&](size_t weight, std::vector<float> numbers) {
    const Tensor tensor = Tensor::Of(trained[weight]->encoded.dims(), numbers);
    for (const size_t input : inputs_of[weight]) values[made->weights[input]] = tensor;
  };
  auto run = [&](size_t sample) {
    std::map<std::string, Tensor> all = values;
    all.insert(samples[sample].begin(), samples[sample].end());
    return engine.Run(all);
  };
  auto held_loss = [&] {
    std::vector<double> losses(held.size());
    ParallelFor(std::ssize(held), 0,
                [&](int64_t i) { losses[i] = run(held[i]).at(made->loss).Doubles()[0]; });
    double sum = 0;
    for (const double loss : losses) sum += loss;
    return sum / static_cast<double>(held.size());
  };
  for (size_t w = 0; w < trained.size(); ++w) {
    const Tensor& encoded = trained[w]->encoded;
    set(w, compress::ReadFloats(Dense(encoded), 0, encoded.size()));
  }
  double best = held_loss();
  std::vector<Tensor> best_weights;

  // Returns whether the loss of the samples that were left out has fallen.
  auto train_all = [&](bool codes) {
    std::vector<std::optional<LatentWeight>> weights;
    for (const Tunable* tunable : trained) {
      weights.push_back(LatentWeight::Of(tunable->encoded, tunable->source));
      if (!codes && weights.back()) weights.back()->KeepCodes();
    }
    auto assign = [&] {
      for (size_t w = 0; w < weights.size(); ++w)
        if (weights[w]) set(w, weights[w]->Values());
    };
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
      assign();
      std::vector<std::map<std::string, Tensor>> results(drawn.size());
      ParallelFor(batch, 0, [&](int64_t i) { results[i] = run(train[drawn[i]]); });
      const double left = 1 - static_cast<double>(step) / static_cast<double>(steps_),
                   rate = kRate * left * std::min(1.0, static_cast<double>(step + 1) / kWarmUp);
      ParallelFor(std::ssize(weights), 0, [&](int64_t w) {
        if (!weights[w]) return;
        std::vector<float> sum(static_cast<size_t>(trained[w]->encoded.size()));
        for (const auto& one : results)
          for (const size_t input : inputs_of[w]) {
            const Pin<float> gradient = one.at(made->gradients[input]).data<float>();
            for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
          }
        for (float& x : sum) x /= static_cast<float>(batch);
        weights[w]->Step(sum, rate);
      });
      if ((step + 1) % kBetweenChecks == 0 || step + 1 == steps_) {
        assign();
        if (const double loss = held_loss(); loss < best) {
          best = loss;
          best_weights.clear();
          for (size_t w = 0; w < weights.size(); ++w)
            best_weights.push_back(weights[w] ? weights[w]->Encoded() : trained[w]->encoded);
        }
      }
      if (progress)
        progress({.name = "training compressed weights",
                  .share = static_cast<double>(step + 1) / static_cast<double>(steps_)});
    }
    return !best_weights.empty();
  };
  result.steps = steps_;
  result.samples = std::ssize(train);
  // Codes were chosen together, row by row, which gradients cannot always improve.
  result.codes = train_all(true);
  if (!result.codes && !train_all(false))
    return leave("it did not lower the loss on other samples");
  result.weights = std::ssize(trained);
  for (size_t i = 0; i < trained.size(); ++i) trained[i]->encoded = best_weights[i];
  return result;
}

}  // namespace mlc::calibration
