#include "tools/driver/benchmark.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>

#include "lib/ir/port_index.h"
#include "lib/support/memory_use.h"
#include "lib/support/milliseconds.h"
#include "lib/support/threads.h"
#include "tools/driver/compare_operations.h"
#include "tools/driver/errors.h"
#include "tools/driver/frontends.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/verify.h"

namespace fs = std::filesystem;

namespace mlc::driver {

Statistics Times::statistics() const {
  return times.empty() ? together.Summary() : StatisticsOf(times);
}

std::vector<const runtime::OperationPlacement*> Elsewhere(const BenchmarkResult& result) {
  std::vector<const runtime::OperationPlacement*> found;
  for (const runtime::OperationPlacement& placement : result.placements)
    if (!runtime::Allows(result.units, placement.preferred)) found.push_back(&placement);
  return found;
}

namespace {

using Clock = std::chrono::steady_clock;

// Returns whether the error concerns a single prediction, so that others may succeed. Other errors
// are the user's and would recur.
bool IsOfTheRun(const Error& error) {
  const runtime::Failure failure = runtime::FailureOf(error.id());
  return failure == runtime::Failure::kException || failure == runtime::Failure::kTimeout ||
         failure == runtime::Failure::kMemory || error.id() == "schema-mismatch";
}

void CheckOptions(const BenchmarkOptions& options) {
  constexpr int64_t kMostMs = 1'000'000'000, kMostRuns = 1'000'000'000;  // about 11 days
  for (auto [name, limit] :
       {std::pair{"--timeout", options.timeout}, {"--load-timeout", options.load_timeout}})
    if (limit && (limit->count() < 1 || limit->count() > kMostMs))
      throw Error("usage", "{}: expected milliseconds, from 1 to {}", name, kMostMs);
  if (options.iterations < 1 || options.warmup < 0 || options.iterations > kMostRuns ||
      options.warmup > kMostRuns)
    throw Error("usage", "--iterations must be at least 1 and --warmup at least 0, both at most {}",
                kMostRuns);
  if (options.breaker.p99_budget_ms && !(*options.breaker.p99_budget_ms >= 1))
    throw Error("usage", "--p99-budget: expected milliseconds, at least 1");
  constexpr int64_t kMostMemory = int64_t{1} << 50;
  if (const auto& mark = options.breaker.memory_limit; mark && (*mark < 1 || *mark > kMostMemory))
    throw Error("usage", "--memory-mark: expected megabytes, at least 1");
  if (options.budget && options.compare.empty())
    throw Error("usage", "--budget requires --compare");
  if (options.soak && (options.iterations != 1 || options.jobs != 1))
    throw Error("usage", "--soak cannot be combined with --iterations or --jobs");
  constexpr int64_t kMostJobs = 256;
  if (options.jobs < 1 || options.jobs > kMostJobs)
    throw Error("usage", "--jobs must be from 1 to {}", kMostJobs);
  CheckRunOptions(options);
  const char* given = options.text.given() ? "--text" : "--tokens";
  if (options.by_tokens() && options.jobs > 1)
    throw Error("usage", "--jobs cannot be combined with {}", given);
  if (options.by_tokens() && !options.compare.empty())
    throw Error("usage", "--compare cannot be combined with {}", given)
        .Help("mlc verify {} compares outputs", given);
  if (options.operations && options.compare != "reference")
    throw Error("usage", "--operations requires --compare reference");
}

class Bench {
 public:
  Bench(const fs::path& model, const BenchmarkOptions& options, Diagnostics& diagnostics)
      : options_(options),
        diagnostics_(diagnostics),
        trace_(options.trace ? options.trace : std::make_shared<Trace>()) {
    const Trace::Span span(*trace_, "read", Trace::kPhase);
    const Clock::time_point begin = Clock::now();
    if (options.operations && FrontendOf(model).IsSource())
      throw Error("usage", "--operations: \"{}\" is a source model", model.string())
          .Expected("a package or bundle");
    model_.emplace(model, OptionsOfModel(), diagnostics);
    tensors_.emplace(*model_, options);
    tensors_->Describe(result_);
    result_.read_ms = Milliseconds(begin, Clock::now());
  }

  BenchmarkResult Run() {
    Begin();
    Trace::Span warming(*trace_, "warm-up", Trace::kPhase);
    for (const auto& instance : instances_)
      for (int64_t i = 0; i < options_.warmup; ++i) Once(*instance, false);
    warming.End();
    {
      Trace::Span span(*trace_, "predict", Trace::kPhase);
      const Clock::time_point begin = Clock::now();
      if (options_.soak)
        Soak(begin + *options_.soak);
      else if (options_.jobs > 1)
        Jobs();
      else
        for (int64_t i = 0; i < options_.iterations; ++i) Once(*instances_[0], true);
      if (options_.jobs > 1) result_.wall_ms = Milliseconds(begin, Clock::now());
    }
    return End();
  }

  // The same as Run in steps, for predictions of several models in turn.
  void Begin() {
    result_.jobs = options_.jobs;
    result_.warmup = options_.warmup;
    if (by_tokens())
      result_.measures = options_.text.given() ? "texts"
                         : options_.step       ? "tokens one by one"
                                               : "prompts";
    Load();
    if (!options_.compare.empty()) Reference();
  }
  void Predict(bool measured) { Once(*instances_[0], measured); }
  BenchmarkResult End() {
    // For sequential predictions, the time for comparing and recording between them is excluded.
    if (options_.jobs == 1) result_.wall_ms = busy_ms_;
    Finish();
    return std::move(result_);
  }

  // By the names of the source.
  std::map<std::string, Tensor> NamedInputs() const {
    const std::map<std::string, Tensor> inputs = tensors_->Inputs();
    std::map<std::string, Tensor> named;
    for (const auto& [port, value] : InputPorts(function()))
      named[verify::UserName(port)] = inputs.at(value.name);
    return named;
  }

 private:
  bool several() const { return options_.warmup + options_.iterations > 1 || options_.soak; }
  bool by_tokens() const { return options_.by_tokens(); }
  const Function& function() const { return model_->function(); }

  ModelOptions OptionsOfModel() const {
    ModelOptions model = ForPicture(options_, options_.picture);
    if (options_.jobs > 1)
      model.threads = std::max(1, DefaultThreads() / static_cast<int>(options_.jobs));
    if (options_.profile)
      model.hints.observe = [trace = trace_](const runtime::LoadOptions::OperationRun& run) {
        trace->Add(std::string(run.name), Trace::kOperation, run.begin, run.end,
                   std::string(run.op));
      };
    return model;
  }

  void Load() {
    result_.machine = model_->capabilities();
    if (result_.units != runtime::Units::kReference) {
      const Trace::Span span(*trace_, "compile", Trace::kPhase);
      const Clock::time_point begin = Clock::now();
      if (model_->Compile()) result_.compile_ms = Milliseconds(begin, Clock::now());
    }
    telemetry_ = std::make_shared<runtime::Telemetry>(
        [trace = trace_] { return ResidentBytes() - trace->bytes(); });
    breaker_ = std::make_shared<runtime::CircuitBreaker>(options_.breaker);
    runtime::GuardOptions guard{.telemetry = telemetry_, .breaker = breaker_};
    // Each instance may have one hanging prediction.
    if (options_.timeout && options_.jobs > runtime::Abandoned::kMost)
      guard.abandoned = std::make_shared<runtime::Abandoned>(static_cast<int>(options_.jobs));
    if (result_.units != runtime::Units::kReference)
      guard.fallback = model_->ReferenceLoaderOf(function());
    if (options_.trace_predictions && options_.jobs > 1)
      guard.observe = [trace = trace_, count = std::make_shared<std::atomic<int64_t>>(0)](
                          Clock::time_point begin, Clock::time_point end) {
        trace->Add(fmt::format("{}", ++*count), Trace::kPrediction, begin, end);
      };
    Trace::Span span(*trace_, "load", Trace::kPhase);
    const Clock::time_point begin = Clock::now();
    instances_.push_back(model_->Load(guard));
    result_.load_ms = Milliseconds(begin, Clock::now());
    // For the reference engine, loading includes reading.
    if (result_.units == runtime::Units::kReference) result_.load_ms += result_.read_ms;
    for (int64_t i = 1; i < options_.jobs; ++i) instances_.push_back(model_->Load(guard));
    span.End();
    if (options_.warm_load) {
      const Trace::Span again(*trace_, "load again", Trace::kPhase);
      const Clock::time_point warm = Clock::now();
      runtime::Worker().Run(
          [load = model_->LoaderOf(function())] {
            return std::shared_ptr<runtime::LoadedModel>(load());
          },
          model_->load_limit());
      result_.warm_load_ms = Milliseconds(warm, Clock::now());
    }
    const Trace::Span plan(*trace_, "plan", Trace::kPhase);
    result_.placements = instances_[0]->Placements(&result_.no_placements);
  }

  // Computes the expected outputs for BenchmarkOptions::compare.
  void Reference() {
    const Trace::Span span(*trace_, "reference", Trace::kPhase);
    const std::map<std::string, Tensor> inputs = tensors_->Inputs();
    budgets_ = verify::ParseBudgets(options_.budget                      ? *options_.budget
                                    : ComputesInFp16(*model_->program()) ? "fp16"
                                                                         : "fp32");
    expected_.emplace();
    if (options_.compare == "reference") {
      result_.compared_with = "mlc's engine";
      const auto reference = model_->LoadReference(function());
      expected_->outputs = Named(function(), reference->Predict(inputs, nullptr, nullptr));
      return;
    }
    // Another model on the same units gets the inputs by the names of the source.
    result_.compared_with = options_.compare;
    const bool source = FrontendOf(options_.compare).IsSource();
    ModelOptions like{.import = options_.import, .may_lack_sizes = true};
    like.units = source ? runtime::Units::kReference : result_.units;
    if (like.units != runtime::Units::kReference) {
      like.hints = options_.hints;
      like.timeout = options_.timeout;
      like.load_timeout = options_.load_timeout;
    }
    Model other(options_.compare, like, diagnostics_);
    const Function& twin = other.program()->functions.size() == 1
                               ? other.function()
                               : FindFunction(*other.program(), function().name);
    const PortIndex ports(twin.inputs, verify::UserName);
    for (const Port& own : function().inputs)
      if (const Port* port = ports.Find(verify::UserName(own));
          port && port->feature != own.feature)
        throw Error("usage", "--compare: input \"{}\" is an image in only one of the models",
                    verify::UserName(own))
            .Help("use `mlc verify SOURCE PACKAGE` with the --image option of the compilation");
    expected_->outputs =
        Named(twin, other.Load(twin)->Run(MakeInputs(twin, NamedInputs())).outputs);
  }

  static verify::NamedTensors Named(const Function& function,
                                    const std::map<std::string, Tensor>& outputs) {
    verify::NamedTensors named;
    for (const Port& port : function.outputs)
      named.emplace_back(verify::UserName(port), ToSourceType(outputs.at(port.name), port));
    return named;
  }

  // Runs one prediction on one instance, including conversions from and to the user's tensors.
  void Once(runtime::GuardedModel& instance, bool measured) {
    std::optional<Trace::Span> span;
    if (options_.trace_predictions && options_.jobs == 1)
      span.emplace(*trace_, fmt::format("{}", done_ + 1), Trace::kPrediction);
    const Clock::time_point begin = Clock::now();
    RunTensors::Once once;
    try {
      once = tensors_->Predict(instance);
    } catch (const Error& error) {
      Fail(error);
      return;
    }
    span.reset();
    Take(std::move(once), Milliseconds(begin, Clock::now()), measured);
  }

  void Note(const Error& error) {
    // Only the first failures are kept; the telemetry counts all of them.
    constexpr size_t kMost = 1000;
    if (result_.failures.size() < kMost) result_.failures.push_back({done_ + 1, error});
  }

  void Fail(const Error& error) {
    if (!several() || !(IsOfTheRun(error) || error.id() == "circuit-open")) throw error;
    // A prediction that the breaker refused is not a failure.
    if (error.id() == "circuit-open")
      refusal_ = error;
    else
      Note(error);
    Progress();
  }

  // `whole_ms`: duration of the prediction including the conversions from and to the user's
  // tensors.
  void Take(RunTensors::Once once, double whole_ms, bool measured) {
    // Fallback results of the reference engine are not compared, because the model did not compute
    // them.
    if (expected_ && !once.fallback) Compare(once);
    result_.outputs = std::move(once.outputs);
    result_.of_fallback = once.fallback;
    if (measured && !once.fallback) {
      const auto& [in_ms, predict_ms, out_ms] = once.timings;
      for (auto [part, ms] :
           {std::pair{&BenchmarkResult::marshal_in, in_ms},
            {&BenchmarkResult::predict, predict_ms},
            {&BenchmarkResult::marshal_out, out_ms},
            {&BenchmarkResult::overhead, std::max(0.0, whole_ms - in_ms - predict_ms - out_ms)}})
        (result_.*part).Add(ms, options_.soak.has_value());
      result_.token_ms.insert(result_.token_ms.end(), once.token_ms.begin(), once.token_ms.end());
      busy_ms_ += whole_ms;
    }
    Progress();
  }

  void Compare(const RunTensors::Once& once) {
    verify::NamedTensors named;
    for (const RunOutput& output : once.outputs) named.emplace_back(output.name, output.tensor);
    result_.compared = CompareSteps(function().name, {{named, {}}}, {*expected_},
                                    verify::Match::kByName, budgets_);
    if (Judge(result_.compared) != verify::Verdict::kFailed) return;
    telemetry_->Revoked(runtime::Failure::kParity);
    breaker_->Revoke(once.ticket, Clock::now());
    const auto worst = std::ranges::find_if(result_.compared, [](const verify::Compared& compared) {
      return compared.tells && !compared.within;
    });
    Note(Error("check-failed", "output \"{}\": {}", worst->name, Describe(worst->comparison))
             .Expected(Describe(worst->budget)));
    outside_ = result_.compared;
  }

  void Progress() {
    ++done_;
    if (!options_.progress) return;
    // The median over all times would be too slow in long runs.
    constexpr size_t kFew = 1000;
    const std::vector<double>& known = result_.predict.times;
    if (!known.empty() && known.size() < kFew) {
      std::vector<double> times = known;
      const auto middle = times.begin() + std::ssize(times) / 2;
      std::nth_element(times.begin(), middle, times.end());
      p50_ = *middle;
    }
    options_.progress(done_, options_.soak ? 0 : options_.warmup + options_.iterations, p50_);
  }

  void Soak(Clock::time_point until) {
    constexpr auto kPause = std::chrono::milliseconds(100);
    while (Clock::now() < until) {
      refusal_.reset();
      Once(*instances_[0], true);
      // While the breaker is open, wait for its probes.
      if (refusal_) std::this_thread::sleep_for(kPause);
    }
  }

  // Runs one prediction per instance at a time, with as many more in the queue.
  void Jobs() {
    const std::map<std::string, Tensor> inputs = tensors_->Inputs();
    runtime::Pool pool(std::move(instances_), static_cast<size_t>(options_.jobs));
    std::deque<std::future<runtime::Prediction>> waiting;
    const auto take = [&] {
      std::future<runtime::Prediction> future = std::move(waiting.front());
      waiting.pop_front();
      try {
        RunTensors::Once once = tensors_->Converted(future.get());
        const double whole =
            once.timings.marshal_in_ms + once.timings.predict_ms + once.timings.marshal_out_ms;
        Take(std::move(once), whole, true);
      } catch (const Error& error) {
        Fail(error);
      }
    };
    // Results after a slow prediction are held back, at most a few rounds of them.
    const auto most = static_cast<size_t>(4 * options_.jobs);
    for (int64_t i = 0; i < options_.iterations; ++i) {
      waiting.push_back(pool.Submit({inputs, {}}, runtime::Pool::WhenFull::kBlock));
      while (!waiting.empty() &&
             (waiting.size() >= most ||
              waiting.front().wait_for(std::chrono::seconds(0)) == std::future_status::ready))
        take();
    }
    while (!waiting.empty()) take();
    result_.queue = pool.statistics();
  }

  void Finish() {
    result_.telemetry = telemetry_->snapshot();
    result_.breaker = breaker_->state();
    result_.breaker_changes = breaker_->changes();
    if (!outside_.empty()) result_.compared = outside_;
    if (options_.operations) {
      const Trace::Span span(*trace_, "operations", Trace::kPhase);
      try {
        result_.operations =
            CompareOperations(*model_, options_, tensors_->Inputs(), budgets_.all, diagnostics_);
      } catch (const std::exception&) {
        for (const Error& error : CurrentErrors()) Note(error);
      }
    }
    std::optional<Trace::Span> span;
    if (!options_.output_folder.empty()) span.emplace(*trace_, "write", Trace::kPhase);
    tensors_->Finish(result_);
    span.reset();
    trace_->End();
    result_.phases = trace_->phases();
    result_.whole_ms = trace_->whole_ms();
  }

  const BenchmarkOptions& options_;
  Diagnostics& diagnostics_;
  const std::shared_ptr<Trace> trace_;
  BenchmarkResult result_;
  std::optional<Model> model_;
  std::optional<RunTensors> tensors_;
  std::shared_ptr<runtime::Telemetry> telemetry_;
  std::shared_ptr<runtime::CircuitBreaker> breaker_;
  std::vector<std::unique_ptr<runtime::GuardedModel>> instances_;
  std::optional<verify::StepResults> expected_;
  std::vector<verify::Compared> outside_;  // outputs outside the budget in the last prediction
  verify::Budgets budgets_;
  int64_t done_ = 0;
  double p50_ = 0;
  double busy_ms_ = 0;
  std::optional<Error> refusal_;
};

}  // namespace

BenchmarkResult Benchmark(const fs::path& model, const BenchmarkOptions& options,
                          Diagnostics& diagnostics) {
  CheckOptions(options);
  return Bench(model, options, diagnostics).Run();
}

std::array<BenchmarkResult, 2> BenchmarkPair(const fs::path& a, const fs::path& b,
                                             const BenchmarkOptions& options,
                                             Diagnostics& diagnostics) {
  CheckOptions(options);
  Bench first(a, options, diagnostics);
  BenchmarkOptions of_second = options;
  if (!options.by_tokens()) {
    of_second.inputs = first.NamedInputs();
    of_second.input_files.clear();
    of_second.picture.clear();
  }
  of_second.progress = {};
  Bench second(b, of_second, diagnostics);
  first.Begin();
  second.Begin();
  for (int64_t i = 0; i < options.warmup + options.iterations; ++i)
    for (Bench* bench : {&first, &second}) bench->Predict(i >= options.warmup);
  return {first.End(), second.End()};
}

}  // namespace mlc::driver
