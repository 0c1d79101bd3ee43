// lib/compress/quantise.h - a weight and a scheme give an encoding and its error.
//
// A weight is read once, block by block, to choose scales and tables, which are kept in memory. The
// integers and indices are computed when the result is read, so that compressing takes little
// memory. Results do not depend on the number of threads.
#pragma once

#include <span>
#include <string>

#include "lib/compress/input_statistics.h"
#include "lib/compress/legal_scheme.h"
#include "lib/compress/scheme.h"
#include "lib/ir/tensor.h"

namespace mlc::compress {

struct Request {
  Scheme scheme;
  WeightOperand axes;
  // Scales and tables have the precision of fp16, whatever the dtype of the weight; it is known
  // that the weight will be narrowed.
  bool half = true;
  // The result is limited to what the operations of this target can express.
  Opset target = Opset::kIos26;
  // What the columns of the view [outputs, inputs, kernel ...] are multiplied by; null: unknown, and
  // the error of the weight itself is minimised. With products, integers and indices are chosen for
  // the least error of the output (assignment.h); else columns count by the mean square of their
  // inputs.
  const InputStatistics* inputs = nullptr;
  bool bias = false;  // a bias will be corrected by Quantised::bias
  // Only estimates the result: scales and tables are chosen, but integers and indices are the nearest
  // ones. Much faster with products.
  bool estimate = false;
  int threads = 0;  // 0: DefaultThreads()
};

struct Quantised {
  Tensor tensor;                 // with the encoding; the weight itself if it was refused
  Scheme used;                   // the scheme with legal block and group sizes
  std::string stepped;           // how and why `used` differs from the scheme that was asked for
  std::string refused;           // why nothing was done: "NaN or infinity"
  double error = 0, energy = 0;  // sums of squares: of the differences, and of the weight
  // With inputs: the same of the output, as means over the inputs, summed over the rows; and what
  // the bias of each row becomes larger by, if there is one.
  double output_error = 0, output_energy = 0;
  std::vector<float> bias;
  uint64_t bytes = 0;  // size of the encoding in a package
};

// Quantises a float weight of any rank from 2. Encoded weights are decoded first.
Quantised Quantise(const Tensor& weight, const Request& request);

// Signal to noise in dB; infinite without an error.
double SnrOf(double energy, double error);

}  // namespace mlc::compress
