// lib/compress/quantisers.h - weight compression schemes: a tensor and a scheme give an encoding.
#pragma once

#include <span>
#include <string_view>

#include "lib/ir/op_def.h"
#include "lib/ir/tensor.h"

namespace mlc::compress {

struct Quantiser {
  std::string_view name;  // as given on the command line
  std::string_view what;  // help text
  Opset since;            // first target with Core ML's operation for it
  // Quantises floats [..., out, in]: returns the same shape with an encoding that is computed on
  // reading, in blocks that need little memory. Weights that are already encoded are decoded first.
  // NaN stays NaN. The block of a value depends on its position only.
  Tensor (*apply)(const Tensor& weights);
};

//   fp16   no encoding
//   int8   one scale per row of the last dimension; the largest magnitude of the row maps to 127
//   int4   one scale per group of 32 in a row (or the largest divisor of the row up to 32, if that is
//          at least 8, else the row), chosen from several candidates by squared error
//   lut4   16 fp16 values per 32 rows (or the largest divisor of the rows up to 32), with the minimal
//          squared error
std::span<const Quantiser> Quantisers();
const Quantiser* FindQuantiser(std::string_view name);  // null: unknown

// The root mean square of made - weights, relative to that of weights, sampled over at most 131072
// elements.
double RelativeError(const Tensor& made, const Tensor& weights);

}  // namespace mlc::compress
