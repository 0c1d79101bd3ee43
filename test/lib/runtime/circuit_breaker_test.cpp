#include "lib/runtime/circuit_breaker.h"

#include "lib/support/error.h"
#include "test/catch.h"

namespace mlc::runtime {
namespace {

using namespace std::chrono_literals;
using State = CircuitBreaker::State;

// Runs a script of predictions, 1 ms apart: "." succeeds, "x" fails, "s" is slow (50 ms), "m"
// exceeds the memory limit, "n" is neutral, "w" succeeds and is revoked; a digit waits that many
// seconds. Returns one letter for each: "c" admitted, "p" admitted as a probe, "-" rejected.
std::string Play(CircuitBreaker& breaker, std::string_view script, CircuitBreaker::Time& now) {
  std::string admitted;
  for (char what : script) {
    if (what >= '0' && what <= '9') {
      now += std::chrono::seconds(what - '0');
      continue;
    }
    const CircuitBreaker::Ticket ticket = breaker.Admit(now);
    admitted += !ticket.admitted ? '-' : ticket.probe ? 'p' : 'c';
    now += 1ms;
    using Outcome = CircuitBreaker::Outcome;
    breaker.Record(ticket,
                   {what == 'x'   ? Outcome::kFailed
                    : what == 'n' ? Outcome::kNeither
                                  : Outcome::kSucceeded,
                    what == 's' ? 50.0 : 5.0, what == 'm' ? 2'000'000 : 1'000'000},
                   now);
    if (what == 'w') breaker.Revoke(ticket, now);
  }
  return admitted;
}

struct Row {
  const char *title, *script, *admitted;
  State state;
  const char* reason;  // of the last change; empty if there was none
};
const Row kRows[] = {
    {"nothing is judged before the tenth", "xxxxxxxxx", "ccccccccc", State::kClosed, ""},
    {"the tenth is", "xxxxxxxxxx.", "cccccccccc-", State::kOpen,
     "opened: 10 of 10 predictions failed (0 % success, minimum 95 %)"},
    {"one of ten is 90 %", ".........x.", "cccccccccc-", State::kOpen,
     "opened: 1 of 10 predictions failed (90 % success, minimum 95 %)"},
    {"19 of 20 are 95 %, which is enough", "...................x.", "ccccccccccccccccccccc",
     State::kClosed, ""},
    {"2 of 21 are not", "...................x.x", "cccccccccccccccccccccc", State::kOpen,
     "opened: 2 of 22 predictions failed (90.9 % success, minimum 95 %)"},
    {"what turns out wrong failed", ".........w.", "cccccccccc-", State::kOpen,
     "opened: 1 of 10 predictions failed (90 % success, minimum 95 %)"},
    {"and a probe, too", "wwwwwwwwww6w.", "ccccccccccp-", State::kOpen,
     "opened: the results of the probe were wrong"},
    {"bad inputs of the caller's say nothing", "nnnnnnnnnnnnnnnnnnnn", "cccccccccccccccccccc",
     State::kClosed, ""},
    {"two slow ones are let pass", ".........ss", "ccccccccccc", State::kClosed, ""},
    {"three are not", ".........s.s..s-", "ccccccccccccccc-", State::kOpen,
     "opened: 3 of 15 predictions took longer than the p99 budget of 20 ms"},
    {"slow ones count from the tenth on, too", "sss.......", "cccccccccc", State::kOpen,
     "opened: 3 of 10 predictions took longer than the p99 budget of 20 ms"},
    {"the memory mark opens at once", "m.", "c-", State::kOpen,
     "opened: 2 MB of memory in use (limit 1.5 MB)"},
    {"before the cool-down is over nothing passes", "m4.", "c-", State::kOpen,
     "opened: 2 MB of memory in use (limit 1.5 MB)"},
    {"then it is tried", "m5.", "cp", State::kHalfOpen, "half-open: cool-down of 5 s is over"},
    {"three that succeed close it", "m5...", "cppp", State::kClosed,
     "closed: 3 predictions in a row succeeded"},
    {"and all is forgotten", "xxxxxxxxxx5...xxxxxxxxx", "ccccccccccpppccccccccc", State::kClosed,
     "closed: 3 predictions in a row succeeded"},
    {"one that fails opens it", "m5..x", "cppp", State::kOpen, "opened: the probe failed"},
    {"for twice as long", "m5x9.", "cp-", State::kOpen, "opened: the probe failed"},
    {"and no longer", "m5x91.", "cpp", State::kHalfOpen, "half-open: cool-down of 10 s is over"},
    {"but for the longest cool-down", "m5x91x93.", "cppp", State::kHalfOpen,
     "half-open: cool-down of 12 s is over"},
    {"closed again, the cool-down is short again", "m5x91...m5.", "cppppcp", State::kHalfOpen,
     "half-open: cool-down of 5 s is over"},
    {"a probe that is slow fails", "m5s", "cp", State::kOpen,
     "opened: the probe took 50 ms (p99 budget 20 ms)"},
    {"a probe over the mark fails", "m5m", "cp", State::kOpen,
     "opened: 2 MB of memory in use (limit 1.5 MB)"},
    {"a probe of bad inputs is none", "m5n...", "cpppp", State::kClosed,
     "closed: 3 predictions in a row succeeded"}};

TEST_CASE("breaker: state transitions", "[breaker]") {
  for (const Row& row : kRows) {
    INFO(row.title << ": " << row.script);
    CircuitBreaker breaker({.p99_budget_ms = 20,
                            .memory_limit = 1'500'000,
                            .cool_down = 5s,
                            .longest_cool_down = 12s});
    CircuitBreaker::Time now{1h};
    std::string script = row.script;
    const bool extra = script.ends_with('-');  // one more prediction, which is rejected
    if (extra) script.back() = '.';
    CHECK(Play(breaker, script, now) == row.admitted);
    CHECK(breaker.state() == row.state);
    CHECK((breaker.changes().empty() ? "" : breaker.changes().back().reason) == row.reason);
  }
}

TEST_CASE("breaker: only predictions in the window count", "[breaker]") {
  CircuitBreaker breaker({.window = 20});
  CircuitBreaker::Time now{1h};
  // One failure in each window of 20, repeatedly.
  for (int i = 0; i < 20; ++i)
    CHECK(Play(breaker, "...................x", now).find('-') == std::string::npos);
  CHECK(breaker.state() == State::kClosed);
  Play(breaker, "x", now);
  CHECK(breaker.changes().back().reason ==
        "opened: 2 of 20 predictions failed (90 % success, minimum 95 %)");
}

TEST_CASE("breaker: latency and memory have no effect without limits", "[breaker]") {
  CircuitBreaker breaker({});
  CircuitBreaker::Time now{1h};
  CHECK(Play(breaker, "ssssssssssssmmmmmmmm", now) == std::string(20, 'c'));
}

TEST_CASE("breaker: outcomes from before a change of state are ignored", "[breaker]") {
  CircuitBreaker breaker({});
  CircuitBreaker::Time now{1h};
  const CircuitBreaker::Ticket early = breaker.Admit(now);
  Play(breaker, "xxxxxxxxxx5", now);
  const CircuitBreaker::Ticket probe = breaker.Admit(now);
  CHECK(probe.probe);
  breaker.Record(early, {CircuitBreaker::Outcome::kFailed}, now);
  CHECK(breaker.state() == State::kHalfOpen);
  breaker.Record(early, {CircuitBreaker::Outcome::kSucceeded}, now);
  // Only one probe at a time is admitted.
  const CircuitBreaker::Ticket second = breaker.Admit(now);
  CHECK(!second.admitted);
  CHECK(second.reason == "half-open: another prediction is probing the model");
  breaker.Record(second, {CircuitBreaker::Outcome::kFailed}, now);
  CHECK(breaker.state() == State::kHalfOpen);
  breaker.Record(probe, {CircuitBreaker::Outcome::kSucceeded}, now);
  CHECK(breaker.Admit(now).probe);
}

TEST_CASE("breaker: a rejection states the reason and the remaining time", "[breaker]") {
  CircuitBreaker breaker({});
  CircuitBreaker::Time now{1h};
  Play(breaker, "xxxxxxxxxx", now);
  CHECK(breaker.Admit(now + 1500ms).reason ==
        "open: 10 of 10 predictions failed (0 % success, minimum 95 %); next attempt in 3.5 s");
  CHECK(breaker.opened() == 1);
}

TEST_CASE("breaker: manual override", "[breaker]") {
  using Override = BreakerOptions::Override;
  CircuitBreaker::Time now{1h};
  CircuitBreaker open({.override = ParseBreakerOverride("open")});
  CHECK(Play(open, "..9.", now) == "---");
  CHECK(open.Admit(now).reason == "open: MLC_CIRCUIT_BREAKER=open");
  CHECK(open.state() == State::kOpen);
  CircuitBreaker closed({.memory_limit = 1, .override = ParseBreakerOverride("closed")});
  CHECK(Play(closed, "xxxxxxxxxxxxmm", now) == std::string(14, 'c'));
  CHECK(ParseBreakerOverride("auto") == Override::kAuto);
  CHECK_THROWS_WITH(ParseBreakerOverride("ajar"),
                    ContainsSubstring("MLC_CIRCUIT_BREAKER is \"ajar\""));
  CHECK_THROWS_AS(ParseBreakerOverride(""), Error);
}

TEST_CASE("breaker: the log of changes is bounded", "[breaker]") {
  CircuitBreaker breaker({.cool_down = 1s, .longest_cool_down = 1s});
  CircuitBreaker::Time now{1h};
  Play(breaker, "xxxxxxxxxx", now);
  for (int i = 0; i < 200; ++i) Play(breaker, "1x", now);
  CHECK(breaker.changes().size() == CircuitBreaker::kMostChanges);
  CHECK(breaker.opened() == 201);
}

}  // namespace
}  // namespace mlc::runtime
