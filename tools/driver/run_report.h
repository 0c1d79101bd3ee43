// tools/driver/run_report.h - what was measured, written down: for programs, for the next run, for the manifest.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/driver/run.h"

namespace mlc {

// A JSON object of everything that is measured of a run: units asked for and met, machine, times, phases, failures,
// breaker, memory, comparison. Times are of milliseconds and have kStatisticsFields.
std::string RunJson(const RunResult& result);

// Where the predictions' times are: of a soak in the telemetry.
Statistics PredictTimes(const RunResult& result);

// Appends a line to a file of JSON lines: RunJson with the model's name, its content hash where it is a package or
// bundle, the version of mlc and the time (UTC). Several processes may append at once. Error "file-io".
void AppendHistory(const std::filesystem::path& file, const std::filesystem::path& model,
                   const RunResult& result);

// What a run is held against.
struct Baseline {
  std::string model_hash, machine;  // empty: the file does not say
  std::string units, function;
  Statistics predict;
};
// A document of `run --json`, or a history: its last line of these units and this function. Error "bad-file" where the
// file is neither, or has none.
Baseline ReadBaseline(const std::filesystem::path& file, Units units, const std::string& function);

struct BaselineCheck {
  struct Row {
    std::string name;  // "p50"
    double before = 0, now = 0;
    bool judged = false, within = true;
  };
  std::vector<Row> rows;
  std::vector<std::string> notes;  // what makes the comparison doubtful: another package, another machine
  bool within = true;
};
// The median is judged: it may be `tolerance` (0.05: 5 %) more than before. Others are shown.
BaselineCheck CheckBaseline(const Baseline& before, const std::filesystem::path& model,
                            const RunResult& result, double tolerance);

}  // namespace mlc
