// lib/text/stop_strings.h - detects stop strings in streamed text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mlc::text {

// The output ends before the stop string that is completed first; if several are completed by the
// same character, before the longest. The result does not depend on how the text is split into
// pieces.
class StopTexts {
 public:
  // Empty strings are ignored.
  explicit StopTexts(std::vector<std::string> stops);
  // Returns the text that is safe to show: it excludes any possible beginning of a stop string.
  // Returns nothing after a stop.
  std::string Add(std::string_view piece);
  bool stopped() const { return stopped_; }
  // Returns the withheld text at the end of the stream.
  std::string End();

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace mlc::text
