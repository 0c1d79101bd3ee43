// tools/driver/gate.h - gates: acceptance tests of a model on a runtime. Each consists of a few
// checks that pass, fail, or are not applicable.
//
//   a  repeated compiling and loading: memory, the cache of compiled models, compile time
//   b  one model: schema, enforced timeouts, the p99 budget, parity
//   c  the requested units against the CPU: speed, and the share of operations that they run
//   d  predictions for an hour: memory, success rate, stable results
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

namespace mlc::driver {

// kNotApplicable does not count as a pass.
enum class GateVerdict { kPass, kFail, kNotApplicable };
std::string_view Name(GateVerdict verdict);  // "pass", "fail", "not-applicable"

struct GateCheck {
  std::string name;  // "memory growth"
  GateVerdict verdict = GateVerdict::kNotApplicable;
  std::optional<double> value = {}, limit = {};  // absent for checks without figures
  std::string unit = {};                         // unit of `value` and `limit`
  std::string text = {};  // one sentence: the finding, or why the check is not applicable
  std::optional<int64_t> count = {};  // cycles or predictions measured
};
// Fails if any check fails; passes if there are checks and all of them pass.
GateVerdict Together(const std::vector<GateCheck>& checks);

struct GateOptions {
  ImportOptions import;  // gate b: for the source; only the sizes apply to the model
  runtime::Units units = runtime::Units::kReference;
  std::optional<std::string> function;  // absent: the model's default function
  // Limit for one prediction. A prediction that exceeds it is a failed check.
  std::chrono::milliseconds timeout = std::chrono::minutes(1);
  std::chrono::milliseconds load_timeout = kLoadLimit;  // for a load or a compilation
  int64_t cycles = 10'000;                              // gate a
  // Gates b and c: timed predictions; a tenth as many are run first as warmup.
  int64_t iterations = 100;
  std::optional<double> p99_ms;  // gate b
  // Gate b: the model that the package was compiled from; empty: unknown.
  std::filesystem::path source;
  double coverage_percent = 90;                                // gate c
  std::chrono::milliseconds duration = std::chrono::hours(1);  // gate d
  // Replaced in tests; by default the process's resident memory and the steady clock.
  std::function<int64_t()> resident = {};
  std::function<std::chrono::steady_clock::time_point()> now = {};
};

// A model on a runtime.
struct GateSubject {
  std::filesystem::path model;  // a package or a bundle, as given by the user
  std::string function;         // the function under test
  int64_t bytes = 0;            // total size of the model's files
  std::shared_ptr<runtime::Runtime> runtime;
  CompiledModel loaded;  // the model itself, or the bundle compiled from it
  runtime::LoadOptions load;
  // True if the runtime is the reference engine: its results are exact, and comparing it with
  // itself proves nothing.
  bool is_reference = false;
  std::shared_ptr<runtime::LoadedModel> reference;  // the same model on the reference engine
  std::map<std::string, Tensor> inputs;             // generated
  verify::Budget budget;                            // for the precision of the model
  // For operations that the units cannot run: the rule of placement, by the name of the result.
  std::map<std::string, std::string> refused;
  // Compiles the model with a separate cache, initially empty. Owns what it refers to. Null for
  // bundles, which are already compiled.
  std::function<CompiledModel()> compiled;
};

// Limits on memory growth, in bytes.
inline constexpr double kGrowthPer1000Cycles = 100'000, kGrowthPer100Predictions = 10'000;
// Allocator noise in bytes, which dominates soaks with few predictions.
inline constexpr double kGrowthOfAllocator = 256'000;
inline constexpr double kCacheHitsPercent = 90;
// With fewer, the first cycle alone exceeds the allowed misses.
inline constexpr int64_t kCacheCycles = 10;
// The limit on the p99 compile time of packages of at most `bytes`.
struct CompileLimit {
  int64_t bytes;
  double seconds;
};
inline constexpr CompileLimit kCompileLimits[] = {{50'000'000, 5}, {500'000'000, 10}};
inline constexpr double kSpeedOfCpu = 0.7;  // p99 on the requested units relative to the CPU
inline constexpr double kSoakSuccessPercent = 99;

// Errors that the runtime throws in a cycle or a prediction become failed checks.
std::vector<GateCheck> GateA(const GateSubject& subject, const GateOptions& options);
// Error "usage" without p99_ms. Parity with the source is judged like `mlc verify`, with both
// models on the reference engine.
std::vector<GateCheck> GateB(const GateSubject& subject, const GateOptions& options,
                             Diagnostics& diagnostics);
std::vector<GateCheck> GateC(const GateSubject& subject, const GateOptions& options);
std::vector<GateCheck> GateD(const GateSubject& subject, const GateOptions& options);

struct GateResult {
  std::filesystem::path model;
  std::string function;  // empty if the model could not be read
  std::string runtime;   // "mlc's engine", "Core ML"
  std::vector<GateCheck> checks;
};
// Runs gate 'a', 'b', 'c' or 'd' on each of `models`; a model that cannot be read or loaded gets a
// failed check. Error "usage" for other letters and for source models; Error "no-coreml".
std::vector<GateResult> RunGate(char gate, const std::vector<std::filesystem::path>& models,
                                const GateOptions& options, Diagnostics& diagnostics);
// Gate c passes if one model passes; the other gates require all to pass.
GateVerdict Together(char gate, const std::vector<GateResult>& results);

}  // namespace mlc::driver
