// tools/mlc/generated_inputs_report.h - reports generated inputs as text and as JSON.
#pragma once

#include <map>
#include <string>

#include "lib/analysis/generated_inputs.h"

namespace mlc::driver {

// Describes which inputs were generated and how: as lines of text (empty if none) and as a JSON
// object.
std::string GeneratedInputsText(const Function& function,
                                const std::map<std::string, analysis::InputRange>& made,
                                const analysis::GeneratedInputOptions& options, int samples);
std::string GeneratedInputsJson(const Function& function,
                                const std::map<std::string, analysis::InputRange>& made,
                                const analysis::GeneratedInputOptions& options, int samples);

}  // namespace mlc::driver
