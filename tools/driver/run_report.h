// tools/driver/run_report.h - what was measured, written down: for programs, for the next run, for the manifest.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/driver/run.h"

namespace mlc {

// A JSON object of everything that is measured of a run: units asked for and met, machine, times, phases, failures,
// breaker, memory, comparison. Times are of milliseconds and have kStatisticsFields.
std::string RunJson(const RunResult& result);

Statistics PredictTimes(const RunResult& result);

// Appends a line to a file of JSON lines: RunJson with the model's name, its content hash where it is a package or
// bundle, the version of mlc and the time (UTC). Several processes may append at once. Error "file-io".
void AppendHistory(const std::filesystem::path& file, const std::filesystem::path& model,
                   const RunResult& result);

// Of the predictions that were measured; nothing where others failed or fell back in between.
std::optional<double> PredictionsPerSecond(const RunResult& result);

// The hash of the content of a package or bundle; "" of others.
std::string HashOf(const std::filesystem::path& model);
// Error "bad-file" for a time of a line that AppendHistory did not write, or that has not come yet: by their times the
// newest line counts.
void CheckResultTime(std::string_view text);

// What a run is held against.
struct Baseline {
  std::string measures = "predictions";
  int64_t jobs = 1;
  std::string model_hash, machine;  // empty: the file does not say
  std::string units, function;
  Statistics predict;
};
// A document of `run --json`, or the lines of a history, but those that measured nothing. Error "file-io"; "bad-file"
// where the file is neither.
std::vector<Baseline> ReadBaselines(const std::filesystem::path& file);

struct BaselineCheck {
  struct Row {
    std::string name;  // "p50"
    double before = 0, now = 0;
    bool judged = false, within = true;
  };
  std::vector<Row> rows;
  std::vector<std::string>
      notes;  // what makes the comparison doubtful: another package, another machine
  bool within = true;
};
// With the last of the same units, function, jobs and kind of prediction, of this very model and machine if there is one. The
// median is judged: it may be `tolerance` (0.05: 5 %) more than before. Others are shown. One of another package or machine
// is not within, unless `force`. Error "bad-file" where there is none.
BaselineCheck CheckBaseline(const std::vector<Baseline>& all, const std::filesystem::path& model,
                            const RunResult& result, double tolerance, bool force);

}  // namespace mlc
