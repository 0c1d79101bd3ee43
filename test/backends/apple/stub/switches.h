// switches.h - the faults of the stub: words in MLC_STUB, separated by commas, each SWITCH or
// SWITCH=VALUE. README.md lists them. An unknown word ends the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace mlc::stub {

// Replaces MLC_STUB and restarts the count of predictions at 1.
void Set(const std::string& words);

bool Is(std::string_view name);
// Returns the value of the switch, or `otherwise`.
std::string Text(std::string_view name, std::string_view otherwise);
// Returns whether the switch is set with this number; a switch may be set several times.
bool At(std::string_view name, int64_t number);

// Sleeps for the number of milliseconds given by the switch; returns at once if it is not set.
void Linger(std::string_view name);

int64_t NextPrediction();
// Blocks for late-write-ms milliseconds or until Release(); without late-write-ms, only until
// Release().
void Hang();
// Resumes all hanging calls.
void Release();

// Counts of live objects and of violations.
struct Counts {
  std::atomic<int64_t> arrays{0}, models{0}, states{0}, values{0}, buffers{0};
  std::atomic<int64_t> hanging{0}, disturbed{0};  // inputs of a hanging prediction that changed
};
Counts& Counted();

}  // namespace mlc::stub
