// tools/mlc/precision_report.h - formats the fp16 measurements of a compilation as text and as
// JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/driver/compile.h"

namespace mlc::driver {

// "fp32", "fp16", "fp16 (3 % of the work fp32, not measured)".
std::string PrecisionText(const CompileResult& result);
// Returns the lines below the headline: why nothing was measured, and the trade-off of --precision
// mixed.
std::string MeasurementText(const CompileResult& result);
// Contains "fp16_share", and "measurement" if there was one.
nlohmann::ordered_json MeasurementJson(const CompileResult& result);

}  // namespace mlc::driver
