#include <algorithm>
#include <cmath>

#include "lib/analysis/cost.h"
#include "lib/analysis/made_up_inputs.h"
#include "lib/analysis/open_sizes.h"
#include "lib/verify/measure.h"

namespace mlc {

namespace {

// Multiply-adds of all samples together, unless one takes more; and how many one with open sizes
// may take. Those that confirm may take three times what a run may.
constexpr double kWorkOfSamples = 2e8;
constexpr double kWorkOfOpenSizes = 2e7;
// A byte of weights, which each run packs anew, takes as long as so many of them; an element that
// is drawn, which is also held, as so many elements.
constexpr double kWorkOfWeight = 30, kElementsOfInput = 4;
// Elements of a run and of its inputs; and of the inputs of all that confirm, which are held
// together.
constexpr double kMostElements = 1.25e8, kMostInputs = 2.5e7;
// Few numbers say little of other inputs: where they cost next to nothing, more samples, and how
// many elements those may compute.
constexpr double kMostSamples = 256, kElementsOfSamples = 1e6;
// Each operation takes some time of its own, whatever it computes: that of so many multiply-adds.
constexpr int64_t kMostOperations = 10'000, kOperationsOfSamples = 30'000;
constexpr double kWorkOfOperation = 5e4;
// What is too large for outputs to be compared is run once in fp32, for the range of its numbers,
// up to so many times the work and the weights.
constexpr double kRangeWork = 10, kRangeWeights = 1.25;

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

// A run and its inputs.
double ElementsOf(const Cost& cost) { return cost.elements + kElementsOfInput * cost.inputs; }
double WorkOf(const Cost& cost) {
  return std::max(cost.multiply_adds, kWorkOfElement * ElementsOf(cost));
}

}  // namespace

MeasureInputs MakeUpMeasureInputs(const Program& program, double most_work, uint64_t most_weights) {
  MeasureInputs inputs{.made_up = true};
  const uint64_t weights = WeightBytes(program);
  const int64_t operations = CountOperations(program);
  if (weights > most_weights)
    inputs.too_large = fmt::format("it has more than {} MB of weights", most_weights / 1'000'000);
  if (operations > kMostOperations)
    inputs.too_large = fmt::format("it has more than {} operations", kMostOperations);
  if (static_cast<double>(weights) > kRangeWeights * static_cast<double>(most_weights) ||
      operations > kMostOperations)
    return inputs;
  const double affordable = std::floor(double{kOperationsOfSamples} /
                                       static_cast<double>(std::max<int64_t>(operations, 1)));
  double confirming = 3 * most_work, held = kMostInputs;
  for (const auto& function : program.functions) {
    MadeUpOptions make_up{.most_work = kWorkOfOpenSizes, .smallest = SmallestSizes(*function)};
    auto cost = [&](const MadeUpOptions& options) {
      return CostOf(*function, MadeUpSizes(*function, {}, options));
    };
    const Cost first = cost(make_up);
    if (first.multiply_adds > most_work)
      inputs.too_large = fmt::format("it takes more than {:g} multiply-adds", most_work);
    if (ElementsOf(first) > kMostElements)
      inputs.too_large = fmt::format("it computes more than {:g} elements", kMostElements);
    if (first.multiply_adds > kRangeWork * most_work || ElementsOf(first) > kMostElements) {
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
    const double most = std::max(1.0, std::min<double>(affordable, verified));
    const int usual =
        static_cast<int>(std::clamp(kWorkOfSamples / std::max(WorkOf(first), 1.0), 1.0, most));
    const double elements = std::max(1.0, ElementsOf(first) + first.multiply_adds / kWorkOfElement);
    const int count = std::max(
        usual,
        static_cast<int>(std::min({kElementsOfSamples / elements, kMostSamples, affordable})));
    for (; make_up.sample < count; ++make_up.sample) {
      if (make_up.sample == usual)
        make_up.most_work = kWorkOfElement * kElementsOfSamples / kMostSamples;
      add(steps);
    }
    if (!inputs.too_large.empty()) continue;
    for (make_up.sample = 0; make_up.sample < verified; ++make_up.sample) {
      make_up.most_work = kWorkOfOpenSizes;
      SymbolSizes measured;
      if (make_up.sample < usual) measured = MadeUpSizes(*function, {}, make_up);
      make_up.most_work = MadeUpOptions().most_work;
      if (make_up.sample < usual && MadeUpSizes(*function, {}, make_up) == measured) continue;
      const Cost here = cost(make_up);
      confirming -= std::max(WorkOf(here), kWorkOfOperation * static_cast<double>(operations)) +
                    kWorkOfWeight * static_cast<double>(weights);
      held -= here.inputs;
      if (confirming < 0 || held < 0) break;
      add(inputs.confirm[function->name]);
    }
  }
  return inputs;
}

}  // namespace mlc
