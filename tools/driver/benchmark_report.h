// tools/driver/benchmark_report.h - reports of runs: JSON documents, histories and baselines.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/driver/benchmark.h"

namespace mlc::driver {

// Returns a JSON object with all measurements of a run: requested and actual units, machine, times,
// phases, failures, breaker, memory, comparison. Times are in milliseconds, with the fields of
// kStatisticsFields.
std::string RunJson(const BenchmarkResult& result);

// Appends a line to a file of JSON lines: RunJson with the model's name, its content hash (for
// packages and bundles), mlc's version and the time (UTC). Several processes may append at once.
// Error "file-io".
void AppendHistory(const std::filesystem::path& file, const std::filesystem::path& model,
                   const BenchmarkResult& result);

// Returns the rate of the measured predictions; nothing if predictions failed or fell back.
std::optional<double> PredictionsPerSecond(const BenchmarkResult& result);

// Returns the content hash of a package or bundle, "" for other formats.
std::string HashOf(const std::filesystem::path& model);
// Checks the time of a history line, which decides which line is the newest. Error "bad-file" if it
// is not in the format that AppendHistory writes, or in the future.
void CheckResultTime(std::string_view text);

// An earlier run to compare with.
struct Baseline {
  std::string measures = "predictions";
  int64_t jobs = 1;
  std::string model_hash, machine;  // empty: not in the file
  std::string units, function;
  Statistics predict;
};
// Reads a document of `run --json`, or the lines of a history, without those that contain no
// measurement. Error "file-io"; "bad-file" if the file is neither.
std::vector<Baseline> ReadBaselines(const std::filesystem::path& file);

struct BaselineCheck {
  struct Row {
    std::string name;  // "p50"
    double before = 0, now = 0;
    bool judged = false, within = true;
  };
  std::vector<Row> rows;
  std::vector<std::string>
      notes;  // reasons to doubt the comparison: another package, another machine
  bool within = true;
};
// Compares with the last baseline of the same units, function, jobs and kind of prediction,
// preferably of the same model and machine. Only the median is judged: it may exceed the baseline
// by `tolerance` (0.05: 5 %). The check fails if the baseline is of another package or machine,
// unless `force` is set. Error "bad-file" if there is no such baseline.
BaselineCheck CheckBaseline(const std::vector<Baseline>& all, const std::filesystem::path& model,
                            const BenchmarkResult& result, double tolerance, bool force);

}  // namespace mlc::driver
