// tools/driver/trace.h - records the durations of a command's phases, and of the predictions and
// operations in them.
//
//   Trace trace;
//   { Trace::Span span(trace, "read", Trace::kPhase); ... }
//   trace.Write("run.json");      // chrome://tracing, ui.perfetto.dev
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace mlc::driver {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  // Maximum number of recorded predictions and operations; Write states how many were dropped.
  // Phases are consecutive and cover the whole; other events are nested in them.
  static constexpr size_t kMost = 1'000'000;
  enum Kind { kPhase, kPrediction, kOperation };
  struct Event {
    std::string name, op;  // op: MIL operator, for operations
    Kind kind;
    Clock::time_point begin, end;
    uint32_t thread;  // numbered from 0 in order of first use
  };

  // The trace begins `before` the call, with a phase "start" that covers the startup of the tool.
  explicit Trace(Clock::duration before = {});
  // Thread-safe.
  void Add(std::string name, Kind kind, Clock::time_point begin, Clock::time_point end,
           std::string op = {});

  // Records an event for its scope; on Apple's systems also a signpost, which Instruments shows as
  // a point of interest.
  class Span {
   public:
    Span(Trace& trace, std::string name, Kind kind);
    ~Span() { End(); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    void End();  // ends the span early; at most once

   private:
    Trace& trace_;
    std::string name_;
    Kind kind_;
    uint64_t signpost_ = 0;
    Clock::time_point begin_;
    bool ended_ = false;
  };

  // Ends the trace. Nothing may be added afterwards, and `phases` add up to `whole_ms`.
  void End();
  double whole_ms() const;
  // Returns the approximate memory use of the events, to be excluded from memory measurements.
  int64_t bytes() const;
  // Returns the phases in order, merged by name; the time between them is "other".
  std::vector<std::pair<std::string, double>> phases() const;
  const std::vector<Event>& events() const { return events_; }
  // Writes the Trace Event Format, complete events ("ph": "X") in microseconds. Error "file-io".
  void Write(const std::filesystem::path& path) const;

 private:
  uint32_t ThreadNumber();
  mutable std::mutex mutex_;
  Clock::time_point begin_, end_;
  std::vector<Event> events_;
  std::vector<size_t> threads_;
  int64_t left_out_ = 0;
};

// The total time of an operation, or of all operations of an operator (whose `name` is empty).
struct OperationTime {
  std::string op, name;
  int64_t count = 0;
  double ms = 0;
};
enum class TimesOf { kOperators, kOperations };
// Over all predictions of a trace, the longest first; empty if the runtime does not report them.
std::vector<OperationTime> OperationTimes(const Trace& trace, TimesOf what);

// Returns the processor time of the process so far; at the beginning of main(), the time that
// loading took.
Trace::Clock::duration ProcessTime();

}  // namespace mlc::driver
