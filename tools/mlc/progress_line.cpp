#include "tools/mlc/progress_line.h"

#include <fmt/format.h>

#include <cstdio>

namespace mlc::driver {
namespace {

// Shorter work ends before anybody reads what it shows.
constexpr std::chrono::seconds kSilence(1);

// "1.2 of 2.6 GB", "3 of 16 samples"; in the unit of the larger number.
std::string Amounts(const ProgressStep& step) {
  if (step.unit != "bytes")
    return step.of > 0 ? fmt::format("{} of {} {}", step.done, step.of, step.unit)
                       : Counted(static_cast<int64_t>(step.done),
                                 step.unit.substr(0, step.unit.size() - 1));
  constexpr std::pair<double, std::string_view> kUnits[] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
  for (const auto& [size, name] : kUnits)
    if (static_cast<double>(step.of) >= size)
      return fmt::format("{:.1f} of {:.1f} {}", static_cast<double>(step.done) / size,
                         static_cast<double>(step.of) / size, name);
  return fmt::format("{} of {} bytes", step.done, step.of);
}

// "45 s", "3 min 20 s", "2 h 5 min"
std::string Duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

ProgressLine::ProgressLine(const Session& session)
    : form_(session.json && FormOfProgress() == ProgressForm::kLine ? ProgressForm::kNone
                                                                    : FormOfProgress()) {}

ProgressLine::~ProgressLine() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_one();
  if (late_.joinable()) late_.join();
  Erase();
}

void ProgressLine::Show(const std::function<std::string()>& text) {
  using std::chrono::milliseconds;
  const auto every = form_ == ProgressForm::kLine ? milliseconds(100) : milliseconds(1000);
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (!shown() || (last_ && now - *last_ < every)) return;
  last_ = now;
  if (form_ == ProgressForm::kLines) {
    fmt::print(stderr, "{}\n", text());
  } else if (now - start_ >= kSilence) {
    Print(text());
  } else {
    early_ = text();
    if (!late_.joinable()) late_ = std::thread([this] { ShowLate(); });
  }
}

void ProgressLine::ShowLate() {
  std::unique_lock lock(mutex_);
  ended_.wait_until(lock, start_ + kSilence, [&] { return ending_; });
  if (!ending_ && !on_screen_ && !early_.empty()) Print(early_);
}

void ProgressLine::Print(const std::string& text) {
  std::string line = text;
  if (const size_t columns = Columns(stderr); columns > 1 && line.size() >= columns)
    line.resize(columns - 1);
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
  on_screen_ = true;
}

std::string ProgressLine::Describe(const ProgressStep& step) {
  if (step.share == kUnknownShare && step.unit.empty())
    return fmt::format("{} ...{}", step.name,
                       step.item.empty() ? "" : fmt::format(" ({})", step.item));
  std::string text = fmt::format("{}: ", step.name);
  if (step.of == 0 && !step.unit.empty())
    text += Amounts(step);
  else
    text += fmt::format("{:.0f} %", 100 * step.share);
  if (step.of > 0) text += ", " + Amounts(step);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  constexpr double kLeast = 0.5;  // before, rates are guesses
  if (seconds >= kLeast && step.share > share_) {
    if (step.unit == "bytes")
      text += fmt::format(", {:.0f} MB/s", static_cast<double>(step.done - done_) / 1e6 / seconds);
    if (step.share < 1)
      text +=
          fmt::format(", {} left", Duration(seconds * (1 - step.share) / (step.share - share_)));
  }
  if (!step.item.empty()) text += fmt::format(" ({})", step.item);
  return text;
}

Progress ProgressLine::Showing() {
  if (!shown()) return {};
  return [this](const ProgressStep& step) {
    if (step.name != step_) {
      step_ = step.name;
      begin_ = Clock::now();
      share_ = step.share;
      done_ = step.done;
      const std::lock_guard lock(mutex_);
      last_.reset();  // each step is shown
    }
    Show([&] { return Describe(step); });
  };
}

void ProgressLine::Erase() {
  const std::lock_guard lock(mutex_);
  early_.clear();
  if (!on_screen_) return;
  on_screen_ = false;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace mlc::driver
