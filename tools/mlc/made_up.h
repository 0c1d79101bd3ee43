// tools/mlc/made_up.h - inputs that are made up, as commands report them.
#pragma once

#include <map>
#include <string>

#include "lib/analysis/made_up_inputs.h"

namespace mlc {

// What was made up and how, for people (lines; empty when nothing was) and as a JSON object.
std::string MadeUpText(const Function& function, const std::map<std::string, InputRange>& made,
                       const MadeUpOptions& options, int samples);
std::string MadeUpJson(const Function& function, const std::map<std::string, InputRange>& made,
                       const MadeUpOptions& options, int samples);

}  // namespace mlc
