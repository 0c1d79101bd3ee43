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
// The same for each operation, which takes time to compile, too.
constexpr double kAffordableOfOperation = 1e6;
// For the default precision: the number of first samples. Each sample is run in fp32 and as a
// candidate.
constexpr int kSamples = 2, kRunsOfSample = 2;
// The part of what is affordable that the samples of `mlc verify` may take; the rest is for further
// candidates.
constexpr double kPartOfVerified = 0.5;
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
constexpr int64_t kMostOperations = 10'000;
// The fixed cost of an operation, in multiply-adds.
constexpr double kWorkOfOperation = 5e4;

// Counts the operations of a function, including those in nested blocks. An operation whose
// largest result rank is r > 8 counts r / 8 times, because its cost grows with the rank.
int64_t CountOperations(const Function& function) {
  int64_t count = 0;
  ForEachOperation(const_cast<Function&>(function), [&](Operation* op) {
    if (op->def->is_const()) return;
    size_t rank = 8;
    for (const auto& result : op->results) rank = std::max(rank, result->type.shape.size());
    count += static_cast<int64_t>(rank / 8);
  });
  return count;
}
int64_t CountOperations(const Program& program) {
  int64_t count = 0;
  for (const auto& function : program.functions) count += CountOperations(*function);
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

// Generates the samples that `mlc verify` compares, as far as their runs stay below `affordable`
// multiply-adds: first the largest one of each function, because errors grow with the number of
// elements, and functions with states last, whose steps are taken together.
std::map<std::string, std::vector<verify::StepInputs>> VerifiedInputs(const Program& program,
                                                                      double affordable) {
  // In sample 1 every open dimension is as large as possible.
  constexpr int kLargest = 1;
  std::map<std::string, std::vector<verify::StepInputs>> inputs;
  struct Steps {
    const Function* function;
    int first, count;
    std::pair<int, int> Order() const { return {count, first == kLargest ? -1 : first}; }
  };
  std::vector<Steps> all;
  for (const auto& function : program.functions) {
    const bool stateful = verify::HasStates(*function);
    const int samples = stateful ? 1 : analysis::DefaultSamples(*function);
    for (int sample = 0; sample < samples; ++sample)
      all.push_back(
          {function.get(), sample, stateful ? static_cast<int>(verify::kStatefulSteps) : 1});
  }
  std::ranges::stable_sort(all, {}, &Steps::Order);
  std::map<const Function*, analysis::SymbolSizes> smallest;
  for (const Steps& steps : all) {
    const Function& function = *steps.function;
    auto [known, first] = smallest.try_emplace(&function);
    if (first) known->second = analysis::SmallestSizes(function);
    double work = 0;
    std::vector<analysis::GeneratedInputOptions> options;
    for (int sample = steps.first; sample < steps.first + steps.count; ++sample) {
      analysis::GeneratedInputOptions& make_up = options.emplace_back();
      make_up.sample = sample;
      make_up.smallest = known->second;
      work += WorkOf(analysis::CostOf(function, analysis::GeneratedSizes(function, {}, make_up))) +
              kWorkOfOperation * static_cast<double>(CountOperations(function));
      make_up.shapes = analysis::GeneratedShapes(function, {}, make_up);
    }
    work *= kRunsOfSample;
    if (work > affordable) continue;
    affordable -= work;
    for (const analysis::GeneratedInputOptions& make_up : options)
      inputs[function.name].push_back(analysis::GenerateInputs(function, {}, make_up).tensors);
  }
  return inputs;
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
    for (; make_up.sample < count; ++make_up.sample) {
      analysis::GeneratedInputs made = analysis::GenerateInputs(*function, {}, make_up);
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
  }
  if (samples == kSamples) {
    inputs.affordable += kAffordableOfOperation * static_cast<double>(operations);
    inputs.more = VerifiedInputs(
        program, kPartOfVerified * (inputs.affordable - kRunsOfSample * samples * once));
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
