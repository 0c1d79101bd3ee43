// lib/calibration/collect_inputs.h - runs a program on samples and sums what its weights are
// multiplied by.
#pragma once

#include <map>
#include <set>

#include "lib/calibration/samples.h"
#include "lib/compress/input_statistics.h"
#include "lib/ir/program.h"

namespace mlc::calibration {

// Statistics of the inputs of constants that hold weights (lib/ir/op_def.h). Constants in blocks
// that do not run, tables of gather, and recurrent weights of a hidden state have none. Sums are
// over at most 512 evenly spaced vectors of each execution of an operation.
using InputSumsByWeight = std::map<const Value*, compress::InputSums>;
InputSumsByWeight CollectInputs(const Program& program, const Samples& samples,
                                const std::set<const Value*>& weights, int threads = 0);

}  // namespace mlc::calibration
