// lib/compress/compression.h - what the weights of a program are compressed to, and what that cost.
//
// The rules are given before the passes run; the pass compress fills in the rest.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/compress/rules.h"
#include "lib/ir/tensor.h"

namespace mlc::compress {

// What became of a weight. Tied weights, and those that several functions share, are one.
struct WeightReport {
  std::string name;
  std::string consumer, op;  // the first operation that uses it, and its operator
  Dims dims;
  std::string asked, used;  // schemes; `asked` is empty if no rule selects it
  bool weight = false;      // an operand that holds weights; other constants are only listed
  bool compressed = false;  // whether it was changed
  uint64_t bytes_before = 0, bytes_after = 0;  // in a package of the program's precision
  // The sums of squares of the changes and of the weight, of a compressed weight.
  double error = 0, energy = 0;
  std::string reason;  // why it is unchanged, or why `used` differs from `asked`

  double snr() const;  // dB; infinite without an error
};

struct Compression {
  std::vector<Rule> rules;
  // Makes every encoded constant plain, whatever it is used for; there are no rules.
  bool decompress = false;

  // The importance of the inputs of weights, by the name of the constant (Request::importance in
  // quantise.h); a weight without an entry has inputs of equal importance.
  std::map<std::string, std::vector<float>> importance = {};

  // In order of execution.
  std::vector<WeightReport> weights = {};
  // Names of constants that rules name, and which are encoded even if they are small.
  std::set<std::string> named = {};
  bool done = false;  // the pass has run: it changes a program once
};

struct Totals {
  int64_t weights = 0, compressed = 0;  // weights, and other constants that were compressed
  uint64_t bytes_before = 0, bytes_after = 0;
  double error = 0, energy = 0;  // of the compressed weights
};
Totals TotalsOf(const std::vector<WeightReport>& weights);

// The report as JSON: the rules, totals, and an entry for each weight, as in manifests.
std::string CompressionJson(const Compression& compression);

// The lowest target that supports all schemes of the rules.
Opset Since(const std::vector<Rule>& rules);
// Error "target-too-old" if the target lacks the operations for a scheme; it names the scheme, the
// first target that has them, and what the target supports.
void CheckTarget(const std::vector<Rule>& rules, Opset target);

}  // namespace mlc::compress
