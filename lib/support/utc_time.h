// lib/support/utc_time.h - timestamps as written to logs: "2026-01-31T23:59:59Z".
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace mlc {

std::string UtcText(std::time_t time);
// nullopt for texts in any other format and for dates that do not exist.
std::optional<std::time_t> ParseUtc(std::string_view text);

}  // namespace mlc
