// tools/driver/run.h - runs a function of any model and measures it.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/analysis/generated_inputs.h"
#include "lib/engine/engine.h"
#include "lib/runtime/model_pool.h"
#include "lib/verify/layer_bisection.h"
#include "tools/driver/import.h"
#include "tools/driver/run_tokens.h"
#include "tools/driver/timing_statistics.h"
#include "tools/driver/trace.h"

namespace mlc::driver {

struct RunOptions {
  ImportOptions import;
  std::optional<std::string> function;   // absent: the program's default function
  std::map<std::string, Tensor> inputs;  // by the source's name or the MIL name
  // Further inputs as "NAME=FILE". Names may contain '='; the longest prefix that is an
  // input's name is used.
  std::vector<std::string> input_files;
  analysis::GeneratedInputOptions make_up;  // for inputs that are not given
  // Tokens to run instead of inputs. The only output of a language model is then logits [tokens,
  // vocabulary]; the outputs of an encoder are hidden [tokens, width], pooled [width] or those of
  // its head, without the batch dimension.
  std::vector<int64_t> tokens;
  bool step = false;  // one token at a time; the model keeps its context in its states
  // Absent: exact for a source model, faithful for Core ML's formats.
  std::optional<engine::EngineOptions::Arithmetic> arithmetic;
  int64_t iterations = 1, warmup = 0;
  std::optional<std::chrono::milliseconds> timeout;  // aborts a prediction that takes longer
  // For each of: compiling with Core ML, loading with it, and requesting its compute plan. Absent:
  // ten minutes.
  std::optional<std::chrono::milliseconds> load_timeout;
  std::optional<runtime::Units> units;  // absent: DefaultUnits()
  bool sweep = false;                   // read by the caller, which calls Sweep() instead of Run()
  bool require_units = false;  // error "check-failed" if operations are planned for other devices
  runtime::LoadOptions hints;  // Run sets its units, function and observe
  runtime::BreakerOptions breaker;
  int64_t jobs = 1;  // concurrent predictions, each on an instance of the model
  std::optional<std::chrono::milliseconds> soak;  // run for this long instead of `iterations`
  bool warm_load = false;                         // load a second time and measure it
  // "reference" for the reference engine, or another model, whose outputs are compared with the
  // model's.
  std::string compare;
  bool operations = false;  // compare intermediate results, too
  // As accepted by ParseBudgets; absent: by the program's precision.
  std::optional<std::string> budget;
  bool profile = false;  // measure operations
  // Records phases, and operations if `profile` is set; may be null.
  std::shared_ptr<Trace> trace;
  bool trace_predictions = false;  // record predictions in `trace`, too
  // Called after each prediction, on the thread that called Run, with the number of finished and of
  // all predictions (0: unknown) and the median time so far.
  std::function<void(int64_t done, int64_t of, double p50_ms)> progress;
  std::filesystem::path output_folder;  // writes each output as NAME.npy; empty: no files
  bool bundles_only = false;            // accept only a .mlmodelc
};

// Measured times: individual values, or a histogram for soaks, which are long.
struct Times {
  std::vector<double> times;
  runtime::LatencyHistogram together;
  void Add(double ms, bool long_run) { long_run ? together.Add(ms) : times.push_back(ms); }
  Statistics statistics() const;
};

struct RunResult {
  std::shared_ptr<const Program> program;
  const Function* function = nullptr;
  // The arithmetic of the reference engine.
  engine::EngineOptions::Arithmetic arithmetic = engine::EngineOptions::Arithmetic::kFaithful;
  runtime::Units units = runtime::Units::kReference;  // as requested
  std::string measures = "predictions";               // or "prompts", "tokens one by one"
  int64_t jobs = 1, warmup = 0;
  runtime::Capabilities machine;
  struct Output {
    const Port* port;
    Tensor tensor;     // in the type declared by the source
    std::string name;  // the source's name, used in reports
    // Where it was written, named as in the model that ran; empty: not written.
    std::filesystem::path file;
  };
  std::vector<Output> outputs;  // from the last successful prediction; empty if all failed
  bool of_fallback = false;     // whether the outputs come from the reference engine as a fallback
  std::map<std::string, analysis::InputRange> generated;  // by MIL name
  std::vector<NextToken> next;       // for a language model that was given tokens
  std::optional<double> compile_ms;  // by Core ML; absent for bundles
  double read_ms = 0;                // import by mlc, which is needed with Core ML, too
  double load_ms = 0;                // first load; includes reading for the reference engine
  std::optional<double> warm_load_ms;
  // Per iteration computed by the model itself. `overhead` is the time of Run itself, not included
  // in the other three.
  Times marshal_in, predict, marshal_out, overhead;
  std::vector<double> token_ms;  // with RunOptions::step, for each token of all iterations
  double wall_ms = 0;            // for these iterations
  // Planned devices of the operations; if empty, `no_placements` gives the reason.
  std::vector<runtime::OperationPlacement> placements;
  std::string no_placements;
  // Failed predictions, numbered from 0 including the warmup: the first 1000.
  struct Failed {
    int64_t prediction;
    Error error;
  };
  std::vector<Failed> failures;
  runtime::Snapshot
      telemetry;  // covers all predictions including the warmup; with RunOptions::step, all tokens
  runtime::CircuitBreaker::State breaker = runtime::CircuitBreaker::State::kClosed;
  std::vector<runtime::CircuitBreaker::Change> breaker_changes;
  std::optional<runtime::PoolStatistics> queue;  // with RunOptions::jobs
  // With RunOptions::compare: the last prediction outside the budget, otherwise the last.
  std::vector<verify::Compared> compared;
  std::string compared_with;
  std::optional<verify::Layers> operations;            // with RunOptions::operations
  std::vector<std::pair<std::string, double>> phases;  // name, milliseconds
  double whole_ms = 0;                                 // sum of the phases
};
// Returns the operations that are planned for another device than requested, or whose device is
// unknown.
std::vector<const runtime::OperationPlacement*> Elsewhere(const RunResult& result);

// Throws Error "usage" for options that contradict each other or the model, "bad-name",
// "bad-input", "no-coreml", and the errors of Import and of the runtime. With several predictions,
// failures of a single prediction (time, memory, the runtime's own errors) are recorded, and the
// run continues.
RunResult Run(const std::filesystem::path& model, const RunOptions& options,
              Diagnostics& diagnostics);

// "exact", "faithful".
std::string_view Name(engine::EngineOptions::Arithmetic arithmetic);
// Descriptions for display: "exact: computes in fp32", "faithful: rounds fp16 results to fp16".
std::string_view Describe(engine::EngineOptions::Arithmetic arithmetic);
// Error "usage" for hints that only Core ML supports, if the units select the reference engine.
void RefuseHints(const runtime::LoadOptions& hints, runtime::Units units);
// Error "usage" unless the path is a compiled bundle.
void RequireBundle(const std::filesystem::path& path);

}  // namespace mlc::driver
