#include "test/backends/apple/stub/switches.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

namespace mlc::stub {
namespace {

constexpr std::array kSwitches = {
    "pad-arrays",    "pad-outputs",    "offset-outputs",  "mutable-strides",  "moved-bytes",
    "no-memory",     "missing-output", "wrong-shape",     "wrong-type",       "wrong-kind",
    "wrong-numbers", "handler-thread", "delete-compiled", "compile-fails",    "compile-throws",
    "compile-hangs", "load-fails",     "load-throws",     "missing-function", "throw-at",
    "throw-cpp-at",  "error-at",       "hang-at",         "late-write-ms",    "nil-devices",
    "cpu-ms",        "device-ms",      "nil-cost",        "folded-op",        "nan-cost",
    "no-plan",       "cpu-op",         "no-gpu",          "no-ane",           "macos",
};

std::mutex mutex;
std::condition_variable released;
int64_t releases = 0;
std::atomic<int64_t> predictions{0};

std::multimap<std::string, std::string, std::less<>> Parse(const std::string& words) {
  std::multimap<std::string, std::string, std::less<>> switches;
  std::istringstream in(words);
  for (std::string word; std::getline(in, word, ',');) {
    const size_t equal = word.find('=');
    const std::string name = word.substr(0, equal);
    bool known = false;
    for (const char* each : kSwitches) known = known || name == each;
    if (!known) {
      std::fprintf(stderr, "MLC_STUB: no switch is called \"%s\"\n", name.c_str());
      std::exit(2);
    }
    switches.emplace(name, equal == std::string::npos ? "" : word.substr(equal + 1));
  }
  return switches;
}

std::multimap<std::string, std::string, std::less<>>& Switches() {
  static auto switches = [] {
    const char* words = std::getenv("MLC_STUB");
    return Parse(words ? words : "");
  }();
  return switches;
}

}  // namespace

void Set(const std::string& words) {
  std::lock_guard lock(mutex);
  Switches() = Parse(words);
  predictions = 0;
}

bool Is(std::string_view name) {
  std::lock_guard lock(mutex);
  return Switches().contains(name);
}

std::string Text(std::string_view name, std::string_view otherwise) {
  std::lock_guard lock(mutex);
  auto it = Switches().find(name);
  return it == Switches().end() ? std::string(otherwise) : it->second;
}

bool At(std::string_view name, int64_t number) {
  std::lock_guard lock(mutex);
  auto [begin, end] = Switches().equal_range(name);
  for (auto it = begin; it != end; ++it)
    if (it->second == std::to_string(number)) return true;
  return false;
}

void Linger(std::string_view name) {
  const std::string time = Text(name, "");
  if (!time.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(std::stoll(time)));
}

int64_t NextPrediction() { return ++predictions; }

void Hang() {
  const std::string limit = Text("late-write-ms", "");
  std::unique_lock lock(mutex);
  ++Counted().hanging;
  auto go_on = [now = releases] { return releases != now; };
  if (limit.empty())
    released.wait(lock, go_on);
  else
    released.wait_for(lock, std::chrono::milliseconds(std::atoll(limit.c_str())), go_on);
  --Counted().hanging;
}

void Release() {
  std::lock_guard lock(mutex);
  ++releases;
  released.notify_all();
}

Counts& Counted() {
  static auto* counts = new Counts;  // hanging threads outlive main()
  return *counts;
}

}  // namespace mlc::stub
