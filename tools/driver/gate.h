// tools/driver/gate.h - gates: what a model on a runtime must show before it is relied on. Each is a few checks, and each
// check says pass, fail, or that nothing here can tell.
//
//   a  compiling and loading, again and again: memory, the cache of compiled models, the time to compile
//   b  one model: its schema, timeouts that end, the p99 budget, parity
//   c  the asked units against the CPU: speed, and the share of operations that they take
//   d  predictions for an hour: memory, success rate, numbers that stay
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/runtime/runtime.h"
#include "lib/runtime/worker.h"
#include "lib/verify/compare.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/import.h"
#include "tools/driver/runtimes.h"

namespace mlc {

// kNotApplicable is no pass: who asked for a gate wants to know.
enum class GateVerdict { kPass, kFail, kNotApplicable };
std::string_view Name(GateVerdict verdict);  // "pass", "fail", "not-applicable"

struct GateCheck {
  std::string name;  // "memory growth"
  GateVerdict verdict = GateVerdict::kNotApplicable;
  std::optional<double> value = {}, limit = {};  // where there are numbers
  std::string unit = {};                         // of both
  std::string text = {};              // a sentence's worth: what was found, or why nothing could be
  std::optional<int64_t> count = {};  // cycles or predictions that it is from
};
// Fails where one fails; passes where all pass, and there is one.
GateVerdict Together(const std::vector<GateCheck>& checks);

struct GateOptions {
  ImportOptions import;  // b: of the source; the model itself has its sizes alone
  Units units = Units::kReference;
  std::optional<std::string> function;  // absent: the model's default function
  // Of a prediction. One that takes longer hangs, and that is a check that fails.
  std::chrono::milliseconds timeout = std::chrono::minutes(1);
  std::chrono::milliseconds load_timeout = kLoadLimit;  // of a load or a compilation
  int64_t cycles = 10'000;                              // a
  int64_t iterations = 100;      // b, c: timed predictions, after a tenth of them
  std::optional<double> p99_ms;  // b
  std::filesystem::path source;  // b: what the package was compiled from; empty: not known
  double coverage_percent = 90;  // c
  std::chrono::milliseconds duration = std::chrono::hours(1);  // d
  // For tests; the process's memory, the steady clock.
  std::function<int64_t()> resident = {};
  std::function<std::chrono::steady_clock::time_point()> now = {};
};

// A model on a runtime.
struct GateSubject {
  std::filesystem::path model;  // as it was named: a package, or a bundle
  std::string function;         // what is judged of it
  int64_t bytes = 0;            // of all its files
  std::shared_ptr<Runtime> runtime;
  CompiledModel loaded;  // what it loads: the model, or what it compiled of it
  LoadOptions load;
  // The runtime is mlc's engine: comparing it with itself says nothing, and its results are exact.
  bool is_reference = false;
  std::shared_ptr<LoadedModel> reference;  // mlc's engine on the same model
  std::map<std::string, Tensor> inputs;    // made up
  Budget budget;                           // of what its precision may change
  // Owns what it refers to. By way of a cache of its own, which is empty at first. Not of a bundle, which is compiled.
  std::function<CompiledModel()> compiled;
};
// Error "usage" for a source model, those of Import and of the runtime.
GateSubject MakeGateSubject(const std::filesystem::path& model, const GateOptions& options,
                            Diagnostics& diagnostics);

// Memory may grow by so much.
inline constexpr double kGrowthPer1000Cycles = 100'000, kGrowthPer100Predictions = 10'000;
// A soak of few predictions sees nothing else.
inline constexpr double kGrowthOfAllocator = 256'000;
inline constexpr double kCacheHitsPercent = 90;
inline constexpr int64_t kCacheCycles = 10;  // of fewer, the first alone is more than may miss
// Compiling, p99, of packages of at most so many bytes.
struct CompileLimit {
  int64_t bytes;
  double seconds;
};
inline constexpr CompileLimit kCompileLimits[] = {{50'000'000, 5}, {500'000'000, 10}};
inline constexpr double kSpeedOfCpu = 0.7;  // p99 of the asked units to that of the CPU
inline constexpr double kSoakSuccessPercent = 99;

// What the runtime throws in a cycle or a prediction is a check that fails.
std::vector<GateCheck> GateA(const GateSubject& subject, const GateOptions& options);
// Error "usage" without p99_ms. Parity with the source is mlc's engine's on both, as verify has it.
std::vector<GateCheck> GateB(const GateSubject& subject, const GateOptions& options,
                             Diagnostics& diagnostics);
std::vector<GateCheck> GateC(const GateSubject& subject, const GateOptions& options);
std::vector<GateCheck> GateD(const GateSubject& subject, const GateOptions& options);

struct GateResult {
  std::filesystem::path model;
  std::string function;  // empty where the model could not be read
  std::string runtime;   // "mlc's engine", "Core ML"
  std::vector<GateCheck> checks;
};
// Of gate 'a', ..., 'd' on each of `models`; one that cannot be read or loaded has a check that fails. Error "usage" for
// other letters and for source models, "no-coreml".
std::vector<GateResult> RunGate(char gate, const std::vector<std::filesystem::path>& models,
                                const GateOptions& options, Diagnostics& diagnostics);
// Of gate c, one model that is as fast as asked is enough; else all must pass.
GateVerdict Together(char gate, const std::vector<GateResult>& results);

}  // namespace mlc
