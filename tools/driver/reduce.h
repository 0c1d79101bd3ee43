// tools/driver/reduce.h - shrinks a model that shows a fault to a minimal one that still shows it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "lib/support/error.h"

namespace mlc::driver {

struct ReduceProgress {
  std::string step;        // "operations of function \"main\""
  int64_t operations = 0;  // of the smallest version so far
  int64_t tests = 0;
};

struct ReduceOptions {
  std::filesystem::path script;  // called as SCRIPT FILE; exits with 0 if FILE shows the fault
  std::chrono::milliseconds script_timeout{60'000};  // beyond it, FILE does not show the fault
  std::optional<std::chrono::milliseconds> time_limit;
  std::filesystem::path data_root;  // as in ImportOptions
  std::filesystem::path output;
  bool force = false;  // replace what exists at `output`
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(const ReduceProgress&)> progress = {};  // may be empty
};

struct ReduceResult {
  int64_t operations_before = 0, operations = 0;
  int64_t tests = 0;  // runs of the script
  enum class End { kMinimal, kTimeLimit, kInterrupted } end = End::kMinimal;
};

// Writes the smallest version found to `output`, also if the time is up or the run is interrupted.
// No single function, output, operation, constant, attribute or size that it can change may be
// reduced further. Versions that mlc does not import are not tested, unless it does not import the
// model itself. Error "not-interesting" if the script rejects the model; errors of ReadEditable,
// TestScript and WritePackage.
ReduceResult Reduce(const std::filesystem::path& model, const ReduceOptions& options,
                    Diagnostics& diagnostics);

}  // namespace mlc::driver
