#include "lib/support/utc_time.h"

namespace mlc {

namespace {
constexpr char kFormat[] = "%Y-%m-%dT%H:%M:%SZ";
}  // namespace

std::string UtcText(std::time_t time) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, kFormat, &parts)};
}

std::optional<std::time_t> ParseUtc(std::string_view text) {
  std::tm parts{};
  if (!strptime(std::string(text).c_str(), kFormat, &parts)) return std::nullopt;
  const std::time_t time = timegm(&parts);
  // strptime also accepts "2026-2-31T1:0:0Z" and text after the Z.
  if (UtcText(time) != text) return std::nullopt;
  return time;
}

}  // namespace mlc
