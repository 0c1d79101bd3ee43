#include <nlohmann/json.hpp>

#include "tools/driver/json_results.h"

namespace mlc::driver {

using Json = nlohmann::ordered_json;

Json TelemetryJson(const runtime::Snapshot& telemetry) {
  Json failures = Json::object();
  for (int i = 0; i < runtime::kFailures; ++i)
    if (telemetry.failures[i] > 0)
      failures[std::string(Name(static_cast<runtime::Failure>(i)))] = telemetry.failures[i];
  Json json{{"predictions", telemetry.predictions},
            {"succeeded", telemetry.succeeded},
            {"failed", telemetry.failed},
            {"refused", telemetry.refused},
            {"fallbacks", telemetry.fallbacks},
            {"loads", telemetry.loads},
            {"failures", failures},
            {"resident_bytes", telemetry.resident_bytes},
            {"resident_high_water", telemetry.resident_high_water}};
  if (telemetry.success_rate) json["success_rate"] = *telemetry.success_rate;
  if (telemetry.growth_per_100) json["growth_per_100_predictions"] = *telemetry.growth_per_100;
  return json;
}

}  // namespace mlc::driver
