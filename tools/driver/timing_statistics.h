// tools/driver/timing_statistics.h - statistics of measured times, and warnings about their
// reliability.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/runtime/telemetry.h"

namespace mlc::driver {

// In milliseconds. The deviation of a single time is 0.
using Statistics = runtime::LatencySummary;
// Percentiles are nearest-rank, so each is a measured time. All fields are 0 for no times.
Statistics StatisticsOf(std::vector<double> times);

// Maps names in reports ("p50") to fields of Statistics.
struct StatisticsField {
  const char* name;
  double Statistics::*value;
};
inline constexpr StatisticsField kStatisticsFields[] = {
    {"min", &Statistics::min}, {"mean", &Statistics::mean}, {"deviation", &Statistics::stddev},
    {"p50", &Statistics::p50}, {"p90", &Statistics::p90},   {"p95", &Statistics::p95},
    {"p99", &Statistics::p99}, {"max", &Statistics::max}};

// How many times slower one sequence of times is than another: the ratio of the means, and its
// standard deviation, propagated from theirs as hyperfine does.
struct TimeRatio {
  double mean = 0, deviation = 0;
};
TimeRatio RatioOf(const Statistics& slow, const Statistics& fast);

// Returns reasons to doubt the statistics, each with the flag that helps: too few runs for the
// percentiles, a slow first run, a wide spread. `warmup`: number of preceding runs. Empty for a
// single run, which is not a benchmark.
std::vector<std::string> Doubts(const std::vector<double>& times, int64_t warmup);

}  // namespace mlc::driver
