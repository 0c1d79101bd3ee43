// tools/driver/benchmark.h - measures a model: repeated and concurrent predictions, soaks,
// comparisons with another model.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/runtime/model_pool.h"
#include "lib/verify/layer_comparison.h"
#include "tools/driver/run.h"
#include "tools/driver/timing_statistics.h"
#include "tools/driver/trace.h"

namespace mlc::driver {

struct BenchmarkOptions : RunOptions {
  int64_t iterations = 1, warmup = 0;
  bool sweep = false;          // read by the caller, which calls Sweep() instead of Benchmark()
  bool require_units = false;  // error "check-failed" if operations are planned for other devices
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
  // Called after each prediction, on the thread that called Benchmark, with the number of finished
  // and of all predictions (0: unknown) and the median time so far.
  std::function<void(int64_t done, int64_t of, double p50_ms)> progress;
};

// Measured times: individual values, or a histogram for soaks, which are long.
struct Times {
  std::vector<double> times;
  runtime::LatencyHistogram together;
  void Add(double ms, bool long_run) { long_run ? together.Add(ms) : times.push_back(ms); }
  Statistics statistics() const;
};

// The outputs are those of the last successful prediction; there are none if all failed.
struct BenchmarkResult : RunResult {
  std::string measures = "predictions";  // or "prompts", "texts", "tokens one by one"
  int64_t jobs = 1, warmup = 0;
  runtime::Capabilities machine;
  bool of_fallback = false;  // whether the outputs come from the reference engine as a fallback
  std::optional<double> compile_ms;  // by Core ML; absent for bundles
  double read_ms = 0;                // import by mlc, which is needed with Core ML, too
  double load_ms = 0;                // first load; includes reading for the reference engine
  std::optional<double> warm_load_ms;
  // Per iteration computed by the model itself. `overhead` is the time of the tool itself, not
  // included in the other three.
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
  std::optional<runtime::PoolStatistics> queue;  // with BenchmarkOptions::jobs
  // With BenchmarkOptions::compare: the last prediction outside the budget, otherwise the last.
  std::vector<verify::Compared> compared;
  std::string compared_with;
  std::optional<verify::Layers> operations;            // with BenchmarkOptions::operations
  std::vector<std::pair<std::string, double>> phases;  // name, milliseconds
  double whole_ms = 0;                                 // sum of the phases
};
// Returns the operations that are planned for another device than requested, or whose device is
// unknown.
std::vector<const runtime::OperationPlacement*> Elsewhere(const BenchmarkResult& result);

// Throws the errors of Run. With several predictions, failures of a single prediction (time,
// memory, the runtime's own errors) are recorded, and the benchmark continues.
BenchmarkResult Benchmark(const std::filesystem::path& model, const BenchmarkOptions& options,
                          Diagnostics& diagnostics);

// Benchmarks two models on the same inputs, by the names of the source, with their predictions in
// turn, so that what slows the machine down slows both. `progress` counts those of the first.
std::array<BenchmarkResult, 2> BenchmarkPair(const std::filesystem::path& a,
                                             const std::filesystem::path& b,
                                             const BenchmarkOptions& options,
                                             Diagnostics& diagnostics);

}  // namespace mlc::driver
