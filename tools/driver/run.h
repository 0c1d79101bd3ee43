// tools/driver/run.h - executing a function of any model: inputs in, outputs as the source declares them.
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
#include "lib/runtime/pool.h"
#include "lib/verify/layers.h"
#include "tools/driver/import.h"
#include "tools/driver/statistics.h"
#include "tools/driver/tokens.h"
#include "tools/driver/trace.h"

namespace mlc {

struct RunOptions {
  ImportOptions import;
  std::optional<std::string> function;   // absent: the program's default function
  std::map<std::string, Tensor> inputs;  // by the source's name or MIL's
  // "NAME=FILE", for further ones: names may hold '=', and the longest that is an input counts.
  std::vector<std::string> input_files;
  GeneratedInputOptions make_up;  // of inputs that are not given
  // In place of inputs. Of a language model the only output is logits [tokens, vocabulary]; of an
  // encoder there are hidden [tokens, width], pooled [width] or those of its head, without the batch.
  std::vector<int64_t> tokens;
  bool step = false;  // one token after the other, through the states
  // Absent: exact for a source model, faithful for what Core ML runs.
  std::optional<EngineOptions::Arithmetic> arithmetic;
  int64_t iterations = 1, warmup = 0;
  std::optional<std::chrono::milliseconds> timeout;  // of one prediction, which then ends
  // Of compiling by Core ML, of loading there, and of asking it for a plan. Absent: ten minutes.
  std::optional<std::chrono::milliseconds> load_timeout;
  std::optional<Units> units;  // absent: DefaultUnits()
  bool sweep = false;          // for the caller: Sweep() instead of Run()
  bool require_units = false;  // error "check-failed" where operations are meant for other devices
  LoadOptions hints;           // its units, function and observe are Run's own
  BreakerOptions breaker;
  int64_t jobs = 1;  // predictions at a time, each on an instance of the model
  std::optional<std::chrono::milliseconds> soak;  // in place of iterations: for so long
  bool warm_load = false;                         // load a second time, and say how long that takes
  // "reference", mlc's engine, or another model: the outputs are compared with what that computes.
  std::string compare;
  bool operations = false;            // compare all results on the way too
  std::optional<std::string> budget;  // as ParseBudgets takes it; absent: the program's precision's
  bool profile = false;               // what operations take
  // Where phases are put down, and operations under `profile`; null: nobody looks.
  std::shared_ptr<Trace> trace;
  bool trace_predictions = false;  // there too
  // Called after each prediction, on the thread that began the run, with how many there were, of how many (0: unknown),
  // and their median so far.
  std::function<void(int64_t done, int64_t of, double p50_ms)> progress;
  std::filesystem::path output_folder;  // every output as NAME.npy; empty: nothing is written
  bool bundles_only = false;            // refuse anything but a .mlmodelc
};

// Times that were measured: each, or, of a soak, which is long, what they are together.
struct Times {
  std::vector<double> times;
  LatencyHistogram together;
  void Add(double ms, bool long_run) { long_run ? together.Add(ms) : times.push_back(ms); }
  Statistics statistics() const;
};

struct RunResult {
  std::shared_ptr<const Program> program;
  const Function* function = nullptr;
  EngineOptions::Arithmetic arithmetic = EngineOptions::Arithmetic::kFaithful;  // of mlc's engine
  Units units = Units::kReference;                                              // asked for
  std::string measures = "predictions";  // or "prompts", "tokens one by one"
  int64_t jobs = 1, warmup = 0;
  Capabilities machine;
  struct Output {
    const Port* port;
    Tensor tensor;               // in the type that the source declares
    std::string name;            // the one of the source, which it is shown under
    std::filesystem::path file;  // where it was written, under the name of what ran; else empty
  };
  std::vector<Output> outputs;  // of the last prediction that did not fail; none where all did
  bool of_fallback = false;     // mlc's engine made them in the model's place
  std::map<std::string, InputRange> generated;  // by MIL name
  std::vector<NextToken> next;                  // of a language model that was given tokens
  std::optional<double> compile_ms;             // of Core ML, where the model was no bundle
  double read_ms = 0;  // the model, by mlc, which does so beside Core ML too
  double load_ms = 0;  // the first time; of mlc's engine with reading
  std::optional<double> warm_load_ms;
  // Of each iteration that the model itself did. Overhead: what the run adds, the rest of the whole.
  Times marshal_in, predict, marshal_out, overhead;
  std::vector<double> token_ms;  // with RunOptions::step, of each token of all iterations
  double wall_ms = 0;            // of these iterations
  // Where operations are meant to run; none: `no_placements` says why nobody knows.
  std::vector<OperationPlacement> placements;
  std::string no_placements;
  // Predictions that failed, by number from 0, those before the measured ones too: the first 1000.
  struct Failed {
    int64_t prediction;
    Error error;
  };
  std::vector<Failed> failures;
  Snapshot
      telemetry;  // of all predictions, of tokens of all steps, those before the measured ones too
  CircuitBreaker::State breaker = CircuitBreaker::State::kClosed;
  std::vector<CircuitBreaker::Change> breaker_changes;
  std::optional<PoolStatistics> queue;  // with RunOptions::jobs
  std::vector<Compared>
      compared;  // with RunOptions::compare; the last prediction that was outside, if one was
  std::string compared_with;
  std::optional<Layers> operations;                    // with RunOptions::operations
  std::vector<std::pair<std::string, double>> phases;  // name, milliseconds
  double whole_ms = 0;                                 // what the phases add up to
};
// Operations that are not meant for the device that was asked for, or nobody knows for which.
std::vector<const OperationPlacement*> Elsewhere(const RunResult& result);

// Error "usage" for options that contradict each other or the model, "bad-name", "bad-input",
// "no-coreml", and those of Import and of the runtime. Of several predictions those that fail for reasons of the run
// (time, memory, the runtime's own) are put down, and the others go on.
RunResult Run(const std::filesystem::path& model, const RunOptions& options,
              Diagnostics& diagnostics);

// "exact", "faithful".
std::string_view Name(EngineOptions::Arithmetic arithmetic);
// For people: "exact: computes in fp32", "faithful: rounds fp16 results to fp16".
std::string_view Describe(EngineOptions::Arithmetic arithmetic);
// Error "usage" for what is said to Core ML alone, where the units are mlc's engine.
void RefuseHints(const LoadOptions& hints, Units units);
// Error "usage" for anything but a compiled bundle.
void RequireBundle(const std::filesystem::path& path);

}  // namespace mlc
