// tools/mlc/generated_inputs_report.h - inputs that are made up, as commands report them.
#pragma once

#include <map>
#include <string>

#include "lib/analysis/generated_inputs.h"

namespace mlc {

// What was made up and how, for people (lines; empty when nothing was) and as a JSON object.
std::string GeneratedInputsText(const Function& function,
                                const std::map<std::string, InputRange>& made,
                                const GeneratedInputOptions& options, int samples);
std::string GeneratedInputsJson(const Function& function,
                                const std::map<std::string, InputRange>& made,
                                const GeneratedInputOptions& options, int samples);

}  // namespace mlc
