#include "tools/driver/trace.h"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/support/atomic_install.h"
#include "lib/support/json_text.h"
#include "lib/support/milliseconds.h"

#if __has_include(<os/signpost.h>)
#include <os/signpost.h>
#endif

namespace mlc::driver {

namespace {

#if __has_include(<os/signpost.h>)
os_log_t Log() {
  static const os_log_t log = os_log_create("mlc", OS_LOG_CATEGORY_POINTS_OF_INTEREST);
  return log;
}
uint64_t BeginSignpost(const std::string& name) {
  const os_signpost_id_t id = os_signpost_id_generate(Log());
  os_signpost_interval_begin(Log(), id, "mlc", "%{public}s", name.c_str());
  return id;
}
void EndSignpost(uint64_t id) { os_signpost_interval_end(Log(), id, "mlc"); }
#else
uint64_t BeginSignpost(const std::string&) { return 0; }
void EndSignpost(uint64_t) {}
#endif

}  // namespace

Trace::Clock::duration ProcessTime() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::duration_cast<Trace::Clock::duration>(std::chrono::seconds(used.tv_sec) +
                                                            std::chrono::nanoseconds(used.tv_nsec));
}

Trace::Trace(Clock::duration before) : begin_(Clock::now() - before), end_(begin_ + before) {
  if (before.count() > 0) Add("start", kPhase, begin_, end_);
}

Trace::Span::Span(Trace& trace, std::string name, Kind kind)
    : trace_(trace),
      name_(std::move(name)),
      kind_(kind),
      signpost_(BeginSignpost(name_)),
      begin_(Clock::now()) {}

uint32_t Trace::ThreadNumber() {
  const size_t id = std::hash<std::thread::id>()(std::this_thread::get_id());
  const auto it = std::ranges::find(threads_, id);
  const auto number = static_cast<uint32_t>(it - threads_.begin());
  if (it == threads_.end()) threads_.push_back(id);
  return number;
}

void Trace::Add(std::string name, Kind kind, Clock::time_point begin, Clock::time_point end,
                std::string op) {
  std::lock_guard lock(mutex_);
  if (kind != kPhase && events_.size() >= kMost) {
    ++left_out_;
    return;
  }
  events_.push_back({std::move(name), std::move(op), kind, begin, end, ThreadNumber()});
}

void Trace::Span::End() {
  if (ended_) return;
  ended_ = true;
  EndSignpost(signpost_);
  trace_.Add(std::move(name_), kind_, begin_, Clock::now());
}

void Trace::End() { end_ = Clock::now(); }

int64_t Trace::bytes() const {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(events_.size() * sizeof(Event));
}

double Trace::whole_ms() const { return Milliseconds(begin_, end_); }

std::vector<std::pair<std::string, double>> Trace::phases() const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, double>> found;
  double other = whole_ms();
  for (const Event& event : events_) {
    if (event.kind != kPhase) continue;
    const double ms = Milliseconds(event.begin, event.end);
    other -= ms;
    auto it =
        std::ranges::find_if(found, [&](const auto& phase) { return phase.first == event.name; });
    if (it == found.end())
      found.emplace_back(event.name, ms);
    else
      it->second += ms;
  }
  found.emplace_back("other", other);
  return found;
}

void Trace::Write(const std::filesystem::path& path) const {
  std::lock_guard lock(mutex_);
  constexpr const char* kKinds[] = {"phase", "prediction", "operation"};
  auto microseconds = [](Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  };
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Event& event : events_) {
    list.push_back({{"name", event.op.empty() ? event.name : event.op},
                    {"cat", kKinds[event.kind]},
                    {"ph", "X"},
                    {"ts", microseconds(event.begin - begin_)},
                    {"dur", microseconds(event.end - event.begin)},
                    {"pid", 1},
                    {"tid", event.thread}});
    if (!event.op.empty()) list.back()["args"] = {{"result", event.name}};
  }
  nlohmann::ordered_json json{{"traceEvents", list}, {"displayTimeUnit", "ms"}};
  if (left_out_ > 0) json["otherData"] = {{"events left out", left_out_}};
  WriteFile(path, JsonText(json) + "\n");
}

std::vector<OperationTime> OperationTimes(const Trace& trace, TimesOf what) {
  std::map<std::pair<std::string_view, std::string_view>, OperationTime> totals;
  for (const Trace::Event& event : trace.events()) {
    if (event.kind != Trace::kOperation) continue;
    const std::string_view name = what == TimesOf::kOperations ? event.name : std::string_view();
    OperationTime& total = totals[{event.op, name}];
    total.op = event.op;
    total.name = name;
    ++total.count;
    total.ms += Milliseconds(event.begin, event.end);
  }
  std::vector<OperationTime> sorted;
  for (auto& [key, total] : totals) sorted.push_back(std::move(total));
  std::ranges::stable_sort(sorted, std::greater(), &OperationTime::ms);
  return sorted;
}

}  // namespace mlc::driver
