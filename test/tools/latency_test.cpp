// Verdicts on measured times.
#include "tools/driver/latency.h"

#include "test/catch.h"

namespace mlc::driver {
namespace {

TEST_CASE("latency: the fastest and the slowest round do not count", "[latency]") {
  const Latency latency = LatencyOf({900, 10, 12, 11, 1});
  CHECK(latency.median_ms == 11);
  CHECK(latency.low_ms == 10);
  CHECK(latency.high_ms == 12);
}

TEST_CASE("latency: there is a verdict only where the rounds agree", "[latency]") {
  const Latency latency = LatencyOf({9, 10, 11, 12, 90});
  CHECK(Judge(latency, 12) == LatencyVerdict::kWithin);
  CHECK(Judge(latency, 11.5) == LatencyVerdict::kUnclear);
  CHECK(Judge(latency, 10) == LatencyVerdict::kUnclear);
  CHECK(Judge(latency, 9.9) == LatencyVerdict::kExceeded);
}

}  // namespace
}  // namespace mlc::driver
