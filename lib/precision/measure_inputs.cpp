#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lib/analysis/cost.h"
#include "lib/analysis/made_up_inputs.h"
#include "lib/analysis/open_sizes.h"
#include "lib/precision/measure.h"

namespace mlc {

namespace {

// What measuring may take beside compiling without it: so many multiply-adds, and for each byte of
// constants, which takes time to compile anyway, so many. About 0.2 s and eight times the
// compilation on one processor of 2024.
constexpr double kAffordable = 1.2e9, kAffordableOfByte = 100;
// Runs of the default: two samples, in fp32 and as candidate.
constexpr int kSamples = 2, kSamplesOfMore = 4;
// Multiply-adds of the largest run that is made for ranges alone.
constexpr double kMostOfRanges = 1e10;
// Bytes of constants that a run may hold: what executes a program has all of its weights in memory.
constexpr uint64_t kMostWeights = 1'000'000'000;
// How many multiply-adds an open dimension's size may add.
constexpr double kWorkOfOpenSizes = 2e7;
// Multiply-adds of all samples of --precision mixed together, unless one takes more.
constexpr double kWorkOfSamples = 2e8;
// An element that is drawn, which is also held, takes as long as so many elements.
constexpr double kElementsOfInput = 4;
// Elements of a run and of its inputs of --precision mixed; and of the inputs of all that confirm,
// which are held together.
constexpr double kMostElements = 1.25e8, kMostInputs = 2.5e7;
// Elements of further inputs that the default makes.
constexpr double kMostInputsOfMore = 5e5;
constexpr int64_t kMostOperations = 10'000;
// An operation takes some time of its own, whatever it computes: that of so many multiply-adds.
constexpr double kWorkOfOperation = 5e4;

// Operations of the program, those in blocks too; of thousands of dimensions each takes as much
// time as many.
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

// Why a program of so many operations and bytes of constants is not run; empty: it may be.
std::string TooLarge(int64_t operations, uint64_t weights, uint64_t most_weights) {
  if (operations > kMostOperations)
    return fmt::format("it has more than {} operations", kMostOperations);
  if (weights > most_weights)
    return fmt::format("it has more than {} MB of weights", most_weights / 1'000'000);
  return "";
}

// A run and its inputs.
double ElementsOf(const Cost& cost) { return cost.elements + kElementsOfInput * cost.inputs; }
double WorkOf(const Cost& cost) {
  return std::max(cost.multiply_adds, kWorkOfElement * ElementsOf(cost));
}

// Names of the float pictures among the inputs that are not in the widest of the usual ranges.
std::map<std::string, std::pair<double, double>> WidestPictures(const MadeUpInputs& made) {
  constexpr std::pair<double, double> kWidest = {0, 255};
  std::map<std::string, std::pair<double, double>> ranges;
  for (const auto& [name, range] : made.ranges)
    if (range.look == InputRange::Look::kPicture && range.high < kWidest.second / 2)
      ranges[name] = kWidest;
  return ranges;
}

}  // namespace

MeasureInputs MakeUpMeasureInputs(const Program& program) {
  MeasureInputs inputs{.made_up = true};
  const int64_t operations = CountOperations(program);
  const uint64_t weights = WeightBytes(program);
  inputs.affordable = kAffordable + kAffordableOfByte * static_cast<double>(weights);
  inputs.too_large = TooLarge(operations, weights, kMostWeights);
  if (!inputs.too_large.empty()) return inputs;
  double once = 0;  // a run of all functions
  for (const auto& function : program.functions) {
    const MadeUpOptions first{.most_work = kWorkOfOpenSizes, .smallest = SmallestSizes(*function)};
    const double own = WorkOf(CostOf(*function, MadeUpSizes(*function, {}, first)));
    once += own * (HasStates(*function) ? kStatefulSteps : 1);
  }
  once += kWorkOfOperation * static_cast<double>(operations);
  if (once > kMostOfRanges) {
    inputs.too_large = fmt::format("a run takes more than {:g} multiply-adds", kMostOfRanges);
    return inputs;
  }
  // A run in fp32 and one of the candidate, at the least.
  if (2 * once > inputs.affordable)
    inputs.too_large = fmt::format("a run takes {:.2g} multiply-adds, much for its weights", once);
  const bool ranges = !inputs.too_large.empty();
  const int samples = ranges || 2 * kSamples * once > inputs.affordable ? 1 : kSamples;
  const bool more =
      samples == kSamples && (2 * kSamples + 2 * kSamplesOfMore) * once < inputs.affordable;
  const bool other =
      ranges ? 2 * once < inputs.affordable : (2 * samples + 1) * once < inputs.affordable;
  std::set<std::string> described;
  for (const auto& function : program.functions) {
    MadeUpOptions make_up{.most_work = kWorkOfOpenSizes, .smallest = SmallestSizes(*function)};
    std::vector<StepInputs>& steps = inputs.steps[function->name];
    const bool stateful = HasStates(*function);
    if (stateful) make_up.shapes = MadeUpShapes(*function, {}, make_up);
    const int count = stateful ? static_cast<int>(kStatefulSteps) : samples;
    double elements = 0;
    for (; make_up.sample < count; ++make_up.sample) {
      MadeUpInputs made = MakeUpInputs(*function, {}, make_up);
      for (const auto& [name, tensor] : made.tensors)
        elements += static_cast<double>(tensor.size());
      for (const auto& [name, range] : made.ranges) described.insert(Describe(range));
      if (const auto widest = WidestPictures(made);
          !widest.empty() && !stateful && other && make_up.sample == 0) {
        MadeUpOptions wide = make_up;
        wide.ranges = widest;
        inputs.other_range[function->name].push_back(MakeUpInputs(*function, {}, wide).tensors);
        inputs.other_range_name = "0..255";
      }
      steps.push_back(std::move(made.tensors));
    }
    if (!more || stateful) continue;
    const double each = elements / std::max(1, count);
    for (int i = 0; i < kSamplesOfMore && (i + 1) * each <= kMostInputsOfMore;
         ++i, ++make_up.sample)
      inputs.more[function->name].push_back(MakeUpInputs(*function, {}, make_up).tensors);
  }
  inputs.description = fmt::format("made-up inputs: {}", fmt::join(described, ", "));
  return inputs;
}

MeasureInputs MakeUpLeastInputs(const Program& program, double most_work, uint64_t most_weights) {
  MeasureInputs inputs{.made_up = true};
  const int64_t operations = CountOperations(program);
  inputs.too_large = TooLarge(operations, WeightBytes(program), most_weights);
  if (!inputs.too_large.empty()) return inputs;
  double confirming = 3 * most_work, held = kMostInputs;
  for (const auto& function : program.functions) {
    MadeUpOptions make_up{.most_work = kWorkOfOpenSizes, .smallest = SmallestSizes(*function)};
    const Cost first = CostOf(*function, MadeUpSizes(*function, {}, make_up));
    if (first.multiply_adds > most_work)
      inputs.too_large = fmt::format("it takes more than {:g} multiply-adds", most_work);
    if (ElementsOf(first) > kMostElements)
      inputs.too_large = fmt::format("it computes more than {:g} elements", kMostElements);
    if (!inputs.too_large.empty()) {
      inputs.steps.clear();
      return inputs;
    }
    std::vector<StepInputs>& steps = inputs.steps[function->name];
    auto add = [&](std::vector<StepInputs>& to) {
      to.push_back(MakeUpInputs(*function, {}, make_up).tensors);
    };
    if (HasStates(*function)) {
      make_up.shapes = MadeUpShapes(*function, {}, make_up);
      for (; make_up.sample < kStatefulSteps; ++make_up.sample) add(steps);
      continue;
    }
    const int verified = UsualSamples(*function);
    const int usual = static_cast<int>(
        std::clamp(kWorkOfSamples / std::max(WorkOf(first), 1.0), 1.0, double(verified)));
    for (; make_up.sample < usual; ++make_up.sample) add(steps);
    for (make_up.most_work = MadeUpOptions().most_work; make_up.sample < verified;
         ++make_up.sample) {
      const Cost here = CostOf(*function, MadeUpSizes(*function, {}, make_up));
      confirming -= std::max(WorkOf(here), kWorkOfOperation * static_cast<double>(operations));
      held -= here.inputs;
      if (confirming < 0 || held < 0) break;
      add(inputs.more[function->name]);
    }
  }
  inputs.description = "made-up inputs";
  return inputs;
}

}  // namespace mlc
