// lib/compress/compression.h - what the weights of a program are compressed to, and what that cost.
//
// The rules are given before the passes run; the pass compress fills in the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/compress/histogram.h"
#include "lib/compress/input_statistics.h"
#include "lib/compress/rules.h"
#include "lib/compress/stored_results.h"
#include "lib/ir/program.h"
#include "lib/support/progress.h"

namespace mlc::compress {

// The result for one weight. Tied weights, and those that several functions share, are one.
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
  // The same of what the weight computes, if that was measured.
  double output_error = 0, output_energy = 0;
  bool bias_corrected = false;
  bool equalised = false;  // factors were moved between it and other layers
  bool trained = false;
  std::string reason;  // why it is unchanged, or why `used` differs from `asked`

  double snr() const;  // dB; infinite without an error
  double output_snr() const;
};

// The loss of a program on samples, relative to its outputs before compression.
struct Loss {
  double noise = 0;  // energy of the error of the outputs, relative to that of the outputs
  // The same for the scores that outputs are probabilities of: on samples that a model is sure of, all
  // probabilities are 0 and 1, and tell little.
  double noise_of_scores = 0;
  // The largest error of any output, relative to the range of its values (lib/verify/compare.h).
  double peak = 0;
  std::map<std::string, double> peaks = {};  // by output, under its name in the source
  // The mean divergence of the distributions of the next token of a language model, in nats.
  std::optional<double> divergence = {};
  // How many independent errors were measured: the elements of outputs of all samples, but one for an
  // output with one element whose error is the same on all samples.
  double numbers = 0;

  double cost() const { return divergence.value_or(noise_of_scores); }
};

// A point of the curve of auto: what the program would lose at a size.
struct CurvePoint {
  std::string scheme;  // of all weights; empty: chosen for each weight
  uint64_t bytes = 0;  // of the weights of the rule
  double bits = 0;     // per element
  Loss loss;
  bool chosen = false;
};

// An activation in 8 bits: scale * (q - zero_point).
struct ActivationReport {
  std::string name;
  DType dtype = DType::kInt8;
  double scale = 0;
  int zero_point = 0;
  double low = 0, high = 0;  // of its values on the inputs
};

// A rule of placement that applies to operations on one compute unit because of the form of their
// weights.
struct UnitFinding {
  std::string rule, unit, severity, meaning, fix;
  int64_t operations = 0;
};

// A compressed weight that may be trained.
struct Tunable {
  std::vector<const Value*> values;  // the constants that hold it
  Tensor source, encoded;            // `encoded` is replaced
};
// The result of training compressed weights.
struct Tuned {
  int64_t steps = 0, samples = 0;
  int64_t weights = 0;  // that were replaced
  bool codes = false;   // integers and indices were trained, too, not only tables and scales
  std::string why;      // why none was
};

struct Compression {
  std::vector<Rule> rules;
  // Makes every encoded constant plain, whatever it is used for; there are no rules.
  bool decompress = false;

  // Measures what the weights of a program are multiplied by; empty: unknown. It is called for a few
  // weights at a time, so that later ones see inputs that earlier ones, compressed, have made.
  std::function<std::map<const Value*, InputSums>(const Program&,
                                                  const std::set<const Value*>& weights)>
      measure = {};
  // Observes values of a program; empty: unknown.
  std::function<std::map<const Value*, Histogram>(const Program&,
                                                  const std::set<const Value*>& values)>
      observe = {};
  int most_measures = 1;    // how often it is called, unless products would take too much memory
  std::string inputs = {};  // what it measures on: "16 samples"
  // Runs the program on samples, and compares its outputs with those before compression. Empty:
  // unknown.
  std::function<Loss(const Program&)> evaluate = {};
  int most_evaluations = 0;
  std::string evaluated_on = {};
  std::string observed_on = {};  // the inputs of `observe`
  // `evaluate` runs on inputs of the kind that `observe` has seen, perhaps on others or on more of them.
  bool evaluates_observed_kind = false;
  // Trains the weights of a program, so that its outputs become those before compression. Empty: not
  // asked for, or not possible.
  std::function<Tuned(const Program&, std::vector<Tunable>&)> tune = {};
  // The same on the generated inputs that a package is verified on by default.
  std::function<Loss(const Program&)> evaluate_generated = {};

  std::vector<CurvePoint> curve = {};  // of rules with auto
  std::optional<Loss> loss = {};       // of the compressed program
  std::optional<Loss> generated_loss = {};
  std::optional<Tuned> tuned = {};
  // In order of execution.
  std::vector<WeightReport> weights = {};
  std::vector<ActivationReport> activations = {};
  std::vector<UnitFinding> units = {};
  std::string ranges = {};  // how the ranges of activations were chosen
  // Activations that stay in fp16, and what the largest error of an output would be otherwise.
  std::vector<std::string> activations_left = {};
  double loss_in_8_bits = 0;
  // Names of constants that rules name, and which are encoded even if they are small.
  std::set<std::string> named = {};
  Progress progress = {};
  // The results of weights that are compressed already; null if none are kept.
  std::shared_ptr<StoredResults> stored = {};
  // Forgets the functions above, when what they refer to ends.
  void ReleaseFunctions() {
    measure = nullptr;
    observe = nullptr;
    tune = nullptr;
    evaluate = evaluate_generated = nullptr;
    progress = nullptr;
  }

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
