// lib/compress/quantise.h - a weight and a scheme give an encoding and its error.
//
// A weight is read once, block by block, to choose scales and tables, which are kept in memory. The
// integers and indices are computed when the result is read, so that compressing takes little
// memory. Results do not depend on the number of threads.
#pragma once

#include <span>
#include <string>

#include "lib/compress/scheme.h"
#include "lib/ir/tensor.h"

namespace mlc::compress {

struct Request {
  Scheme scheme;
  WeightOperand axes;
  // Scales and tables have the precision of fp16, whatever the dtype of the weight; it is known
  // that the weight will be narrowed.
  bool half = true;
  // What the operations of this target can express.
  Opset target = Opset::kIos26;
  // The importance of the inputs: the weight of the squared error of each column of the view
  // [outputs, inputs, kernel ...], such as the mean square of what is multiplied by it. Empty: 1.
  std::span<const float> importance = {};
  int threads = 0;  // 0: DefaultThreads()
};

struct Quantised {
  Tensor tensor;        // with the encoding; the weight itself if it was refused
  Scheme used;          // the scheme with legal block and group sizes
  std::string stepped;  // how and why `used` differs from the scheme that was asked for
  std::string refused;  // why nothing was done: "NaN or infinity"
  // Sums of squares: of the differences, and of the weight. With importance, each column counts as
  // much as it is important.
  double error = 0, energy = 0;
  uint64_t bytes = 0;  // size of the encoding in a package
};

// Quantises a float weight of any rank from 2. Encoded weights are decoded first.
Quantised Quantise(const Tensor& weight, const Request& request);

// Returns the scheme with the largest blocks and groups that are legal for a weight and at most as
// large as those of `scheme`, if they are at least half (of blocks: a quarter) as large; otherwise
// the next larger ones, up to a row or one table. `stepped` receives an explanation.
Scheme LegalScheme(const Scheme& scheme, const Dims& dims, const WeightOperand& axes,
                   std::string* stepped = nullptr);
// Before iOS18, scales may differ along one axis only: the matrices of a batch then share those of
// their rows. Returns the axes with which a weight is quantised.
WeightOperand LegalAxes(const Scheme& scheme, const Dims& dims, const WeightOperand& axes,
                        Opset target, std::string* stepped = nullptr);

// Signal to noise in dB; infinite without an error.
double SnrOf(double energy, double error);

}  // namespace mlc::compress
