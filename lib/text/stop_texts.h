// lib/text/stop_texts.h - ends text that comes piece by piece where one of some texts comes up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mlc {

// The text ends before the stop text that is complete first, the longest of those that are complete
// at once, wherever its pieces are cut.
class StopTexts {
 public:
  // Empty ones count for nothing.
  explicit StopTexts(std::vector<std::string> stops);
  // What may be shown by now: no part of what may become a stop text. Nothing once it stopped.
  std::string Add(std::string_view piece);
  bool stopped() const { return stopped_; }
  // The text is over: what was held back.
  std::string End();

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace mlc
