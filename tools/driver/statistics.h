// tools/driver/statistics.h - what many measured times say, and when they say little.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/runtime/telemetry.h"

namespace mlc {

// Of times in milliseconds. Percentiles are nearest-rank, so each is a time that was measured; `deviation` is that of
// the sample (n - 1), 0 for one time.
struct Statistics {
  int64_t count = 0;
  double min = 0, mean = 0, deviation = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};
Statistics StatisticsOf(std::vector<double> times);  // of none: all 0
Statistics StatisticsOf(const LatencySummary& summary);

// A field of Statistics by the name that reports have: "p50".
struct StatisticsField {
  const char* name;
  double Statistics::*value;
};
inline constexpr StatisticsField kStatisticsFields[] = {
    {"min", &Statistics::min}, {"mean", &Statistics::mean}, {"deviation", &Statistics::deviation},
    {"p50", &Statistics::p50}, {"p90", &Statistics::p90},   {"p95", &Statistics::p95},
    {"p99", &Statistics::p99}, {"max", &Statistics::max}};

// Why figures of these times should not be trusted, each with the flag that helps: too few runs for the percentiles, a
// slow first run, times that scatter. `warmup`: how many runs went before. None of one run: nobody asked for figures.
std::vector<std::string> Doubts(const std::vector<double>& times, int64_t warmup);

}  // namespace mlc
