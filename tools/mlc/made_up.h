// tools/mlc/made_up.h - inputs that are made up, as commands offer and report them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/analysis/made_up_inputs.h"
#include "tools/mlc/command.h"

namespace mlc {

// The flags --seed and --input-range of commands that make inputs up.
const std::vector<Flag>& MadeUpFlags();
// Error "usage" for a range of no input of the program, or of values that the input cannot have.
MadeUpOptions ReadMadeUp(const Invocation& invocation, const Program& program);
// What was made up and how, for people (lines; empty when nothing was) and as a JSON object.
std::string MadeUpText(const Function& function, const std::map<std::string, InputRange>& made,
                       const MadeUpOptions& options, int samples);
std::string MadeUpJson(const Function& function, const std::map<std::string, InputRange>& made,
                       const MadeUpOptions& options, int samples);

}  // namespace mlc
