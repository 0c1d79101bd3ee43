// tools/driver/trace.h - what took how long: the phases of a command, the predictions in them, the operations in those.
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
#include <string_view>
#include <vector>

namespace mlc {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  // Phases follow one another and together are the whole; the others lie in them.
  // So many predictions and operations are kept, the first ones; Write says how many were left out.
  static constexpr size_t kMost = 1'000'000;
  enum Kind { kPhase, kPrediction, kOperation };
  struct Event {
    std::string name, op;  // op: of an operation, MIL's operator
    Kind kind;
    Clock::time_point begin, end;
    uint32_t thread;  // 0: the first that was seen, ...
  };

  // The whole begins `before` ago: what a tool took to begin, its phase "start".
  explicit Trace(Clock::duration before = {});
  // Thread-safe.
  void Add(std::string name, Kind kind, Clock::time_point begin, Clock::time_point end,
           std::string op = {});

  // On Apple's systems a signpost too, which Instruments shows as a point of interest.
  class Span {
   public:
    Span(Trace& trace, std::string name, Kind kind);
    ~Span() { End(); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    void End();  // once; before its time

   private:
    Trace& trace_;
    std::string name_;
    Kind kind_;
    uint64_t signpost_ = 0;
    Clock::time_point begin_;
    bool ended_ = false;
  };

  // Ends what there is between the phases: from here on nothing is added. Then `phases` add up to `whole_ms`.
  void End();
  double whole_ms() const;
  // That its events take, about: no growth of what is traced.
  int64_t bytes() const;
  // In order, those of a name as one. What lies between them is "other".
  std::vector<std::pair<std::string, double>> phases() const;
  const std::vector<Event>& events() const { return events_; }
  // Trace Event Format, complete events ("ph": "X") in microseconds. Error "file-io".
  void Write(const std::filesystem::path& path) const;

 private:
  uint32_t ThreadNumber();
  mutable std::mutex mutex_;
  Clock::time_point begin_, end_;
  std::vector<Event> events_;
  std::vector<size_t> threads_;
  int64_t left_out_ = 0;
};

// Processor time of the process so far: at the beginning of main(), what loading it took.
Trace::Clock::duration ProcessTime();

}  // namespace mlc
