// lib/passes/weight_candidates.h - the constants of a program that may be compressed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/compress/compression.h"
#include "lib/compress/input_statistics.h"
#include "lib/ir/program.h"

namespace mlc::passes {

// Constants of a program that have the same elements.
struct Candidate {
  std::vector<Value*> values;
  Tensor tensor;  // perhaps encoded
  Tensor source;  // before it was compressed, if it may be trained
  compress::Subject subject;
  std::optional<WeightOperand> axes;  // of the first use as a weight
  bool decoded = false;               // by constexpr operations of the program
  bool is_output = false;
  const compress::Rule* rule = nullptr;
  compress::Scheme scheme;  // of the rule, or what auto has chosen
  bool named = false;
  compress::WeightReport report;
  compress::InputStatistics inputs;  // while it is compressed
};

// The float constants of all functions, in order of execution, also those that constexpr operations
// decode.
std::vector<std::unique_ptr<Candidate>> CollectCandidates(Program& program);

// Finds the rule of each candidate. Error "bad-name" for a rule that selects nothing.
void SelectRules(const std::vector<compress::Rule>& rules,
                 std::vector<std::unique_ptr<Candidate>>& candidates);

bool HasEncoding(const Candidate& candidate);
// The bias that is added to what a weight computes, and to nothing else; null if there is none.
Operation* BiasOf(const Candidate& candidate);
// Adds the correction of a quantised weight to a bias.
void CorrectBias(Operation& bias, std::span<const float> correction);
// The size of a constant in a package, as it is; `dtype` is that of plain floats.
uint64_t BytesOf(const Candidate& candidate, DType dtype);

}  // namespace mlc::passes
