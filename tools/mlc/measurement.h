// tools/mlc/measurement.h - what a compilation found out of fp16, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/driver/compile.h"

namespace mlc {

// "fp32", "fp16", "fp16 (3 % of the work fp32, not measured)".
std::string PrecisionText(const CompileResult& result);
// Lines behind the headline: why nothing was measured, and the trade-off of --precision mixed.
std::string MeasurementText(const CompileResult& result);
// "fp16_share", and "measurement" where there was one.
nlohmann::ordered_json MeasurementJson(const CompileResult& result);

}  // namespace mlc
