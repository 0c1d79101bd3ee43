// switches.h - how the stub misbehaves: words of MLC_STUB, separated by commas, each SWITCH or SWITCH=VALUE. README.md lists
// them. A word that is unknown ends the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace mlc::stub {

// In the place of MLC_STUB; predictions are counted from 1 again.
void Set(const std::string& words);

bool Is(std::string_view name);
// The value of the switch, or `otherwise`.
std::string Text(std::string_view name, std::string_view otherwise);
// Whether the switch is given with this number; it may be given several times.
bool At(std::string_view name, int64_t number);

// Sleeps for as many milliseconds as the switch says; returns at once where it is not given.
void Linger(std::string_view name);

int64_t NextPrediction();
// Waits for as long as late-write-ms says, or for Release(); without late-write-ms for Release() alone.
void Hang();
// Lets everything that hangs go on.
void Release();

// Objects that are alive, and what should not have been seen.
struct Counts {
  std::atomic<int64_t> arrays{0}, models{0}, states{0}, values{0}, buffers{0};
  std::atomic<int64_t> hanging{0},
      disturbed{0};  // inputs of a prediction that changed while it hung
};
Counts& Counted();

}  // namespace mlc::stub
