// tools/driver/timing_statistics.h - statistics of measured times, and warnings about their
// reliability.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/runtime/telemetry.h"

namespace mlc::driver {

// In milliseconds. Percentiles are nearest-rank, so each is a measured time. `deviation` is the
// sample standard deviation (n - 1), 0 for a single time.
struct Statistics {
  int64_t count = 0;
  double min = 0, mean = 0, deviation = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};
Statistics StatisticsOf(std::vector<double> times);  // all 0 for no times
Statistics StatisticsOf(const runtime::LatencySummary& summary);

// Maps names in reports ("p50") to fields of Statistics.
struct StatisticsField {
  const char* name;
  double Statistics::*value;
};
inline constexpr StatisticsField kStatisticsFields[] = {
    {"min", &Statistics::min}, {"mean", &Statistics::mean}, {"deviation", &Statistics::deviation},
    {"p50", &Statistics::p50}, {"p90", &Statistics::p90},   {"p95", &Statistics::p95},
    {"p99", &Statistics::p99}, {"max", &Statistics::max}};

// Returns reasons to doubt the statistics, each with the flag that helps: too few runs for the
// percentiles, a slow first run, a wide spread. `warmup`: number of preceding runs. Empty for a
// single run, which is not a benchmark.
std::vector<std::string> Doubts(const std::vector<double>& times, int64_t warmup);

}  // namespace mlc::driver
