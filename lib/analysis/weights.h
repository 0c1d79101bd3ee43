// lib/analysis/weights.h - the constants that a program computes with, and the bytes that hold them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

// One constant as the network sees it. What decodes it (constexpr operations, or the encoding of a source's
// constant) makes it of several parts: data, scales, tables, masks.
struct Weight {
  std::string name;
  std::string_view
      encoding;  // the operator that gives it: "constexpr_lut_to_dense"; empty: it is held as it is
  DType dtype;   // of its elements, decoded
  Dims dims;
  std::vector<Tensor> parts;  // as they are held; without those that an earlier weight has, too
  uint64_t bytes = 0;         // of the parts

  int64_t elements() const { return ElementCount(dims); }
};

// The weights of all functions, in execution order: constants, decoded ones and literal operands, of ten elements
// and more, without those of strings. One that several functions or operations read from one place is there once.
std::vector<Weight> WeightsOf(const Program& program);

}  // namespace mlc
