// tools/mlc/run_timings.h - formats the measurements of runs as text.
#pragma once

#include <string>

#include "tools/driver/benchmark_report.h"
#include "tools/driver/unit_sweep.h"

namespace mlc::driver {

// Returns lines with times and warnings about them, planned devices, throughput, memory, failures
// and the breaker's state changes.
std::string MeasuredText(const BenchmarkResult& result, const BenchmarkOptions& options);
// Returns the operators that took longest, for a profiled run.
std::string ProfileText(const Trace& trace, int64_t predictions);
std::string BaselineText(const BaselineCheck& check, double tolerance);
std::string SweepText(const SweepResult& sweep);

}  // namespace mlc::driver
