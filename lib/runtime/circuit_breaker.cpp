#include "lib/runtime/circuit_breaker.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/support/error.h"

namespace mlc::runtime {
namespace {

constexpr std::string_view kVariable = "MLC_CIRCUIT_BREAKER";
constexpr std::array<std::string_view, 3> kStates{"closed", "open", "half-open"};
constexpr std::array<std::string_view, 3> kOverrides{"auto", "open", "closed"};

double Megabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace

std::string_view Name(CircuitBreaker::State state) { return kStates[static_cast<size_t>(state)]; }

BreakerOptions::Override ParseBreakerOverride(std::string_view text) {
  const auto it = std::ranges::find(kOverrides, text);
  if (it == kOverrides.end())
    throw Error("usage", "{} is \"{}\"", kVariable, text).Expected("open, closed or auto");
  return static_cast<BreakerOptions::Override>(it - kOverrides.begin());
}

CircuitBreaker::Ticket CircuitBreaker::Admit(Time now) {
  std::lock_guard lock(mutex_);
  if (options_.override == BreakerOptions::Override::kOpen)
    return {.reason = fmt::format("open: {}=open", kVariable)};
  if (state_ == State::kOpen) {
    if (now < until_)
      return {.reason = fmt::format("open: {}; next attempt in {:.3g} s", why_,
                                    std::chrono::duration<double>(until_ - now).count())};
    Move(State::kHalfOpen,
         fmt::format("half-open: cool-down of {:.3g} s is over",
                     std::chrono::duration<double>(cool_down_).count()),
         now);
  }
  if (state_ == State::kHalfOpen) {
    if (probing_) return {.reason = "half-open: another prediction is probing the model"};
    probing_ = true;
    return {.admitted = true, .probe = true, .serial = ++serial_, .epoch = epoch_};
  }
  return {.admitted = true, .serial = ++serial_, .epoch = epoch_};
}

// Returns why this outcome alone opens the breaker (memory above its mark); empty if it does not.
std::string CircuitBreaker::TooMuch(const Outcome& outcome) const {
  if (!options_.memory_limit || outcome.resident_bytes <= *options_.memory_limit) return "";
  return fmt::format("{:.6g} MB of memory in use (limit {:.6g} MB)",
                     Megabytes(outcome.resident_bytes), Megabytes(*options_.memory_limit));
}

bool CircuitBreaker::IsSlow(const Outcome& outcome) const {
  return outcome.kind == Outcome::kSucceeded && options_.p99_budget_ms &&
         outcome.ms > *options_.p99_budget_ms;
}

std::string CircuitBreaker::WhyOpen() const {
  if (std::string much = TooMuch(window_.back()); !much.empty()) return much;
  const auto all = static_cast<int>(window_.size());
  if (all < options_.least) return "";
  int failed = 0, slow = 0;
  for (const Outcome& outcome : window_) {
    failed += outcome.kind == Outcome::kFailed;
    slow += IsSlow(outcome);
  }
  const double success = static_cast<double>(all - failed) / all;
  if (success < options_.success)
    return fmt::format("{} of {} predictions failed ({:.3g} % success, minimum {:.3g} %)", failed,
                       all, 100 * success, 100 * options_.success);
  if (slow >= options_.slow)
    return fmt::format("{} of {} predictions took longer than the p99 budget of {:.6g} ms", slow,
                       all, *options_.p99_budget_ms);
  return "";
}

void CircuitBreaker::Open(std::string why, Time now) {
  why_ = std::move(why);
  until_ = now + cool_down_;
  ++opened_;
  Move(State::kOpen, "opened: " + why_, now);
}

void CircuitBreaker::Judge(Time now) {
  if (options_.override == BreakerOptions::Override::kClosed) return;
  cool_down_ = options_.cool_down;
  if (std::string why = WhyOpen(); !why.empty()) Open(std::move(why), now);
}

void CircuitBreaker::FailProbe(std::string why, Time now) {
  cool_down_ = std::min(2 * cool_down_, options_.longest_cool_down);
  Open(std::move(why), now);
}

void CircuitBreaker::Record(const Ticket& ticket, Outcome outcome, Time now) {
  std::lock_guard lock(mutex_);
  outcome.serial = ticket.serial;
  if (!ticket.admitted || ticket.epoch != epoch_) return;
  if (state_ == State::kHalfOpen) probing_ = false;
  if (outcome.kind == Outcome::kNeither) return;
  if (state_ == State::kClosed) {
    window_.push_back(outcome);
    if (static_cast<int>(window_.size()) > options_.window) window_.pop_front();
    return Judge(now);
  }
  std::string why = TooMuch(outcome);
  if (outcome.kind == Outcome::kFailed)
    why = "the probe failed";
  else if (IsSlow(outcome))
    why = fmt::format("the probe took {:.6g} ms (p99 budget {:.6g} ms)", outcome.ms,
                      *options_.p99_budget_ms);
  if (!why.empty()) return FailProbe(std::move(why), now);
  if (++good_probes_ == options_.probes)
    Move(State::kClosed, fmt::format("closed: {} predictions in a row succeeded", good_probes_),
         now);
}

void CircuitBreaker::Revoke(const Ticket& ticket, Time now) {
  std::lock_guard lock(mutex_);
  if (!ticket.admitted || ticket.epoch != epoch_) return;
  if (state_ == State::kHalfOpen) return FailProbe("the results of the probe were wrong", now);
  const auto it = std::ranges::find_if(
      window_, [&](const Outcome& outcome) { return outcome.serial == ticket.serial; });
  if (it == window_.end()) return;
  it->kind = Outcome::kFailed;
  Judge(now);
}

void CircuitBreaker::Move(State to, std::string reason, Time now) {
  changes_.push_back({now, state_, to, std::move(reason)});
  if (changes_.size() > kMostChanges) changes_.pop_front();
  state_ = to;
  ++epoch_;
  window_.clear();
  good_probes_ = 0;
  probing_ = false;
}

CircuitBreaker::State CircuitBreaker::state() const {
  std::lock_guard lock(mutex_);
  return options_.override == BreakerOptions::Override::kOpen ? State::kOpen : state_;
}

std::vector<CircuitBreaker::Change> CircuitBreaker::changes() const {
  std::lock_guard lock(mutex_);
  return {changes_.begin(), changes_.end()};
}

int64_t CircuitBreaker::opened() const {
  std::lock_guard lock(mutex_);
  return opened_;
}

}  // namespace mlc::runtime
