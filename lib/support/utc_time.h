// lib/support/utc_time.h - points in time as logs have them: "2026-01-31T23:59:59Z".
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace mlc {

std::string UtcText(std::time_t time);
// Nothing for what UtcText does not write: other forms, days that no calendar has.
std::optional<std::time_t> ParseUtc(std::string_view text);

}  // namespace mlc
