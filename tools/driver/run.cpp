#include "tools/driver/run.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <set>
#include <thread>

#include "lib/ir/npy.h"
#include "lib/ir/port_index.h"
#include "lib/support/atomic_install.h"
#include "lib/support/input_registry.h"
#include "lib/support/memory_use.h"
#include "lib/support/milliseconds.h"
#include "lib/support/percent_encoding.h"
#include "lib/support/threads.h"
#include "tools/driver/compare_operations.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/errors.h"
#include "tools/driver/frontends.h"
#include "tools/driver/run_tokens.h"
#include "tools/driver/runtimes.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/verify.h"

namespace fs = std::filesystem;

namespace mlc::driver {

std::string_view Name(engine::EngineOptions::Arithmetic arithmetic) {
  return arithmetic == engine::EngineOptions::Arithmetic::kExact ? "exact" : "faithful";
}

std::string_view Describe(engine::EngineOptions::Arithmetic arithmetic) {
  return arithmetic == engine::EngineOptions::Arithmetic::kExact
             ? "exact: computes in fp32"
             : "faithful: rounds fp16 results to fp16";
}

void RequireBundle(const fs::path& path) {
  const Frontend& frontend = FrontendOf(path);
  if (frontend.format == Format::kBundle) return;
  throw Error("usage", fmt::format("--no-compile: \"{}\" is {}", path.string(), frontend.what))
      .Expected("a compiled bundle (.mlmodelc)")
      .Help(frontend.IsSource() ? "`mlc compile MODEL -o MODEL.mlmodelc` makes one"
                                : "`mlc precompile` makes one from a package");
}

void RefuseHints(const runtime::LoadOptions& hints, runtime::Units units) {
  for (auto [name, given] : {std::pair{"--low-precision", hints.low_precision_accumulation},
                             {"--reshapes", hints.reshapes.has_value()},
                             {"--specialization", hints.specialization.has_value()}})
    if (given && units == runtime::Units::kReference)
      throw Error("usage", fmt::format("{} applies to Core ML, not to the reference engine", name))
          .Expected("--units all, cpu, gpu or ane");
}

namespace {

using Clock = std::chrono::steady_clock;
fs::path OutputPath(const fs::path& folder, const std::string& name) {
  return folder / (FileStem(name) + ".npy");
}

// Returns all names of the function's inputs, in the program and in the source.
std::set<std::string> InputNames(const Function& function) {
  std::set<std::string> names;
  for (const Port& port : function.inputs) names.insert({port.source_name, port.name});
  for (const AbsentInput& absent : function.absent_inputs) names.insert(absent.source_name);
  return names;
}

// Both names and paths may contain '='; the longest matching name is used.
void AddFile(const std::string& text, const std::set<std::string>& names,
             std::map<std::string, Tensor>& inputs) {
  size_t equals = text.find('=');
  for (size_t at = equals; at != std::string::npos; at = text.find('=', at + 1))
    if (names.contains(text.substr(0, at))) equals = at;
  if (equals == std::string::npos)
    throw Error("usage", fmt::format("--input: \"{}\" is not of the form NAME=FILE", text));
  if (!inputs.emplace(text.substr(0, equals), ReadTensor(text.substr(equals + 1))).second)
    throw Error("usage", fmt::format("--input: \"{}\" is given twice", text.substr(0, equals)));
}

std::string NameOf(const Port& port, bool tokens) {
  return tokens ? NameForTokens(port) : verify::UserName(port);
}

// Returns the output file: for packages it has the name that an app must use.
fs::path PlaceOf(const fs::path& folder, const Port& port, const std::string& name, bool source) {
  return OutputPath(folder, source || name != verify::UserName(port) ? name : port.name);
}

// Reports conflicts with output files before the run.
void CheckOutputs(const fs::path& folder, const Function& function, bool tokens, bool source) {
  std::error_code error;
  for (const Port& port : function.outputs)
    if (fs::path path = PlaceOf(folder, port, NameOf(port, tokens), source);
        fs::exists(folder, error))
      Staging(path, Staging::kFile);
    else
      InputRegistry::CheckTarget(path);
}

void WriteOutputs(const fs::path& folder, std::vector<RunResult::Output>& outputs, bool source) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error("file-io",
                fmt::format("cannot create folder \"{}\": {}", folder.string(), error.message()));
  for (RunResult::Output& output : outputs) {
    output.file = PlaceOf(folder, *output.port, output.name, source);
    WriteNpy(output.file, output.tensor);
  }
}

}  // namespace

Statistics Times::statistics() const {
  if (!times.empty()) return StatisticsOf(times);
  return StatisticsOf(together.Summary());
}

std::vector<const runtime::OperationPlacement*> Elsewhere(const RunResult& result) {
  std::vector<const runtime::OperationPlacement*> found;
  for (const runtime::OperationPlacement& placement : result.placements)
    if (!runtime::Allows(result.units, placement.preferred)) found.push_back(&placement);
  return found;
}

namespace {

// Returns whether the error concerns a single prediction, so that others may succeed. Other errors
// are the user's and would recur.
bool IsOfTheRun(const Error& error) {
  switch (runtime::FailureOf(error.id())) {
    case runtime::Failure::kException:
    case runtime::Failure::kTimeout:
    case runtime::Failure::kMemory:
      return true;
    default:
      return error.id() == "schema-mismatch";
  }
}

void CheckOptions(const RunOptions& options) {
  constexpr int64_t kMostMs = 1'000'000'000, kMostRuns = 1'000'000'000;  // about 11 days
  for (auto [name, limit] :
       {std::pair{"--timeout", options.timeout}, {"--load-timeout", options.load_timeout}})
    if (limit && (limit->count() < 1 || limit->count() > kMostMs))
      throw Error("usage", fmt::format("{}: expected milliseconds, from 1 to {}", name, kMostMs));
  if (options.iterations < 1 || options.warmup < 0 || options.iterations > kMostRuns ||
      options.warmup > kMostRuns)
    throw Error(
        "usage",
        fmt::format("--iterations must be at least 1 and --warmup at least 0, both at most {}",
                    kMostRuns));
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
    throw Error("usage", fmt::format("--jobs must be from 1 to {}", kMostJobs));
  const bool by_tokens = !options.tokens.empty();
  if (options.step && !by_tokens) throw Error("usage", "--step requires --tokens");
  if (by_tokens && options.jobs > 1)
    throw Error("usage", "--jobs cannot be combined with --tokens");
  if (by_tokens && !options.compare.empty())
    throw Error("usage", "--compare cannot be combined with --tokens")
        .Help("mlc verify --tokens compares logits");
  if (options.operations && options.compare != "reference")
    throw Error("usage", "--operations requires --compare reference");
}

class Runner {
 public:
  Runner(const fs::path& model, const RunOptions& options, Diagnostics& diagnostics)
      : path_(model),
        options_(options),
        diagnostics_(diagnostics),
        trace_(options.trace ? options.trace : std::make_shared<Trace>()) {}

  RunResult Run() {
    CheckOptions(options_);
    result_.units = options_.units.value_or(DefaultUnits());
    result_.jobs = options_.jobs;
    result_.warmup = options_.warmup;
    if (by_tokens()) result_.measures = options_.step ? "tokens one by one" : "prompts";
    Read();
    Load();
    if (!options_.compare.empty()) Reference();
    Trace::Span warming(*trace_, "warm-up", Trace::kPhase);
    for (const auto& instance : models_)
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
        for (int64_t i = 0; i < options_.iterations; ++i) Once(*models_[0], true);
      // For sequential predictions, the time for comparing and recording between them is excluded.
      result_.wall_ms = options_.jobs > 1 ? Milliseconds(begin, Clock::now()) : busy_ms_;
    }
    Finish();
    return std::move(result_);
  }

 private:
  bool several() const { return options_.warmup + options_.iterations > 1 || options_.soak; }
  bool by_tokens() const { return !options_.tokens.empty(); }
  const Function& function() const { return *result_.function; }

  void Read() {
    const Trace::Span span(*trace_, "read", Trace::kPhase);
    const Clock::time_point begin = Clock::now();
    const bool source = FrontendOf(path_).IsSource();
    if (options_.bundles_only) RequireBundle(path_);
    if (source && options_.operations)
      throw Error("usage", fmt::format("--operations: \"{}\" is a source model", path_.string()))
          .Expected("a package or bundle");
    if (source && !options_.units) result_.units = runtime::Units::kReference;
    if (source && result_.units != runtime::Units::kReference)
      throw Error("usage",
                  fmt::format("--units {}: Core ML runs packages and bundles, but \"{}\" is {}",
                              Name(result_.units), path_.string(), FrontendOf(path_).what))
          .Help("`mlc compile` makes a package from it");
    RefuseHints(options_.hints, result_.units);
    result_.arithmetic =
        options_.arithmetic.value_or(source ? engine::EngineOptions::Arithmetic::kExact
                                            : engine::EngineOptions::Arithmetic::kFaithful);
    program_ = std::make_shared<Program>(ImportToRun(path_, options_.import, false, diagnostics_));
    result_.program = program_;
    result_.function =
        options_.function ? &FindFunction(*program_, *options_.function) : program_->main();
    given_ = options_.inputs;
    const std::set<std::string> names = InputNames(function());
    for (const std::string& text : options_.input_files) AddFile(text, names, given_);
    if (!options_.output_folder.empty())
      CheckOutputs(options_.output_folder, function(), by_tokens(), FrontendOf(path_).IsSource());
    if (by_tokens() && !given_.empty())
      throw Error("usage", "--tokens cannot be combined with --input");
    CheckRanges(options_.make_up, *program_);
    result_.read_ms = Milliseconds(begin, Clock::now());
    if (by_tokens()) {
      CheckTokens(function(), options_.tokens, options_.step);
    } else {
      for (auto& [name, tensor] :
           MakeInputs(function(), given_, options_.make_up, &result_.generated))
        if (result_.generated.contains(name)) given_[name] = tensor;
    }
  }

  // Returns a loader for an instance of the model; it owns everything that it uses.
  std::function<std::unique_ptr<runtime::LoadedModel>()> Loader(runtime::Units units) {
    ReferenceOptions reference{.import = options_.import, .arithmetic = result_.arithmetic};
    if (options_.jobs > 1)
      reference.threads = std::max(1, DefaultThreads() / static_cast<int>(options_.jobs));
    reference.timeout = options_.timeout;
    runtime::LoadOptions load = options_.hints;
    load.units = units;
    load.function = function().name;
    if (options_.profile && units == result_.units)
      load.observe = [trace = trace_](const runtime::LoadOptions::OperationRun& run) {
        trace->Add(std::string(run.name), Trace::kOperation, run.begin, run.end,
                   std::string(run.op));
      };
    if (units == runtime::Units::kReference)
      return
          [program = program_, function = result_.function, reference, load, weights = weights_] {
            return MakeReferenceModel(program, *function, reference, load, weights);
          };
    return
        [runtime = runtime_, bundle = bundle_, load] { return runtime->Load(bundle->path, load); };
  }

  runtime::Worker::Timeout LoadLimit() const {
    return mlc::driver::LoadLimit(result_.units, options_.load_timeout);
  }

  CompiledModel Compiled(const fs::path& path) {
    return CompiledWithin(LoadLimit(), runtime_, path, result_.units, diagnostics_);
  }

  void Load() {
    ReferenceOptions reference;
    runtime_ = MakeRuntime(result_.units, reference);
    result_.machine = runtime_->capabilities();
    if (result_.units != runtime::Units::kReference) {
      const Trace::Span span(*trace_, "compile", Trace::kPhase);
      const Clock::time_point begin = Clock::now();
      bundle_ = std::make_shared<CompiledModel>(Compiled(path_));
      if (bundle_->made) result_.compile_ms = Milliseconds(begin, Clock::now());
    }
    telemetry_ = std::make_shared<runtime::Telemetry>(
        [trace = trace_] { return ResidentBytes() - trace->bytes(); });
    breaker_ = std::make_shared<runtime::CircuitBreaker>(options_.breaker);
    runtime::GuardOptions guard{.load = Loader(result_.units),
                                .timeout = options_.timeout,
                                .load_timeout = LoadLimit(),
                                .telemetry = telemetry_,
                                .breaker = breaker_};
    // Each instance may have one hanging prediction.
    if (options_.timeout && options_.jobs > runtime::Abandoned::kMost)
      guard.abandoned = std::make_shared<runtime::Abandoned>(static_cast<int>(options_.jobs));
    if (result_.units != runtime::Units::kReference)
      guard.fallback = Loader(runtime::Units::kReference);
    if (options_.trace_predictions && options_.jobs > 1)
      guard.observe = [trace = trace_, count = std::make_shared<std::atomic<int64_t>>(0)](
                          Clock::time_point begin, Clock::time_point end) {
        trace->Add(fmt::format("{}", ++*count), Trace::kPrediction, begin, end);
      };
    Trace::Span span(*trace_, "load", Trace::kPhase);
    const Clock::time_point begin = Clock::now();
    models_.push_back(std::make_unique<runtime::GuardedModel>(guard));
    result_.load_ms = Milliseconds(begin, Clock::now());
    // For the reference engine, loading includes reading.
    if (result_.units == runtime::Units::kReference) result_.load_ms += result_.read_ms;
    for (int64_t i = 1; i < options_.jobs; ++i)
      models_.push_back(std::make_unique<runtime::GuardedModel>(guard));
    span.End();
    if (options_.warm_load) {
      const Trace::Span again(*trace_, "load again", Trace::kPhase);
      const Clock::time_point warm = Clock::now();
      runtime::Worker().Run(
          [load = guard.load] { return std::shared_ptr<runtime::LoadedModel>(load()); },
          LoadLimit());
      result_.warm_load_ms = Milliseconds(warm, Clock::now());
    }
    const Trace::Span plan(*trace_, "plan", Trace::kPhase);
    result_.placements = models_[0]->Placements(&result_.no_placements);
  }

  // Computes the expected outputs for RunOptions::compare.
  void Reference() {
    const Trace::Span span(*trace_, "reference", Trace::kPhase);
    const std::map<std::string, Tensor> inputs = MakeInputs(function(), given_);
    const bool own = options_.compare == "reference";
    budgets_ = verify::ParseBudgets(options_.budget             ? *options_.budget
                                    : ComputesInFp16(*program_) ? "fp16"
                                                                : "fp32");
    expected_.emplace();
    result_.compared_with = own ? "mlc's engine" : options_.compare;
    if (own) {
      auto model = MakeReferenceModel(program_, function(),
                                      {.arithmetic = engine::EngineOptions::Arithmetic::kFaithful},
                                      {.units = runtime::Units::kReference}, weights_);
      expected_->outputs = Named(function(), model->Predict(inputs, nullptr, nullptr));
      return;
    }
    // Another model on the same units gets the inputs by the names of the source.
    const fs::path path = options_.compare;
    const bool source = FrontendOf(path).IsSource();
    auto other = std::make_shared<Program>(ImportToRun(path, options_.import, true, diagnostics_));
    const Function& twin =
        other->functions.size() == 1 ? *other->main() : FindFunction(*other, function().name);
    const PortIndex ports(twin.inputs, verify::UserName);
    for (const Port& own : function().inputs)
      if (const Port* port = ports.Find(verify::UserName(own));
          port && port->feature != own.feature)
        throw Error("usage",
                    fmt::format("--compare: input \"{}\" is an image in only one of the models",
                                verify::UserName(own)))
            .Help("use `mlc verify SOURCE PACKAGE` with the --image option of the compilation");
    std::map<std::string, Tensor> named;
    const std::vector<const Value*> values = InputValues(function());
    for (size_t i = 0; i < values.size(); ++i)
      named[verify::UserName(function().inputs[i])] = inputs.at(values[i]->name);
    std::unique_ptr<runtime::LoadedModel> model;
    if (source || result_.units == runtime::Units::kReference) {
      model =
          MakeReferenceModel(other, twin,
                             {.arithmetic = source ? engine::EngineOptions::Arithmetic::kExact
                                                   : engine::EngineOptions::Arithmetic::kFaithful},
                             {.units = runtime::Units::kReference});
    } else {
      runtime::LoadOptions load = options_.hints;
      load.units = result_.units;
      load.function = twin.name;
      model = std::make_unique<runtime::GuardedModel>(
          runtime::GuardOptions{.load = [runtime = runtime_, compiled = Compiled(path),
                                         load] { return runtime->Load(compiled.path, load); },
                                .timeout = options_.timeout,
                                .load_timeout = LoadLimit()});
    }
    expected_->outputs = Named(twin, model->Predict(MakeInputs(twin, named), nullptr, nullptr));
  }

  static verify::NamedTensors Named(const Function& function,
                                    const std::map<std::string, Tensor>& outputs) {
    verify::NamedTensors named;
    for (const Port& port : function.outputs)
      named.emplace_back(verify::UserName(port), ToSourceType(outputs.at(port.name), port));
    return named;
  }

  // The origin of a prediction.
  struct Made {
    bool fallback = false;
    runtime::CircuitBreaker::Ticket ticket = {};
  };

  // Runs one prediction on one instance, including conversions from and to the user's tensors.
  void Once(runtime::GuardedModel& model, bool measured) {
    std::optional<Trace::Span> span;
    if (options_.trace_predictions && options_.jobs == 1)
      span.emplace(*trace_, fmt::format("{}", done_ + 1), Trace::kPrediction);
    const Clock::time_point begin = Clock::now();
    runtime::PredictTimings timings;
    Made made;
    std::vector<RunResult::Output> outputs;
    std::vector<double> tokens;
    Clock::time_point ready = begin, done;
    try {
      if (by_tokens()) {
        const std::unique_ptr<runtime::ModelState> state = model.NewState();
        const Predict predict = [&](const std::map<std::string, Tensor>& inputs) {
          const Clock::time_point start = Clock::now();
          runtime::Prediction prediction = model.Run(inputs, state.get());
          timings.marshal_in_ms += prediction.timings.marshal_in_ms;
          timings.predict_ms += prediction.timings.predict_ms;
          timings.marshal_out_ms += prediction.timings.marshal_out_ms;
          made.fallback = made.fallback || prediction.fallback;
          tokens.push_back(Milliseconds(start, Clock::now()));
          return std::move(prediction.outputs);
        };
        std::vector<Tensor> found =
            IsEncoder(function())
                ? RunEncoder(predict, function(), options_.tokens)
                : std::vector{RunTokens(predict, function(), options_.tokens, options_.step)};
        done = Clock::now();
        for (size_t k = 0; k < found.size(); ++k) {
          const Port& port = function().outputs[k];
          outputs.push_back({&port, std::move(found[k]), NameForTokens(port), {}});
        }
      } else {
        const std::map<std::string, Tensor> inputs = MakeInputs(function(), given_);
        ready = Clock::now();
        runtime::Prediction prediction = model.Run(inputs);
        done = Clock::now();
        timings = prediction.timings;
        made = {prediction.fallback, prediction.ticket};
        outputs = Outputs(prediction);
      }
    } catch (const Error& error) {
      Fail(error);
      return;
    }
    const Clock::time_point converted = Clock::now();
    result_.outputs.clear();
    const Clock::time_point end = Clock::now();
    span.reset();
    timings.marshal_in_ms += Milliseconds(begin, ready);
    timings.marshal_out_ms += Milliseconds(done, converted);
    if (!options_.step) tokens.clear();
    Take(std::move(outputs), timings, Milliseconds(begin, end), tokens, measured, made);
  }

  std::vector<RunResult::Output> Outputs(const runtime::Prediction& prediction) {
    std::vector<RunResult::Output> outputs;
    for (const Port& port : function().outputs)
      outputs.push_back({&port,
                         ToSourceType(prediction.outputs.at(port.name), port),
                         verify::UserName(port),
                         {}});
    return outputs;
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
  void Take(std::vector<RunResult::Output> outputs, const runtime::PredictTimings& timings,
            double whole_ms, const std::vector<double>& tokens, bool measured, const Made& made) {
    // Fallback results of the reference engine are not compared, because the model did not compute
    // them.
    if (expected_ && !made.fallback) Compare(outputs, made.ticket);
    result_.outputs = std::move(outputs);
    result_.of_fallback = made.fallback;
    if (measured && !made.fallback) {
      const double overhead = std::max(
          0.0, whole_ms - timings.marshal_in_ms - timings.predict_ms - timings.marshal_out_ms);
      for (auto [part, ms] : {std::pair{&RunResult::marshal_in, timings.marshal_in_ms},
                              {&RunResult::predict, timings.predict_ms},
                              {&RunResult::marshal_out, timings.marshal_out_ms},
                              {&RunResult::overhead, overhead}})
        (result_.*part).Add(ms, options_.soak.has_value());
      result_.token_ms.insert(result_.token_ms.end(), tokens.begin(), tokens.end());
      busy_ms_ += whole_ms;
    }
    Progress();
  }

  void Compare(const std::vector<RunResult::Output>& outputs,
               const runtime::CircuitBreaker::Ticket& ticket) {
    verify::NamedTensors named;
    for (const RunResult::Output& output : outputs) named.emplace_back(output.name, output.tensor);
    result_.compared = CompareSteps(function().name, {{named, {}}}, {*expected_},
                                    verify::Match::kByName, budgets_);
    if (Judge(result_.compared) != verify::Verdict::kFailed) return;
    telemetry_->Revoked(runtime::Failure::kParity);
    breaker_->Revoke(ticket, Clock::now());
    const auto worst = std::find_if(
        result_.compared.begin(), result_.compared.end(),
        [](const verify::Compared& compared) { return compared.tells && !compared.within; });
    Note(Error("check-failed",
               fmt::format("output \"{}\": {}", worst->name, Describe(worst->comparison)))
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
      Once(*models_[0], true);
      // While the breaker is open, wait for its probes.
      if (refusal_) std::this_thread::sleep_for(kPause);
    }
  }

  // Runs one prediction per instance at a time, with as many more in the queue.
  void Jobs() {
    const std::map<std::string, Tensor> inputs = MakeInputs(function(), given_);
    runtime::Pool pool(std::move(models_), static_cast<size_t>(options_.jobs));
    std::deque<std::future<runtime::Prediction>> waiting;
    const auto take = [&] {
      std::future<runtime::Prediction> future = std::move(waiting.front());
      waiting.pop_front();
      try {
        const runtime::Prediction prediction = future.get();
        const Clock::time_point begin = Clock::now();
        runtime::PredictTimings timings = prediction.timings;
        std::vector<RunResult::Output> outputs = Outputs(prediction);
        timings.marshal_out_ms += Milliseconds(begin, Clock::now());
        const double whole = timings.marshal_in_ms + timings.predict_ms + timings.marshal_out_ms;
        Take(std::move(outputs), timings, whole, {}, true,
             {prediction.fallback, prediction.ticket});
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
      runtime::LoadOptions load = options_.hints;
      load.units = result_.units;
      load.function = function().name;
      try {
        result_.operations =
            CompareOperations(runtime_, *program_, function(), MakeInputs(function(), given_), load,
                              {options_.timeout, LoadLimit()}, budgets_.all, diagnostics_);
      } catch (const std::exception&) {
        for (const Error& error : CurrentErrors()) Note(error);
      }
    }
    constexpr int64_t kMostNext = 5;
    if (!result_.outputs.empty() && by_tokens() && IsLanguageModel(function()))
      result_.next = LikelyNext(result_.outputs[0].tensor, kMostNext);
    if (!options_.output_folder.empty()) {
      const Trace::Span span(*trace_, "write", Trace::kPhase);
      WriteOutputs(options_.output_folder, result_.outputs, FrontendOf(path_).IsSource());
    }
    trace_->End();
    result_.phases = trace_->phases();
    result_.whole_ms = trace_->whole_ms();
  }

  const fs::path path_;
  const RunOptions& options_;
  Diagnostics& diagnostics_;
  const std::shared_ptr<Trace> trace_;
  RunResult result_;
  std::shared_ptr<const Program> program_;
  std::map<std::string, Tensor> given_;  // by name, including generated inputs
  std::shared_ptr<runtime::Runtime> runtime_;
  std::shared_ptr<CompiledModel> bundle_;  // null for the reference engine
  std::shared_ptr<engine::PreparedWeights> weights_ = std::make_shared<engine::PreparedWeights>();
  std::shared_ptr<runtime::Telemetry> telemetry_;
  std::shared_ptr<runtime::CircuitBreaker> breaker_;
  std::vector<std::unique_ptr<runtime::GuardedModel>> models_;
  std::optional<verify::StepResults> expected_;
  std::vector<verify::Compared> outside_;  // outputs outside the budget in the last prediction
  verify::Budgets budgets_;
  int64_t done_ = 0;
  double p50_ = 0;
  double busy_ms_ = 0;
  std::optional<Error> refusal_;
};

}  // namespace

RunResult Run(const fs::path& model, const RunOptions& options, Diagnostics& diagnostics) {
  return Runner(model, options, diagnostics).Run();
}

}  // namespace mlc::driver
