// tools/mlc/generated_inputs_report.h - reports generated inputs as text.
#pragma once

#include <map>
#include <string>

#include "lib/analysis/generated_inputs.h"

namespace mlc::driver {

// Describes in lines of text which inputs were generated and how; empty if none.
std::string GeneratedInputsText(const Function& function,
                                const std::map<std::string, analysis::InputRange>& made,
                                const analysis::GeneratedInputOptions& options, int samples);

}  // namespace mlc::driver
