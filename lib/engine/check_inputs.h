// lib/engine/check_inputs.h - checks the inputs of a run against the declaration of the function.
#pragma once

#include <map>
#include <string>

#include "lib/ir/program.h"

namespace mlc::engine {

// Throws Error "bad-input" unless `inputs` are the inputs of the function, by MIL name, with the
// declared types and with sizes that agree with each other's symbols and lie within their bounds.
// `exact`: an fp16 input may be fp32.
void CheckInputs(const Function& function, const std::map<std::string, Tensor>& inputs, bool exact);

}  // namespace mlc::engine
