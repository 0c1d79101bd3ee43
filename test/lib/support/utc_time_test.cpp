#include "lib/support/utc_time.h"

#include "test/catch.h"

namespace mlc {

// Seconds printed by `date -u -d TEXT +%s`.
TEST_CASE("utc time: format and parse", "[support]") {
  CHECK(UtcText(0) == "1970-01-01T00:00:00Z");
  CHECK(UtcText(1772323199) == "2026-02-28T23:59:59Z");
  CHECK(ParseUtc("2026-02-28T23:59:59Z") == 1772323199);
  CHECK(ParseUtc("2024-02-29T00:00:00Z") == 1709164800);
  for (const char* text : {"", "zzz", "2026-02-29T00:00:00Z", "2026-2-28T0:0:0Z",
                           "2026-02-28T23:59:59", "2026-02-28T23:59:59Zx", " 2026-02-28T23:59:59Z",
                           "2026-02-28T24:00:00Z", "2026-02-28T23:59:60Z", "2026-02-28 23:59:59Z"})
    CHECK_FALSE(ParseUtc(text));
}

}  // namespace mlc
