#include "lib/verify/measure.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <span>

#include "lib/analysis/cost.h"
#include "lib/analysis/made_up_inputs.h"
#include "lib/ir/builder.h"
#include "lib/passes/digits.h"
#include "lib/passes/flow.h"
#include "lib/passes/match.h"
#include "lib/verify/figures.h"
#include "lib/verify/floor.h"
#include "lib/verify/other_sums.h"
#include "lib/verify/seen.h"

namespace mlc {

namespace {

// Not all that fp16 holds: other inputs make other numbers. More than the bounds of masks
// (safe-masks).
constexpr double kLargest = 0.75 * 65504;
constexpr double kNormal = 0x1p-14;  // below it fp16 loses digits
// Room for other inputs is not asked for where much is computed, multiply-adds of all samples; nor
// for so much of what is, where less is needed anyway.
constexpr double kMuchWork = 5e7, kDearShare = 0.25;
// Elements that the runs of the fp32 program may make of made-up inputs, or twice what its sizes
// say: some are known at run time alone, as is how often a loop runs. An operation takes as long as
// so many.
constexpr double kElementsOfReferences = 5e7, kElementsOfOperation = 500;
// How often inputs that disprove what was chosen are taken in, before all are.
constexpr int kCounterexamples = 3;
// As verify has it: more samples would have the floor of the worst of all.
constexpr size_t kSamplesOfOneFloor = 16;
// Orders of sums beside the kernels' own: so many confirm, the work of all such runs is at most so
// much unless it is one, and so many choose where those disproved what was chosen. One does for
// what takes less than this of its budget.
constexpr int kOrders = 4, kMostOrders = 8;
constexpr double kWorkOfOrders = 4e9, kCalm = 0.5;
// Work of all runs together after which the least is not looked for in more detail.
constexpr double kWorkOfLeast = 1e11;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool IsOf(const Value& value, DType dtype) {
  return value.type.is_tensor() && value.type.dtype == dtype;
}

// What an operation is called here and in PassContext::measured: those of a text have no other
// name.
const std::string& NameOf(const Operation& op) { return op.results[0]->name; }

// Whether it takes or makes such numbers at run time.
bool ComputesIn(DType dtype, const Operation& op) {
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (operand.value && !operand.value->is_constant() && IsOf(*operand.value, dtype))
        return true;
  return std::any_of(op.results.begin(), op.results.end(),
                     [&](const auto& result) { return IsOf(*result, dtype); });
}

bool IsMeasured(const Operation& op) { return !op.def->is_const() && !op.results.empty(); }

// fp16-precision gives a narrowed output's name to the cast behind it.
std::string_view NameBefore(std::string_view narrowed) {
  constexpr std::string_view kNarrowed = "_fp16";
  return narrowed.ends_with(kNarrowed) ? narrowed.substr(0, narrowed.size() - kNarrowed.size())
                                       : narrowed;
}

class Measuring {
 public:
  using Kind = Measurement::Figure::Kind;
  using Names = std::set<std::string>;

  Measuring(const Program& program, PassContext& context, const MeasureOptions& options)
      : program_(program), context_(context), options_(options) {}

  Measurement Run() {
    measurement_.made_up = options_.inputs.made_up;
    if (std::any_of(program_.functions.begin(), program_.functions.end(),
                    [](const auto& function) { return IsRandom(*function); }))
      return NotMeasured("its results are random");
    jobs_ = JobsOf(options_.inputs.steps);
    confirming_ = JobsOf(options_.inputs.confirm);
    const std::string& too_large = options_.inputs.too_large;
    try {
      RunReferences(jobs_);
      KeepLargeNumbers();
      measurement_.ranges = !jobs_.empty();
      if (too_large.empty()) Search();
    } catch (const Error& error) {
      if (!measurement_.made_up) throw;
      context_.measured.clear();
      if (too_large.empty())
        return NotMeasured(fmt::format("it could not be run: {}", error.text()));
    }
    return too_large.empty() ? std::move(measurement_) : NotMeasured(too_large);
  }

 private:
  // A function with the inputs of its runs and what it shall compute.
  struct Job {
    const Function* function;
    std::vector<StepInputs> steps;
    std::set<size_t> sensitive = {};  // steps that are run with sums in other orders, too
    Cost cost = {};                   // of all steps
    std::vector<StepResults> references = {};
    std::vector<Budgets> budgets = {};  // of each kSamplesOfOneFloor steps
    bool floor_taken = false;
  };
  using Jobs = std::vector<Job>;
  struct Candidate {
    Figures figures = {};
    std::string lost = {};  // the first operation whose result left fp16; empty: none
    double share = 0;       // of the work, in fp16
    Names wide = {};        // operations of the program that compute in fp32 here
    Measurement::Figure worst() const { return figures.worst(); }
    bool fits() const { return worst().fits && lost.empty(); }
    bool Safe() const { return fits() && figures.Safe(); }
  };

  EngineOptions Options(EngineOptions::Arithmetic arithmetic) const {
    EngineOptions options;
    options.arithmetic = arithmetic;
    options.kernels = options_.kernels;
    return options;
  }

  bool Does(const Candidate& candidate) const {
    if (!candidate.fits() || !candidate.figures.Steady()) return false;
    return only_safe_ ? orders_ > 0 || candidate.figures.Safe() : candidate.figures.Sure();
  }

  Measurement NotMeasured(std::string why) {
    measurement_.not_measured = std::move(why);
    return std::move(measurement_);
  }

  Jobs JobsOf(const std::map<std::string, std::vector<StepInputs>>& steps) const {
    Jobs jobs;
    for (const auto& function : program_.functions)
      if (auto it = steps.find(function->name); it != steps.end() && !it->second.empty())
        jobs.push_back({function.get(), it->second});
    return jobs;
  }

  // Steps at whose sizes the program cannot be run are left out where they are made up, as long as
  // one can; so are those after as many elements as are affordable.
  void RunReference(Job& job, EngineOptions exact) {
    const bool bounded = measurement_.made_up;
    const double most = std::max(kElementsOfReferences, 2 * job.cost.elements);
    double elements = 0;
    exact.observe = [&](const Operation& op, std::span<Tensor> results) {
      elements += kElementsOfOperation;
      for (size_t i = 0; i < results.size() && i < op.results.size(); ++i) {
        Look(results[i], seen_[op.results[i]->name]);
        elements += static_cast<double>(results[i].size());
      }
      if (bounded && elements > 2 * most) throw TakesTooLong();
    };
    if (HasStates(*job.function) || !bounded) {
      job.references = RunSteps(*job.function, job.steps, exact);
      return;
    }
    std::vector<StepInputs> runnable;
    std::optional<Error> first;
    auto run = [&](std::span<StepInputs> steps) {
      std::vector<StepResults> results =
          RunSteps(*job.function, {steps.begin(), steps.end()}, exact);
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
      std::span<StepInputs> steps(&job.steps[at], end - at);
      try {
        run(steps);
        continue;
      } catch (const Error& error) {
        if (!first) first = error;
      }
      for (StepInputs& step : steps)
        if (elements <= most) try {
            run({&step, 1});
          } catch (const Error&) {
          }
    }
    if (runnable.empty() && first) throw *first;
    job.steps = std::move(runnable);
  }

  void RunReferences(Jobs& jobs) {
    for (Job& job : jobs) {
      for (const StepInputs& step : job.steps)
        for (const auto& [name, tensor] : step) Look(tensor, seen_[name]);
      Prepare(job);
      RunReference(job, Options(EngineOptions::Arithmetic::kExact));
      Prepare(job);
      if (options_.inputs.too_large.empty()) CompareWithSource(job);
    }
  }

  static Error TakesTooLong() {
    return Error("resource-limit", "on made-up inputs it computes much more than its sizes say");
  }

  // What the source computes is the reference, so that the error of what passes rewrote counts too;
  // unless it is outside without any fp16, about which nothing can be done here.
  void CompareWithSource(Job& job) {
    const Program* source = Source();
    const Function* function = source ? FunctionNamed(*source, job.function->name) : nullptr;
    if (!function) return;
    std::vector<StepResults> known =
        RunSteps(*function, job.steps, Options(EngineOptions::Arithmetic::kExact));
    std::swap(known, job.references);
    Jobs jobs{std::move(job)};
    Candidate rewritten;
    const std::vector<Ran> runs{{0, 0, AllSteps(jobs[0]), known}};
    Judge(jobs, runs, rewritten);
    if (!rewritten.worst().fits && TakeFloors(jobs)) {
      rewritten = {};
      Judge(jobs, runs, rewritten);
    }
    job = std::move(jobs[0]);
    if (rewritten.worst().fits || rewritten.worst().output.empty()) return;
    job.references = std::move(known);
    Prepare(job);
    context_.diagnostics.Warn(
        Error("check-failed",
              fmt::format("output \"{}\" has {} of {:.2g} on {} inputs before anything is in "
                          "fp16, {:.2g} is allowed: it is written in another form",
                          rewritten.worst().output, Name(rewritten.worst().kind),
                          rewritten.worst().value, Inputs(), rewritten.worst().allowed))
            .Help("mlc verify shows where; --precision fp32 writes it as it is"));
  }

  // As it was imported; null where nobody has it.
  const Program* Source() {
    if (!source_ && options_.source) source_ = options_.source();
    return source_ ? &*source_ : nullptr;
  }

  // What hangs on how many steps it has.
  void Prepare(Job& job) const {
    job.budgets.assign(job.steps.size() / kSamplesOfOneFloor + 1, options_.budgets);
    job.floor_taken = !options_.floor || !options_.source;
    job.cost = {};
    auto add = [&](const Cost& cost, size_t times) {
      job.cost.multiply_adds += cost.multiply_adds * static_cast<double>(times);
      job.cost.elements += cost.elements * static_cast<double>(times);
    };
    if (job.function->symbols.empty()) {
      add(CostOf(*job.function, {}), job.steps.size());
      return;
    }
    for (const StepInputs& step : job.steps)
      add(CostOf(*job.function, MadeUpSizes(*job.function, step, {})), 1);
  }

  static double MultiplyAdds(const Jobs& jobs) {
    return std::accumulate(jobs.begin(), jobs.end(), 0.0,
                           [](double sum, const Job& job) { return sum + job.cost.multiply_adds; });
  }

  // What the program makes of the same inputs when only its constants are in fp16 raises what is
  // allowed. When something does not fit; false where it was taken already.
  bool TakeFloors(Jobs& jobs) {
    bool taken = false;
    for (Job& job : jobs) {
      if (job.floor_taken) continue;
      job.floor_taken = taken = true;
      if (!rounded_) rounded_ = RoundConstants(*Source());
      const Function* function = FunctionNamed(*rounded_, job.function->name);
      if (!function) continue;
      std::vector<StepResults> rounded =
          RunSteps(*function, job.steps, Options(EngineOptions::Arithmetic::kExact));
      for (size_t i = 0; i < job.budgets.size(); ++i) {
        auto some = [&](const std::vector<StepResults>& all) {
          auto at = [&](size_t group) {
            return all.begin() +
                   static_cast<std::ptrdiff_t>(std::min(all.size(), group * kSamplesOfOneFloor));
          };
          return std::vector<StepResults>(at(i), at(i + 1));
        };
        job.budgets[i] = Fp16Budgets(options_.budgets, some(job.references), some(rounded));
      }
    }
    return taken;
  }

  Candidate Try(const std::map<std::string, std::string>& wide) {
    return Try(wide, jobs_, Orders(0, orders_ + 1));
  }

  static std::vector<int> Orders(int first, int count) {
    std::vector<int> numbers(static_cast<size_t>(count));
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
  }

  // In these orders of sums, of which 0 is the kernels' own and for all steps.
  Candidate Try(const std::map<std::string, std::string>& wide, Jobs& jobs,
                const std::vector<int>& orders) {
    measurement_.runs += orders[0] == 0;
    Diagnostics ignored;
    PassContext context{ignored, context_.precision, context_.target};
    context.fp32_ops = context_.fp32_ops;
    if (overruled_) context.fp16_ops = context_.fp16_ops;
    context.fp32_tail = context_.fp32_tail;
    context.measured = wide;
    context.judged = true;
    // To be looked at and thrown away: what is written is rewritten once, by the pass itself.
    Program made = Clone(program_);
    RunPasses(made, options_.passes, context);
    Candidate candidate;
    candidate.share = Fp16Share(made);
    for (const Job& job : jobs)
      ForEachOperation(*const_cast<Function*>(FunctionNamed(made, job.function->name)),
                       [&](Operation* op) {
                         if (IsMeasured(*op) && !IsCast(*op) && !ComputesIn(DType::kFp16, *op))
                           candidate.wide.insert(NameOf(*op));
                       });
    auto weights = std::make_shared<PreparedWeights>();
    std::vector<Ran> runs;
    for (int order : orders) {
      const size_t before = runs.size();
      for (size_t job = 0; job < jobs.size(); ++job)
        if (order == 0 || !jobs[job].sensitive.empty())
          runs.push_back(RunCandidate(made, jobs, job, order, weights, candidate));
      Judge(jobs, std::span(runs).subspan(before), candidate);
      if (!Does(candidate) && TakeFloors(jobs)) {
        candidate.figures = {};
        Judge(jobs, runs, candidate);
      }
      if (!candidate.fits()) break;
    }
    if (options_.least) {
      measurement_.curve.push_back({candidate.share, candidate.worst()});
      measurement_.curve.back().worst.fits = candidate.fits();
    }
    return candidate;
  }

  // Results of steps of a job in an order of sums.
  struct Ran {
    size_t job;
    int order;
    std::vector<size_t> steps;
    std::vector<StepResults> values = {};
  };

  Ran RunCandidate(const Program& made, const Jobs& jobs, size_t which, int order,
                   std::shared_ptr<PreparedWeights> weights, Candidate& candidate) {
    const Job& job = jobs[which];
    Ran ran{which, order, {job.sensitive.begin(), job.sensitive.end()}};
    if (order == 0 || HasStates(*job.function)) ran.steps = AllSteps(job);
    std::vector<StepInputs> steps;
    for (size_t step : ran.steps) steps.push_back(job.steps[step]);
    work_ += std::max(job.cost.multiply_adds, kWorkOfElement * job.cost.elements) *
             static_cast<double>(steps.size()) / static_cast<double>(job.steps.size());
    EngineOptions faithful = Options(EngineOptions::Arithmetic::kFaithful);
    faithful.weights = std::move(weights);
    const double most = 8 * std::max(kElementsOfReferences, job.cost.elements);
    double elements = 0;
    uint64_t seed = static_cast<uint64_t>(order) << 40;
    faithful.observe = [&](const Operation& op, std::span<Tensor> results) {
      // A loop may have no end where it had one.
      elements += kElementsOfOperation;
      if (measurement_.made_up && elements > most) throw TakesTooLong();
      if (order > 0) TakeSumsOtherwise(op, results, seed += results.size());
      for (size_t i = 0; i < results.size() && i < op.results.size(); ++i) {
        if (!candidate.lost.empty() || results[i].dtype() != DType::kFp16) continue;
        const std::string& name = op.results[i]->name;
        auto reference = seen_.find(name);
        if (reference == seen_.end()) reference = seen_.find(std::string(NameBefore(name)));
        if (reference == seen_.end() || !reference->second.finite) continue;
        Seen seen;
        Look(results[i], seen);
        if (!seen.finite) candidate.lost = name;
      }
    };
    ran.values = RunSteps(*FunctionNamed(made, job.function->name), steps, faithful);
    return ran;
  }

  static std::vector<size_t> AllSteps(const Job& job) {
    std::vector<size_t> steps(job.steps.size());
    std::iota(steps.begin(), steps.end(), size_t{0});
    return steps;
  }

  static void Judge(const Jobs& jobs, std::span<const Ran> runs, Candidate& candidate) {
    for (const Ran& run : runs)
      for (size_t i = 0; i < run.steps.size(); ++i) {
        const Job& job = jobs[run.job];
        const size_t step = run.steps[i];
        candidate.figures.Take({run.job, step}, run.order, run.values[i], job.references[step],
                               job.budgets[step / kSamplesOfOneFloor]);
      }
  }

  std::string_view Inputs() const { return measurement_.made_up ? "made-up" : "the given"; }

  // Operations that take or make numbers of which `is` is true, with what that says.
  void Mark(const std::function<bool(const Seen&)>& is, std::string_view text) {
    for (const Job& job : jobs_)
      ForEachOperation(*const_cast<Function*>(job.function), [&](Operation* op) {
        if (!IsMeasured(*op) || context_.measured.contains(NameOf(*op))) return;
        double worst = -1;
        auto look = [&](const Value* value) {
          auto it = value && !value->is_constant() ? seen_.find(value->name) : seen_.end();
          if (it != seen_.end() && IsOf(*value, DType::kFp32) && is(it->second))
            worst = std::max(worst, it->second.largest);
        };
        for (const auto& result : op->results) look(result.get());
        for (const Operands& operands : op->args())
          for (const Operand& operand : operands) look(operand.value);
        if (worst >= 0)
          context_.measured[NameOf(*op)] =
              fmt::format("its numbers reach {:.3g} on {} inputs, {}", worst, Inputs(), text);
      });
  }

  std::string Evidence(const Candidate& without) const {
    if (!without.lost.empty())
      return fmt::format("in fp16, {} becomes infinite or NaN on {} inputs", without.lost,
                         Inputs());
    const Measurement::Figure worst = without.worst();
    return fmt::format("in fp16, output \"{}\" has {} of {:.2g} on {} inputs, {:.2g} is allowed{}",
                       worst.output, Name(worst.kind), worst.value, Inputs(), worst.allowed,
                       worst.fits ? ", which leaves others too little" : "");
  }

  void KeepLargeNumbers() {
    Mark([](const Seen& seen) { return Reach(seen) > kLargest; }, "fp16 holds 65504");
  }

  // Whether boxes may be other ones, or in another order, than in fp32.
  bool SelectsOthers(const Candidate& candidate) const {
    const Measurement::Figure worst = candidate.worst();
    if (worst.output.empty()) return candidate.figures.resized();
    if (Does(candidate) || !candidate.lost.empty()) return false;
    return options_.least || worst.kind == Kind::kUnequal || std::isinf(worst.value);
  }

  // Which boxes are selected, and in which order, hangs on the last digits of all that makes them:
  // what fits on some inputs does not on others. Whether there is something to keep.
  bool KeepSelections() {
    const size_t before = context_.measured.size();
    for (const Job& job : jobs_) {
      const Flow flow(*job.function);
      std::set<const Operation*> kept;
      std::vector<const Operation*> todo;
      ForEachOperation(*const_cast<Function*>(job.function), [&](Operation* op) {
        if (op->def->fp16.needs & Fp16::kSelections) todo.push_back(op);
      });
      while (!todo.empty()) {
        const Operation* op = todo.back();
        todo.pop_back();
        for (const Operands& operands : op->args())
          for (const Operand& operand : operands)
            if (operand.value && !operand.value->is_constant())
              flow.ForEachMaker(operand.value, [&](const Operation* maker) {
                if (maker && kept.insert(maker).second) todo.push_back(maker);
              });
      }
      for (const Operation* op : kept)
        if (IsMeasured(*op) && ComputesIn(DType::kFp32, *op))
          context_.measured.emplace(
              NameOf(*op),
              fmt::format("boxes are selected by what it makes, and on {} inputs other "
                          "ones are when it is in fp16",
                          Inputs()));
    }
    return context_.measured.size() > before;
  }

  void Search() {
    const std::map<std::string, std::string> before = context_.measured;
    Candidate candidate = Choose();
    if (candidate.fits()) try {
        RunReferences(confirming_);
      } catch (const Error&) {
        confirming_.clear();
      }
    for (int i = 1; candidate.fits(); ++i) {
      if (!TakeCounterexamples(i == kCounterexamples)) {
        const std::optional<Candidate> disproved = TakeOrders(candidate);
        if (!disproved) break;
        if (orders_ == kMostOrders) {
          const std::vector<std::string> names = Narrowed(*disproved);
          context_.measured = Keeping(names, 0, names.size(), Evidence(*disproved));
          candidate = Try(context_.measured);
          break;
        }
        orders_ += kOrders;
      }
      if (options_.least && work_ < kWorkOfLeast) context_.measured = before;
      candidate = Choose();
    }
    const bool fitted = candidate.fits();
    // What the user names is no reason to keep anything else.
    overruled_ = !context_.fp16_ops.empty();
    if (overruled_) candidate = Try(context_.measured);
    measurement_.chosen = candidate.worst();
    measurement_.chosen.fits = candidate.fits();
    measurement_.broken = candidate.figures.broken();
    if (candidate.fits()) return;
    const bool named = overruled_ && fitted;
    context_.diagnostics.Warn(
        Error("check-failed",
              Evidence(candidate) + (named ? ", as --fp16-ops asks" : ", whatever else stays fp32"))
            .Help(named ? "mlc verify shows by how much; without --fp16-ops it fits"
                        : "mlc verify shows by how much; --precision fp32 keeps all of it"));
  }

  // Takes the steps, or all, in that disprove what was chosen; false where none does.
  bool TakeCounterexamples(bool all) {
    if (confirming_.empty()) return false;
    Candidate candidate = Try(context_.measured, confirming_, {0});
    if (candidate.Safe()) return false;
    Take(candidate, 0, all, false);
    return true;
  }

  // Where something that a program makes great is rounded otherwise, sums in another order give
  // another result. What disproves what was chosen so, of which the steps are taken in and from
  // then on run in several orders.
  std::optional<Candidate> TakeOrders(const Candidate& chosen) {
    Jobs ordered = jobs_;
    ordered.insert(ordered.end(), confirming_.begin(), confirming_.end());
    for (Job& job : ordered) {
      const std::vector<size_t> all = AllSteps(job);
      job.sensitive = {all.begin(), all.end()};
    }
    const int most = static_cast<int>(
        std::clamp(kWorkOfOrders / std::max(MultiplyAdds(ordered), 1.0), 1.0, double{kOrders}));
    bool calm = chosen.worst().Part() <= kCalm;
    Candidate candidate;
    for (int done = 0; done < most;) {
      const int count = calm ? 1 : most - done;
      candidate = Try(context_.measured, ordered, Orders(next_order_, count));
      next_order_ += count;
      done += count;
      if (!candidate.fits()) break;
      if (done == most || (calm && candidate.worst().Part() <= kCalm)) return std::nullopt;
      calm = false;
    }
    for (size_t i = 0; i < jobs_.size(); ++i)
      jobs_[i].sensitive.merge(candidate.lost.empty() ? candidate.figures.Outside(i)
                                                      : std::move(ordered[i].sensitive));
    Take(candidate, jobs_.size(), false, true);
    return candidate;
  }

  // To what is measured, of what confirms: the steps that disprove the candidate, which had these
  // jobs from `first` on, or all.
  void Take(const Candidate& candidate, size_t first, bool all, bool sensitive) {
    // An infinite number is somewhere.
    all = all || !candidate.lost.empty();
    for (size_t i = 0; i < confirming_.size(); ++i) {
      Job& from = confirming_[i];
      const std::set<size_t> outside = candidate.figures.Outside(first + i);
      if (!all && outside.empty()) continue;
      auto to = std::find_if(jobs_.begin(), jobs_.end(),
                             [&](const Job& job) { return job.function == from.function; });
      if (to == jobs_.end()) to = jobs_.insert(to, Job{from.function, {}});
      Job left{from.function, {}};
      for (size_t step = 0; step < from.steps.size(); ++step) {
        Job& into = all || outside.contains(step) ? *to : left;
        if (sensitive && &into == &*to) to->sensitive.insert(to->steps.size());
        into.steps.push_back(std::move(from.steps[step]));
        into.references.push_back(std::move(from.references[step]));
      }
      Prepare(*to);
      Prepare(left);
      from = std::move(left);
    }
    std::erase_if(confirming_, [](const Job& job) { return job.steps.empty(); });
  }

  // What stays fp32, for the steps that are known.
  Candidate Choose() {
    const int runs = measurement_.runs, most_runs = options_.most_runs / (orders_ > 0 ? 2 : 1);
    only_safe_ = options_.least || MultiplyAdds(jobs_) > kMuchWork;
    Candidate candidate = Try(context_.measured);
    measurement_.plain = candidate.worst();
    if (SelectsOthers(candidate) && KeepSelections()) candidate = Try(context_.measured);
    if (candidate.worst().output.empty())
      measurement_.not_measured =
          fmt::format("each output {}", fmt::join(candidate.figures.untold(), ", or "));
    const Candidate plain = candidate;
    const std::map<std::string, std::string> before = context_.measured;
    if (!Does(candidate) && !options_.least) {
      // A guess that one run proves: numbers so small that fp16 has few digits of them.
      Mark([](const Seen& seen) { return seen.largest > 0 && seen.largest < kNormal; },
           "of which fp16 keeps few digits");
      if (context_.measured.size() != before.size()) {
        Candidate guess = Try(context_.measured);
        if (Does(guess))
          candidate = guess;
        else
          context_.measured = before;
      }
    }
    if (!Does(candidate))
      candidate = options_.least ? Least(candidate) : Bisect(candidate, runs + most_runs);
    if (!only_safe_ && !plain.Safe() && plain.share - candidate.share > kDearShare) {
      only_safe_ = true;
      std::map<std::string, std::string> sure = std::move(context_.measured);
      context_.measured = before;
      Candidate safe = Bisect(plain, runs + 2 * most_runs);
      if (Does(safe) && safe.share > candidate.share)
        candidate = safe;
      else
        context_.measured = std::move(sure);
    }
    if (plain.fits() && !Does(candidate)) {
      candidate = plain;
      context_.measured = before;
    }
    return candidate;
  }

  // Operations that can be kept, by name, in order: of those that the candidate has no more, too.
  std::vector<std::string> Narrowed(const Candidate& plain) const {
    std::vector<std::string> names;
    for (const Job& job : jobs_)
      ForEachOperation(*const_cast<Function*>(job.function), [&](Operation* op) {
        if (IsMeasured(*op) && ComputesIn(DType::kFp32, *op) && !plain.wide.contains(NameOf(*op)))
          names.push_back(NameOf(*op));
      });
    return names;
  }

  std::map<std::string, std::string> Keeping(const std::vector<std::string>& names, size_t begin,
                                             size_t end, const std::string& evidence) const {
    std::map<std::string, std::string> wide = context_.measured;
    for (size_t i = begin; i < end; ++i) wide.emplace(names[i], evidence);
    return wide;
  }

  // The least run of operations that makes the program fit when they stay fp32: its beginning is
  // searched first, then its end, until there were so many runs.
  Candidate Bisect(const Candidate& plain, int most_runs) {
    const std::vector<std::string> names = Narrowed(plain);
    const std::string evidence = Evidence(plain);
    size_t first = 0, last = names.size();  // what is kept
    std::optional<Candidate> kept;          // with just these, when it was run
    auto fits = [&](size_t begin, size_t end) {
      Candidate candidate = Try(Keeping(names, begin, end, evidence));
      bool fit = Does(candidate);
      if (fit) kept = std::move(candidate);
      return fit;
    };
    const int most = most_runs - 1;  // one is left for what nothing fits
    const int half = measurement_.runs + (most - measurement_.runs) / 2;
    for (size_t beyond = last; beyond - first > 1 && measurement_.runs < half;) {
      size_t middle = first + (beyond - first) / 2;
      (fits(middle, last) ? first : beyond) = middle;
    }
    for (size_t before = first; last - before > 1 && measurement_.runs < most;) {
      size_t middle = before + (last - before) / 2;
      (fits(first, middle) ? last : before) = middle;
    }
    context_.measured = Keeping(names, first, last, evidence);
    return kept ? *kept : Try(context_.measured);
  }

  // Segments of the program by how much each alone does harm in fp16; the worst that must stay, and
  // of them what need not.
  Candidate Least(const Candidate& plain) {
    const std::vector<std::string> names = Narrowed(plain);
    const std::string evidence = Evidence(plain);
    struct Segment {
      size_t begin, end;
      double harm;
    };
    std::vector<Segment> segments;
    const size_t count = std::min<size_t>(16, names.size());
    for (size_t i = 0; i < count; ++i)
      segments.push_back({names.size() * i / count, names.size() * (i + 1) / count, 0});
    auto keep = [&](const std::vector<Segment>& kept) {
      std::map<std::string, std::string> wide = context_.measured;
      for (const Segment& segment : kept)
        for (size_t i = segment.begin; i < segment.end; ++i) wide.emplace(names[i], evidence);
      return wide;
    };
    for (size_t i = 0; i < count; ++i) {
      std::vector<Segment> others = segments;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      Candidate alone = Try(keep(others));
      segments[i].harm = alone.lost.empty() ? alone.worst().Part() : kInfinity;
    }
    std::stable_sort(segments.begin(), segments.end(),
                     [](const Segment& a, const Segment& b) { return a.harm > b.harm; });
    std::optional<Candidate> best;
    auto fits = [&](const std::vector<Segment>& kept) {
      Candidate candidate = Try(keep(kept));
      bool fit = Does(candidate);
      if (fit) best = std::move(candidate);
      return fit;
    };
    size_t low = 0, high = count;  // keeping `low` of them does not do, `high` does
    while (high - low > 1) {
      size_t middle = low + (high - low) / 2;
      auto end = segments.begin() + static_cast<std::ptrdiff_t>(middle);
      (fits({segments.begin(), end}) ? high : low) = middle;
    }
    segments.resize(high);
    // The least harmful first: of each, as much from either end as need not stay.
    for (size_t i = segments.size(); i-- > 0 && work_ < kWorkOfLeast;)
      for (bool from_end : {true, false})
        for (size_t step = (segments[i].end - segments[i].begin + 1) / 2; step > 0; step /= 2) {
          Segment whole = segments[i];
          if (whole.end - whole.begin < step) continue;
          (from_end ? segments[i].end -= step : segments[i].begin += step);
          if (!fits(segments)) segments[i] = whole;
        }
    context_.measured = keep(segments);
    return best ? *best : Try(context_.measured);
  }

  const Program& program_;
  PassContext& context_;
  const MeasureOptions& options_;
  std::optional<Program> source_, rounded_;  // the latter: with its constants in fp16
  Jobs jobs_, confirming_;
  bool overruled_ = false;            // by what the user asks for in fp16
  int orders_ = 0;                    // of sums beside the kernels' own, by which is chosen
  int next_order_ = kMostOrders + 1;  // that nothing is chosen by
  bool only_safe_ = false;            // whether what is wanted leaves nothing for other inputs
  double work_ = 0;  // of all runs of candidates: multiply-adds, or eight for each element
  std::map<std::string, Seen> seen_;  // of the fp32 program's values, by name
  Measurement measurement_;
};

}  // namespace

namespace {
// By Kind.
constexpr struct {
  std::string_view word, phrase;
} kKinds[] = {{"error", "an error"},
              {"RMSE", "an RMSE"},
              {"unequal", "a share of unequal elements"},
              {"elements", "a share of elements beyond atol and rtol"}};
}  // namespace

std::string_view Name(Measurement::Figure::Kind kind) {
  return kKinds[static_cast<size_t>(kind)].phrase;
}
std::string_view Word(Measurement::Figure::Kind kind) {
  return kKinds[static_cast<size_t>(kind)].word;
}

Measurement MeasureFp16(const Program& program, PassContext& context,
                        const MeasureOptions& options) {
  Measurement measurement = Measuring(program, context, options).Run();
  context.judged = measurement.not_measured.empty();
  // Of what was tried, what nothing with as much in fp16 betters.
  auto badness = [](const Measurement::Point& point) { return point.worst.Part(); };
  std::vector<Measurement::Point> tried = std::move(measurement.curve);
  std::stable_sort(tried.begin(), tried.end(), [&](const auto& a, const auto& b) {
    return std::pair(-a.fp16_share, badness(a)) < std::pair(-b.fp16_share, badness(b));
  });
  measurement.curve.clear();
  for (Measurement::Point& point : tried)
    if (measurement.curve.empty() || badness(point) < badness(measurement.curve.back()))
      measurement.curve.push_back(std::move(point));
  std::reverse(measurement.curve.begin(), measurement.curve.end());
  return measurement;
}

}  // namespace mlc
