// lib/analysis/weight_bytes.h - the weights of a program and their sizes in bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::analysis {

// A constant as the network uses it. An encoded weight (by constexpr operations or in the encoding
// of its source) consists of several parts: data, scales, tables, masks.
struct Weight {
  std::string name;
  std::string_view encoding;  // the operator that decodes it; empty if it is dense
  DType dtype;                // type of the decoded elements
  Dims dims;
  std::vector<Tensor> parts;  // the stored tensors, without those that an earlier weight contains
  uint64_t bytes = 0;         // total size of the parts

  int64_t elements() const { return ElementCount(dims); }
};

// Returns the weights of all functions in execution order: dense constants, encoded constants and
// literal operands with at least ten elements, except strings. A weight that several functions or
// operations share is listed once.
std::vector<Weight> WeightsOf(const Program& program);

}  // namespace mlc::analysis
