// lib/support/progress.h - how far long work is.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace mlc {

inline constexpr double kUnknownShare = -1;

struct ProgressStep {
  std::string_view name;       // what is done: "writing weights"
  double share = 0;            // how much of it, from 0 to 1, or kUnknownShare
  uint64_t done = 0, of = 0;   // the same as numbers of `unit`; 0 of 0: unknown
  std::string_view unit = {};  // "bytes", "samples", "tokens"
  std::string_view item = {};  // what is being worked on, e.g. the name of a weight
};

// The step when `done` of `of` items are finished.
inline ProgressStep StepOf(std::string_view name, uint64_t done, uint64_t of, std::string_view unit,
                           std::string_view item = {}) {
  return {name, of > 0 ? static_cast<double>(done) / static_cast<double>(of) : 1, done, of, unit,
          item};
}

// Called now and then while work goes on. Calls do not overlap, but may come from different threads.
using Progress = std::function<void(const ProgressStep&)>;

}  // namespace mlc
