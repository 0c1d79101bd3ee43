#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "lib/analysis/cost.h"
#include "lib/analysis/generated_inputs.h"
#include "lib/analysis/valid_sizes.h"
#include "lib/precision/measure.h"

namespace mlc::precision {

namespace {

// The limit on measuring relative to compiling: this many multiply-adds, plus this many for each
// byte of constants, since those take time to compile anyway. About 0.2 s plus eight times the
// compile time on a processor of 2024.
constexpr double kAffordable = 1.2e9, kAffordableOfByte = 100;
// For the default precision: the number of samples, and of extra samples for close results. Each
// sample is run in fp32 and as a candidate.
constexpr int kSamples = 2, kExtraSamples = 4;
// The largest run, in multiply-adds, for determining ranges only.
constexpr double kMostOfRanges = 1e10;
// The maximum size of constants, in bytes, because the engine holds all weights in memory.
constexpr uint64_t kMostWeights = 1'000'000'000;
// The multiply-adds by which the size of an open dimension may increase a run.
constexpr double kWorkOfOpenSizes = 2e7;
// The multiply-adds of all samples of --precision mixed together, unless a single run exceeds it.
constexpr double kWorkOfSamples = 2e8;
// Generating and storing an input element costs as much time as computing this many elements.
constexpr double kElementsOfInput = 4;
// For --precision mixed: the maximum number of elements in one run, including inputs.
constexpr double kMostElements = 1.25e8;
// For --precision mixed: the maximum number of input elements of all confirming samples together,
// which are in memory at the same time.
constexpr double kMostInputs = 2.5e7;
// For the default precision: the maximum number of input elements of the extra samples.
constexpr double kMostExtraInputs = 5e5;
constexpr int64_t kMostOperations = 10'000;
// The fixed cost of an operation, in multiply-adds.
constexpr double kWorkOfOperation = 5e4;

// Counts the operations of the program, including those in nested blocks. An operation whose
// largest result rank is r > 8 counts r / 8 times, because its cost grows with the rank.
int64_t CountOperations(const Program& program) {
  int64_t count = 0;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (op->def->is_const()) return;
      size_t rank = 8;
      for (const auto& result : op->results) rank = std::max(rank, result->type.shape.size());
      count += static_cast<int64_t>(rank / 8);
    });
  return count;
}

uint64_t WeightBytes(const Program& program) {
  uint64_t bytes = 0;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) { bytes += op->val ? op->val.byte_size() : 0; });
  return bytes;
}

// Returns why a program of this size is not run; empty if it may be run.
std::string TooLarge(int64_t operations, uint64_t weights, uint64_t most_weights) {
  if (operations > kMostOperations) return fmt::format("more than {} operations", kMostOperations);
  if (weights > most_weights) return fmt::format("weights over {} MB", most_weights / 1'000'000);
  return "";
}

// The elements of a run, including its inputs.
double ElementsOf(const analysis::Cost& cost) {
  return cost.elements + kElementsOfInput * cost.inputs;
}
double WorkOf(const analysis::Cost& cost) {
  return std::max(cost.multiply_adds, analysis::kWorkOfElement * ElementsOf(cost));
}

// Returns the names of float image inputs that are not in the widest common range.
std::map<std::string, std::pair<double, double>> WidestPictures(
    const analysis::GeneratedInputs& made) {
  constexpr std::pair<double, double> kWidest = {0, 255};
  std::map<std::string, std::pair<double, double>> ranges;
  for (const auto& [name, range] : made.ranges)
    if (range.look == analysis::InputRange::Look::kPicture && range.high < kWidest.second / 2)
      ranges[name] = kWidest;
  return ranges;
}

}  // namespace

MeasureInputs MakeUpMeasureInputs(const Program& program) {
  MeasureInputs inputs{.generated = true};
  const int64_t operations = CountOperations(program);
  const uint64_t weights = WeightBytes(program);
  inputs.affordable = kAffordable + kAffordableOfByte * static_cast<double>(weights);
  inputs.too_large = TooLarge(operations, weights, kMostWeights);
  if (!inputs.too_large.empty()) return inputs;
  double once = 0;  // one run of all functions
  for (const auto& function : program.functions) {
    const analysis::GeneratedInputOptions first{.most_work = kWorkOfOpenSizes,
                                                .smallest = analysis::SmallestSizes(*function)};
    const double own =
        WorkOf(analysis::CostOf(*function, analysis::GeneratedSizes(*function, {}, first)));
    once += own * (verify::HasStates(*function) ? verify::kStatefulSteps : 1);
  }
  once += kWorkOfOperation * static_cast<double>(operations);
  if (once > kMostOfRanges) {
    inputs.too_large = fmt::format("a run takes more than {:g} multiply-adds", kMostOfRanges);
    return inputs;
  }
  // Measuring takes at least one run in fp32 and one of the candidate.
  if (2 * once > inputs.affordable)
    inputs.too_large =
        fmt::format("a run takes {:.2g} multiply-adds, too many for the size of the weights", once);
  const bool ranges = !inputs.too_large.empty();
  const int samples = ranges || 2 * kSamples * once > inputs.affordable ? 1 : kSamples;
  const bool more =
      samples == kSamples && (2 * kSamples + 2 * kExtraSamples) * once < inputs.affordable;
  const bool other =
      ranges ? 2 * once < inputs.affordable : (2 * samples + 1) * once < inputs.affordable;
  std::set<std::string> described;
  for (const auto& function : program.functions) {
    analysis::GeneratedInputOptions make_up{.most_work = kWorkOfOpenSizes,
                                            .smallest = analysis::SmallestSizes(*function)};
    std::vector<verify::StepInputs>& steps = inputs.steps[function->name];
    const bool stateful = verify::HasStates(*function);
    if (stateful) make_up.shapes = analysis::GeneratedShapes(*function, {}, make_up);
    const int count = stateful ? static_cast<int>(verify::kStatefulSteps) : samples;
    double elements = 0;
    for (; make_up.sample < count; ++make_up.sample) {
      analysis::GeneratedInputs made = analysis::GenerateInputs(*function, {}, make_up);
      for (const auto& [name, tensor] : made.tensors)
        elements += static_cast<double>(tensor.size());
      for (const auto& [name, range] : made.ranges) described.insert(Describe(range));
      if (const auto widest = WidestPictures(made);
          !widest.empty() && !stateful && other && make_up.sample == 0) {
        analysis::GeneratedInputOptions wide = make_up;
        wide.ranges = widest;
        inputs.other_range[function->name].push_back(
            analysis::GenerateInputs(*function, {}, wide).tensors);
        inputs.other_range_name = "0..255";
      }
      steps.push_back(std::move(made.tensors));
    }
    if (!more || stateful) continue;
    const double each = elements / std::max(1, count);
    for (int i = 0; i < kExtraSamples && (i + 1) * each <= kMostExtraInputs; ++i, ++make_up.sample)
      inputs.more[function->name].push_back(
          analysis::GenerateInputs(*function, {}, make_up).tensors);
  }
  inputs.description = fmt::format("generated inputs: {}", fmt::join(described, ", "));
  return inputs;
}

MeasureInputs MakeUpLeastInputs(const Program& program, double most_work, uint64_t most_weights) {
  MeasureInputs inputs{.generated = true};
  const int64_t operations = CountOperations(program);
  inputs.too_large = TooLarge(operations, WeightBytes(program), most_weights);
  if (!inputs.too_large.empty()) return inputs;
  double confirming = 3 * most_work, held = kMostInputs;
  for (const auto& function : program.functions) {
    analysis::GeneratedInputOptions make_up{.most_work = kWorkOfOpenSizes,
                                            .smallest = analysis::SmallestSizes(*function)};
    const analysis::Cost first =
        analysis::CostOf(*function, analysis::GeneratedSizes(*function, {}, make_up));
    if (first.multiply_adds > most_work)
      inputs.too_large = fmt::format("a run takes more than {:g} multiply-adds", most_work);
    if (ElementsOf(first) > kMostElements)
      inputs.too_large = fmt::format("a run computes more than {:g} elements", kMostElements);
    if (!inputs.too_large.empty()) {
      inputs.steps.clear();
      return inputs;
    }
    std::vector<verify::StepInputs>& steps = inputs.steps[function->name];
    auto add = [&](std::vector<verify::StepInputs>& to) {
      to.push_back(analysis::GenerateInputs(*function, {}, make_up).tensors);
    };
    if (verify::HasStates(*function)) {
      make_up.shapes = analysis::GeneratedShapes(*function, {}, make_up);
      for (; make_up.sample < verify::kStatefulSteps; ++make_up.sample) add(steps);
      continue;
    }
    const int verified = analysis::DefaultSamples(*function);
    const int usual = static_cast<int>(
        std::clamp(kWorkOfSamples / std::max(WorkOf(first), 1.0), 1.0, double(verified)));
    for (; make_up.sample < usual; ++make_up.sample) add(steps);
    for (make_up.most_work = analysis::GeneratedInputOptions().most_work; make_up.sample < verified;
         ++make_up.sample) {
      const analysis::Cost here =
          analysis::CostOf(*function, analysis::GeneratedSizes(*function, {}, make_up));
      confirming -= std::max(WorkOf(here), kWorkOfOperation * static_cast<double>(operations));
      held -= here.inputs;
      if (confirming < 0 || held < 0) break;
      add(inputs.more[function->name]);
    }
  }
  inputs.description = "generated inputs";
  return inputs;
}

}  // namespace mlc::precision
