// lib/compress/quantisers.h - schemes by which weights take fewer bits: a tensor and a scheme give an encoding.
#pragma once

#include <span>
#include <string_view>

#include "lib/ir/op_def.h"
#include "lib/ir/tensor.h"

namespace mlc {

struct Quantiser {
  std::string_view name;  // as users write it
  std::string_view what;  // for a list in help
  Opset since;            // of Core ML's operation for it
  // Of floats [..., out, in]: the same with an encoding, which is made when it is read, in blocks that
  // need little memory; weights that are encoded already are decoded for it. Values that are no numbers
  // stay such. Which block a value is in follows from its place alone.
  Tensor (*apply)(const Tensor& weights);
};

//   fp16   no encoding
//   int8   rows of the last dimension share a scale, the greatest of a row is 127 of it
//   int4   32 of a row (or the largest part of 32 that divides it, at least 8; else all) share a scale, by
//          which their squared error is least of some tried
//   lut4   32 rows (or the largest part of 32 that divides them) share 16 values: those of the least squared
//          error that there are, in fp16
std::span<const Quantiser> Quantisers();
const Quantiser* FindQuantiser(std::string_view name);  // null: there is none

// Root mean square of made - weights by that of weights, over 131072 elements at most.
double RelativeError(const Tensor& made, const Tensor& weights);

}  // namespace mlc
