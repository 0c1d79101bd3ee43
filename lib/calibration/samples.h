// lib/calibration/samples.h - the inputs that a program is run on for calibration.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/verify/compare_functions.h"

namespace mlc::calibration {

// One or more steps from initial states.
using Sample = std::vector<verify::StepInputs>;

struct Samples {
  std::map<std::string, std::vector<Sample>> functions;  // by name
  std::string description;  // "16 samples", "generated inputs: pictures in 0..1"
  bool generated = false;

  int64_t count() const;
};

}  // namespace mlc::calibration
