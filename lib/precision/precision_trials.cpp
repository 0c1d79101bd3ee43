#include "lib/precision/precision_trials.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/analysis/fp16_share.h"
#include "lib/analysis/generated_inputs.h"
#include "lib/ir/builder.h"
#include "lib/passes/rewriting.h"
#include "lib/precision/sum_order_perturbation.h"
#include "lib/verify/fp16_floor.h"

namespace mlc::precision {

namespace {

// The elements that runs of the fp32 program on generated inputs may compute, unless twice the
// static estimate is larger: some sizes and loop counts are only known at run time. An operation
// costs as much as kElementsOfOperation elements.
constexpr double kElementsOfReferences = 5e7, kElementsOfOperation = 500;
// As in `mlc verify`: with more samples, the floor of the worst one would apply to all.
constexpr size_t kSamplesOfOneFloor = 16;
// The elements of a value that are kept to estimate distances.
constexpr int64_t kKeptElements = 256;

bool IsOf(const Value& value, DType dtype) {
  return value.type.is_tensor() && value.type.dtype == dtype;
}

// Returns whether the operation reads or writes values of `dtype` at run time.
bool ComputesIn(DType dtype, const Operation& op) {
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (operand.value && !operand.value->is_constant() && IsOf(*operand.value, dtype))
        return true;
  return std::ranges::any_of(op.results, [&](const auto& result) { return IsOf(*result, dtype); });
}

// fp16-precision moves the name of a narrowed output to the cast that follows it.
std::string NameBefore(const std::string& narrowed) {
  constexpr std::string_view kNarrowed = "_fp16";
  return narrowed.ends_with(kNarrowed) ? narrowed.substr(0, narrowed.size() - kNarrowed.size())
                                       : narrowed;
}

// Returns evenly spaced elements.
std::vector<float> SomeElements(const Tensor& tensor) {
  std::vector<float> some;
  if (!IsFloat(tensor.dtype()) || tensor.size() == 0) return some;
  const int64_t step = std::max<int64_t>(1, tensor.size() / kKeptElements);
  for (int64_t i = 0; i < tensor.size(); i += step)
    some.push_back(static_cast<float>(tensor.Double(i)));
  return some;
}

double Distance(const std::vector<float>& value, const std::vector<float>& reference) {
  if (value.size() != reference.size()) return 0;
  double difference = 0, size = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    const double d = double{value[i]} - double{reference[i]};
    difference += d * d;
    size += double{reference[i]} * double{reference[i]};
  }
  return size > 0 ? std::sqrt(difference / size) : 0;
}

Error TakesTooLong() {
  return Error(
      "resource-limit",
      "on generated inputs, the program computes far more elements than its static sizes indicate");
}

}  // namespace

// The results of the steps of a job in one summation order.
struct PrecisionTrials::Ran {
  size_t job;
  int order;
  std::vector<size_t> steps;
  std::vector<verify::StepResults> values = {};
};

std::vector<size_t> AllSteps(const Job& job) {
  std::vector<size_t> steps(job.steps.size());
  std::iota(steps.begin(), steps.end(), size_t{0});
  return steps;
}

double MultiplyAdds(const Jobs& jobs) {
  return std::accumulate(jobs.begin(), jobs.end(), 0.0,
                         [](double sum, const Job& job) { return sum + job.cost.multiply_adds; });
}

bool IsMeasured(const Operation& op) { return !op.def->is_const() && !op.results.empty(); }
bool ComputesFp32(const Operation& op) { return ComputesIn(DType::kFp32, op); }

PrecisionTrials::PrecisionTrials(const Program& of, passes::PassContext& with,
                                 const MeasureOptions& how)
    : program(of), context(with), options(how), generated(how.inputs.generated) {}

engine::EngineOptions PrecisionTrials::Options(engine::EngineOptions::Arithmetic arithmetic) const {
  engine::EngineOptions engine;
  engine.arithmetic = arithmetic;
  engine.kernels = options.kernels;
  return engine;
}

Jobs PrecisionTrials::JobsOf(
    const std::map<std::string, std::vector<verify::StepInputs>>& steps) const {
  Jobs found;
  for (const auto& function : program.functions)
    if (auto it = steps.find(function->name); it != steps.end() && !it->second.empty())
      found.push_back({function.get(), it->second});
  return found;
}

void PrecisionTrials::RunReference(Job& job, StatsByName& into) {
  engine::EngineOptions exact = Options(engine::EngineOptions::Arithmetic::kExact);
  const double most = std::max(kElementsOfReferences, 2 * job.cost.elements);
  double elements = 0;
  exact.observe = [&](const Operation& op, std::span<Tensor> results) {
    elements += kElementsOfOperation;
    for (size_t i = 0; i < results.size() && i < op.results.size(); ++i) {
      const std::string& name = op.results[i]->name;
      UpdateStats(results[i], into[name]);
      if (look_at_values && !kept_.contains(name)) kept_[name] = SomeElements(results[i]);
      elements += static_cast<double>(results[i].size());
    }
    if (generated && elements > 2 * most) throw TakesTooLong();
  };
  if (verify::HasStates(*job.function) || !generated) {
    job.references = verify::RunSteps(*job.function, job.steps, exact, Counting());
    return;
  }
  std::vector<verify::StepInputs> runnable;
  std::optional<Error> first;
  auto run = [&](std::span<verify::StepInputs> steps) {
    std::vector<verify::StepResults> results =
        verify::RunSteps(*job.function, {steps.begin(), steps.end()}, exact, Counting());
    std::move(results.begin(), results.end(), std::back_inserter(job.references));
    std::move(steps.begin(), steps.end(), std::back_inserter(runnable));
  };
  for (size_t at = 0, end = 1; at < job.steps.size(); at = end) {
    end = std::min(job.steps.size(), 4 * at + 1);
    if (elements > 0) {
      const double more = std::floor((most / elements - 1) * static_cast<double>(at));
      if (more < 1) break;
      end = std::min(end, at + static_cast<size_t>(std::min(more, 1e6)));
    }
    std::span<verify::StepInputs> steps(&job.steps[at], end - at);
    try {
      run(steps);
      continue;
    } catch (const Error& error) {
      if (!first) first = error;
    }
    for (verify::StepInputs& step : steps)
      if (elements <= most) try {
          run({&step, 1});
        } catch (const Error&) {
        }
  }
  if (runnable.empty() && first) throw *first;
  job.steps = std::move(runnable);
}

void PrecisionTrials::RunReferences(Jobs& which, StatsByName& into) {
  for (Job& job : which) {
    for (const verify::StepInputs& step : job.steps)
      for (const auto& [name, tensor] : step) UpdateStats(tensor, into[name]);
    Prepare(job);
    RunReference(job, into);
    Prepare(job);
  }
}

void PrecisionTrials::CompareWithSource(Jobs& which) {
  const Program* source = Source();
  for (Job& job : which) {
    const Function* function =
        source ? verify::FunctionNamed(*source, job.function->name) : nullptr;
    if (!function) continue;
    std::vector<verify::StepResults> known = verify::RunSteps(
        *function, job.steps, Options(engine::EngineOptions::Arithmetic::kExact), Counting());
    std::swap(known, job.references);
    Jobs one{std::move(job)};
    Candidate rewritten;
    const std::vector<Ran> ran{{0, 0, AllSteps(one[0]), known}};
    Judge(one, ran, rewritten);
    if (!rewritten.worst().fits) {
      // The floor is relative to the program's own results, or it would contain every difference
      // between the program and its source.
      std::swap(known, one[0].references);
      TakeFloors(one);
      std::swap(known, one[0].references);
      rewritten = {};
      Judge(one, ran, rewritten);
    }
    job = std::move(one[0]);
    const Measurement::Figure worst = rewritten.worst();
    if (worst.fits || worst.output.empty()) continue;
    job.references = std::move(known);
    Prepare(job);
    context.diagnostics.Warn(
        Error("check-failed",
              "output \"{}\" has {} of {:.2g} on {} inputs (limit {:.2g}), which the rewrites for "
              "fp16 cause even without rounding",
              worst.output, Name(worst.kind), worst.value, Inputs(), worst.allowed)
            .Help(
                "option 'precision' fp32 disables these rewrites; mlc verify shows where the error "
                "starts"));
  }
}

// The imported program; null if it is not available.
const Program* PrecisionTrials::Source() {
  if (!source_ && options.source) source_ = options.source();
  return source_ ? &*source_ : nullptr;
}

void PrecisionTrials::Prepare(Job& job) const {
  job.budgets.assign(job.steps.size() / kSamplesOfOneFloor + 1, options.budgets);
  job.floor_taken = !options.floor;
  job.cost = {};
  auto add = [&](const analysis::Cost& cost, size_t times) {
    job.cost.multiply_adds += cost.multiply_adds * static_cast<double>(times);
    job.cost.elements += cost.elements * static_cast<double>(times);
  };
  if (job.function->symbols.empty()) {
    add(analysis::CostOf(*job.function, {}), job.steps.size());
    return;
  }
  for (const verify::StepInputs& step : job.steps)
    add(analysis::CostOf(*job.function, analysis::GeneratedSizes(*job.function, step, {})), 1);
}

std::function<void()> PrecisionTrials::Counting() {
  if (!options.progress) return {};
  return [this] {
    // Candidates run concurrently, and calls of the receiver must not overlap.
    const std::lock_guard lock(counting_);
    options.progress({.name = "measuring fp16", .done = ++counted_, .unit = "samples"});
  };
}

bool PrecisionTrials::TakeFloors(Jobs& which) {
  bool taken = false;
  for (Job& job : which) {
    if (job.floor_taken) continue;
    job.floor_taken = taken = true;
    // Not that of the source: fp16 may not hold constants that the program has in another form.
    if (!rounded_) rounded_ = verify::RoundConstants(program);
    const Function* function = verify::FunctionNamed(*rounded_, job.function->name);
    if (!function) continue;
    std::vector<verify::StepResults> rounded = verify::RunSteps(
        *function, job.steps, Options(engine::EngineOptions::Arithmetic::kExact), Counting());
    for (size_t i = 0; i < job.budgets.size(); ++i) {
      auto some = [&](const std::vector<verify::StepResults>& all) {
        auto at = [&](size_t group) {
          return all.begin() +
                 static_cast<std::ptrdiff_t>(std::min(all.size(), group * kSamplesOfOneFloor));
        };
        return std::vector<verify::StepResults>(at(i), at(i + 1));
      };
      job.budgets[i] = verify::Fp16Budgets(options.budgets, some(job.references), some(rounded));
    }
  }
  return taken;
}

Candidate PrecisionTrials::Try(const Fp32Operations& fp32, Jobs& which,
                               const std::vector<int>& orders) {
  runs += orders[0] == 0;
  Diagnostics ignored;
  passes::PassContext own{ignored, context.precision, context.target};
  own.fp32_ops = context.fp32_ops;
  if (overruled) own.fp16_ops = context.fp16_ops;
  own.measured = fp32;
  own.reached = context.reached;
  own.judged = true;
  // A temporary clone; the final program is rewritten once, by the pass itself.
  Program made = Clone(program);
  passes::RunPasses(made, options.passes, own);
  Candidate candidate;
  candidate.share = analysis::Fp16ShareOf(made).share();
  for (const Job& job : which)
    ForEachOperation(
        *const_cast<Function*>(verify::FunctionNamed(made, job.function->name)),
        [&](Operation* op) {
          if (IsMeasured(*op) && !passes::IsCast(*op) && !ComputesIn(DType::kFp16, *op))
            candidate.fp32.insert(NameOf(*op));
        });
  auto weights = std::make_shared<engine::PreparedWeights>();
  std::vector<Ran> ran;
  for (int order : orders) {
    const size_t before = ran.size();
    for (size_t job = 0; job < which.size(); ++job)
      if (order == 0 || !which[job].sensitive.empty())
        ran.push_back(RunCandidate(made, which, job, order, weights, candidate));
    Judge(which, std::span(ran).subspan(before), candidate);
    if (!candidate.worst().fits && TakeFloors(which)) {
      candidate.figures = {};
      Judge(which, ran, candidate);
    }
    if (!candidate.fits()) break;
  }
  if (options.least) {
    tried.push_back({candidate.share, candidate.worst()});
    tried.back().worst.fits = candidate.fits();
  }
  return candidate;
}

PrecisionTrials::Ran PrecisionTrials::RunCandidate(const Program& made, const Jobs& which,
                                                   size_t number, int order,
                                                   std::shared_ptr<engine::PreparedWeights> weights,
                                                   Candidate& candidate) {
  const Job& job = which[number];
  Ran ran{number, order, {job.sensitive.begin(), job.sensitive.end()}};
  if (order == 0 || verify::HasStates(*job.function)) ran.steps = AllSteps(job);
  std::vector<verify::StepInputs> steps;
  for (size_t step : ran.steps) steps.push_back(job.steps[step]);
  work += std::max(job.cost.multiply_adds, analysis::kWorkOfElement * job.cost.elements) *
          static_cast<double>(steps.size()) / static_cast<double>(job.steps.size());
  engine::EngineOptions faithful = Options(engine::EngineOptions::Arithmetic::kFaithful);
  faithful.weights = std::move(weights);
  const double most = 8 * std::max(kElementsOfReferences, job.cost.elements);
  double elements = 0;
  uint64_t seed = static_cast<uint64_t>(order) << 40;
  faithful.observe = [&](const Operation& op, std::span<Tensor> results) {
    // Narrowing may turn a terminating loop into an endless one.
    elements += kElementsOfOperation;
    if (generated && elements > most) throw TakesTooLong();
    if (order > 0) PerturbSumOrder(op, results, seed += results.size());
    for (size_t i = 0; i < results.size() && i < op.results.size(); ++i) {
      if (!IsFloat(results[i].dtype())) continue;
      const std::string& name = op.results[i]->name;
      auto reference = seen.find(name);
      if (reference == seen.end()) reference = seen.find(NameBefore(name));
      if (reference == seen.end()) continue;
      if (look_at_values)
        if (auto kept = kept_.find(reference->first);
            kept != kept_.end() && !candidate.distance.contains(kept->first))
          candidate.distance[kept->first] = Distance(SomeElements(results[i]), kept->second);
      if (!candidate.lost.empty() || !reference->second.finite) continue;
      ActivationStats now;
      UpdateStats(results[i], now);
      if (!now.finite) candidate.lost = reference->first;
    }
  };
  ran.values = verify::RunSteps(*verify::FunctionNamed(made, job.function->name), steps, faithful,
                                Counting());
  return ran;
}

void PrecisionTrials::Judge(const Jobs& which, std::span<const Ran> ran, Candidate& candidate) {
  for (const Ran& run : ran)
    for (size_t i = 0; i < run.steps.size(); ++i) {
      const Job& job = which[run.job];
      const size_t step = run.steps[i];
      candidate.figures.Take({run.job, step}, run.values[i], job.references[step],
                             job.budgets[step / kSamplesOfOneFloor]);
    }
}

std::vector<std::string> PrecisionTrials::Narrowed(const Candidate& candidate) const {
  std::vector<std::string> names;
  for (const Job& job : jobs)
    ForEachOperation(*const_cast<Function*>(job.function), [&](Operation* op) {
      if (IsMeasured(*op) && ComputesFp32(*op) && !candidate.fp32.contains(NameOf(*op)))
        names.push_back(NameOf(*op));
    });
  return names;
}

Fp32Operations PrecisionTrials::Keeping(std::span<const std::string> names,
                                        const passes::Fp32Decision& why) const {
  Fp32Operations fp32 = context.measured;
  for (const std::string& name : names) fp32.emplace(name, why);
  return fp32;
}

void PrecisionTrials::Mark(const StatsByName& by,
                           const std::function<bool(const ActivationStats&)>& is,
                           passes::Fp32Reason reason, std::string_view text) {
  for (const Job& job : jobs)
    ForEachOperation(*const_cast<Function*>(job.function), [&](Operation* op) {
      if (!IsMeasured(*op) || context.measured.contains(NameOf(*op))) return;
      double worst = -1;
      auto look = [&](const Value* value) {
        auto it = value && !value->is_constant() ? by.find(value->name) : by.end();
        if (it != by.end() && IsOf(*value, DType::kFp32) && is(it->second))
          worst = std::max(worst, it->second.largest);
      };
      for (const auto& result : op->results) look(result.get());
      for (const Operands& operands : op->args())
        for (const Operand& operand : operands) look(operand.value);
      if (worst >= 0)
        context.measured[NameOf(*op)] = {
            reason, fmt::format("values reach {:.3g} on {} inputs, {}", worst, Inputs(), text)};
    });
}

std::string PrecisionTrials::Evidence(const Candidate& without) const {
  if (!without.lost.empty())
    return fmt::format("in fp16, {} becomes infinite or NaN on {} inputs", without.lost, Inputs());
  const Measurement::Figure worst = without.worst();
  return fmt::format("in fp16, output \"{}\" has {} of {:.2g} on {} inputs (limit {:.2g}){}",
                     worst.output, Name(worst.kind), worst.value, Inputs(), worst.allowed,
                     worst.fits ? ", too close to the limit for other kernels" : "");
}

}  // namespace mlc::precision
