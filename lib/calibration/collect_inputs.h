// lib/calibration/collect_inputs.h - runs a program on samples and sums what its weights are
// multiplied by, and what values it computes.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "lib/calibration/samples.h"
#include "lib/compress/histogram.h"
#include "lib/compress/input_statistics.h"
#include "lib/ir/program.h"

namespace mlc::calibration {

struct Observed {
  // The inputs of constants that hold weights (lib/ir/op_def.h). Constants in blocks that do not
  // run, tables of gather, and recurrent weights of a hidden state have none. Sums are over at most
  // 512 evenly spaced vectors of each execution of an operation, and exact from one execution to the
  // next.
  std::map<const Value*, compress::InputSums> inputs;
  std::map<const Value*, compress::Histogram> values;
};

// Observes `weights` and `values` (inputs, and results of operations). `done` is called after each
// sample.
Observed Observe(const Program& program, const Samples& samples,
                 const std::set<const Value*>& weights, const std::set<const Value*>& values,
                 int threads = 0, const std::function<void()>& done = {});

}  // namespace mlc::calibration
