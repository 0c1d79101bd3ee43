// lib/runtime/circuit_breaker.h - when to stop asking a model that fails, and when to try it again.
//
//             too many fail, too slow, too much memory             cool-down is over
//   closed  --------------------------------------------> open  ---------------------> half-open
//     ^                                                    ^                            |     |
//     |                                                    +------- a probe fails ------+     |
//     +--------------------------- `probes` in a row succeed --------------------------------+
//
// Reads no clock and no environment: it is handed both.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlc {

struct BreakerOptions {
  // Judged are the last `window` predictions since it was closed, once there are `least` of them.
  int window = 100, least = 10;
  double success = 0.95;  // it opens below
  // A p99 budget lets one prediction of a hundred be slower: `slow` of the window open it.
  std::optional<double> p99_budget_ms = {};
  int slow = 3;
  std::optional<int64_t> memory_mark = {};  // resident bytes; above it opens at once
  std::chrono::milliseconds cool_down{5000},
      longest_cool_down{300'000};  // doubled by each failed probe
  int probes = 3;                  // that succeed one after the other close it
  enum class Override { kAuto, kOpen, kClosed } override = Override::kAuto;
};
// Of the environment variable MLC_CIRCUIT_BREAKER, which tools read: "open" (nothing passes),
// "closed" (all does), "auto". Error "usage" for other words.
BreakerOptions::Override ParseBreakerOverride(std::string_view text);

// Thread-safe.
class CircuitBreaker {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class State { kClosed, kOpen, kHalfOpen };

  explicit CircuitBreaker(const BreakerOptions& options) : options_(options) {}

  // Who was admitted records how it went, once; while half-open, one is admitted at a time.
  struct Ticket {
    bool admitted = false, probe = false;
    // Of a refusal: "open: 3 of 12 predictions failed ...; tried again in 3.2 s".
    std::string reason = {};
    int64_t serial = 0;
    int64_t epoch = 0;  // what comes back after the state changed says nothing of the new one
  };
  Ticket Admit(Time now);

  struct Outcome {
    // kNeither: says nothing of the model (bad inputs).
    enum Kind { kSucceeded, kFailed, kNeither } kind = kSucceeded;
    double ms = 0;
    int64_t resident_bytes = 0;
    int64_t serial = 0;  // the ticket's
  };
  void Record(const Ticket& ticket, Outcome outcome, Time now);
  // What was recorded as a success was none: its results turned out wrong.
  void Revoke(const Ticket& ticket, Time now);

  State state() const;
  // Changes of state, oldest first: the last kDecisions of them.
  struct Change {
    Time time;
    State from, to;
    std::string reason;  // "opened: 3 of 12 predictions failed (75 % success, needs 95 %)"
  };
  static constexpr size_t kDecisions = 100;
  std::vector<Change> changes() const;
  int64_t opened() const;  // how often

 private:
  void Move(State to, std::string reason, Time now);
  void Open(std::string why, Time now);
  void Judge(Time now);  // the window
  void FailProbe(std::string why, Time now);
  std::string WhyOpen() const;  // of the window; empty: it stays closed
  std::string TooMuch(const Outcome& outcome) const;
  bool IsSlow(const Outcome& outcome) const;
  const BreakerOptions options_;
  mutable std::mutex mutex_;
  State state_ = State::kClosed;
  std::deque<Outcome> window_;
  std::string why_;  // it is open
  Time until_{};
  std::chrono::milliseconds cool_down_{0};
  int good_probes_ = 0;
  bool probing_ = false;
  int64_t epoch_ = 0, opened_ = 0, serial_ = 0;
  std::deque<Change> changes_;
};
std::string_view Name(CircuitBreaker::State state);  // "closed", "open", "half-open"

}  // namespace mlc
