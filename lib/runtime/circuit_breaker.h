// lib/runtime/circuit_breaker.h - decides when to stop calling a failing model and when to retry
// it.
//
//              failures, latency or memory exceed a limit         cool-down is over
//   closed  --------------------------------------------> open  ---------------------> half-open
//     ^                                                    ^                            |     |
//     |                                                    +------- a probe fails ------+     |
//     +--------------------------- `probes` in a row succeed --------------------------------+
//
// Does not read the clock or the environment; the caller passes both.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlc::runtime {

struct BreakerOptions {
  // The last `window` predictions since the breaker closed are judged, once there are `least` of
  // them.
  int window = 100, least = 10;
  double success = 0.95;  // the success rate below which the breaker opens
  // Since a p99 budget allows one slow prediction in a hundred, the breaker opens at `slow` of them
  // within the window.
  std::optional<double> p99_budget_ms = {};
  int slow = 3;
  std::optional<int64_t> memory_limit = {};  // resident bytes above which the breaker opens at once
  std::chrono::milliseconds cool_down{5000},
      longest_cool_down{300'000};  // upper limit of cool_down, which each failed probe doubles
  int probes = 3;                  // consecutive successes that close the breaker
  enum class Override { kAuto, kOpen, kClosed } override = Override::kAuto;
};
// Parses the value of the environment variable MLC_CIRCUIT_BREAKER, which tools read: "open"
// (rejects everything), "closed" (admits everything) or "auto". Error "usage" for any other value.
BreakerOptions::Override ParseBreakerOverride(std::string_view text);

// Thread-safe.
class CircuitBreaker {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class State { kClosed, kOpen, kHalfOpen };

  explicit CircuitBreaker(const BreakerOptions& options) : options_(options) {}

  // The caller of an admitted ticket records its outcome exactly once. While half-open, the breaker
  // admits one prediction at a time.
  struct Ticket {
    bool admitted = false, probe = false;
    // Why it was refused: "open: 3 of 12 predictions failed ...; next attempt in 3.2 s".
    std::string reason = {};
    int64_t serial = 0;
    int64_t epoch = 0;  // outcomes from before a change of state are ignored
  };
  Ticket Admit(Time now);

  struct Outcome {
    // kNeither: the outcome does not reflect on the model (bad inputs).
    enum Kind { kSucceeded, kFailed, kNeither } kind = kSucceeded;
    double ms = 0;
    int64_t resident_bytes = 0;
    int64_t serial = 0;  // number of the ticket
  };
  void Record(const Ticket& ticket, Outcome outcome, Time now);
  // Turns a recorded success into a failure, because the results were found to be wrong.
  void Revoke(const Ticket& ticket, Time now);

  State state() const;
  struct Change {
    Time time;
    State from, to;
    std::string reason;  // "opened: 3 of 12 predictions failed (75 % success, minimum 95 %)"
  };
  static constexpr size_t kMostChanges = 100;
  // The last kMostChanges changes of state, oldest first.
  std::vector<Change> changes() const;
  int64_t opened() const;  // how often it opened

 private:
  void Move(State to, std::string reason, Time now);
  void Open(std::string why, Time now);
  void Judge(Time now);  // judges the window
  void FailProbe(std::string why, Time now);
  std::string WhyOpen() const;  // why the window opens the breaker; empty if it does not
  std::string TooMuch(const Outcome& outcome) const;
  bool IsSlow(const Outcome& outcome) const;
  const BreakerOptions options_;
  mutable std::mutex mutex_;
  State state_ = State::kClosed;
  std::deque<Outcome> window_;
  std::string why_;  // why it is open
  Time until_{};
  std::chrono::milliseconds cool_down_{0};
  int good_probes_ = 0;
  bool probing_ = false;
  int64_t epoch_ = 0, opened_ = 0, serial_ = 0;
  std::deque<Change> changes_;
};
std::string_view Name(CircuitBreaker::State state);  // "closed", "open", "half-open"

}  // namespace mlc::runtime
