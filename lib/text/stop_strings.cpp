#include "lib/text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace mlc::text {

StopTexts::StopTexts(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopTexts::Add(std::string_view piece) {
  if (stopped_) return "";
  held_ += piece;
  size_t first = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t over = at + stop.size();
    if (over < end || (over == end && at < first)) first = at, end = over;
  }
  if (first != std::string::npos) {
    stopped_ = true;
    held_.resize(first);
    return std::exchange(held_, "");
  }
  size_t kept = 0;
  for (const std::string& stop : stops_)
    for (size_t size = std::min(stop.size() - 1, held_.size()); size > kept; --size)
      if (held_.ends_with(std::string_view(stop).substr(0, size))) kept = size;
  std::string shown = held_.substr(0, held_.size() - kept);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopTexts::End() { return std::exchange(held_, ""); }

}  // namespace mlc::text
