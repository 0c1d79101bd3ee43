// tools/mlc/measured.h - what was measured of runs, for people.
#pragma once

#include <string>

#include "tools/driver/run_report.h"
#include "tools/driver/sweep.h"

namespace mlc {

// Times, doubts about them, where operations are meant to run, throughput and memory, failures and what the breaker
// made of them: lines, each with its end.
std::string MeasuredText(const RunResult& result, const RunOptions& options);
// The operators that took longest, of a run that was profiled.
std::string ProfileText(const Trace& trace, int64_t predictions);
std::string BaselineText(const BaselineCheck& check, double tolerance);
std::string SweepText(const SweepResult& sweep);

}  // namespace mlc
