// tools/driver/explain.h - explains which operations of a model a compute unit can execute, why it
// cannot execute the others, and what to do about them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/analysis/placement_rules.h"
#include "tools/driver/compile.h"

namespace mlc::driver {

struct ExplainOptions {
  CompileOptions compile;  // of a source model
  analysis::Unit unit = analysis::Unit::kNeuralEngine;
  analysis::Chip chip = analysis::DefaultChip();
  std::optional<double> fail_under;  // minimum coverage of each function, in percent of its work
  // The output of `mlc run --json` on a device, to compare with the rules; empty: none.
  std::filesystem::path measured;
};

// The names of all chips, separated by commas.
std::string ChipNames();

// The consequences of one rule for a function.
struct RuleImpact {
  const analysis::PlacementRule* rule;
  std::vector<size_t> findings;   // indices into Placement::findings
  double work = 0;                // of the operations that it applies to
  double work_share_without = 0;  // coverage if the rule did not apply (severity: cannot run)
};
// Rules that apply to a function: by severity, worst first, then by work.
std::vector<RuleImpact> ImpactsOf(const analysis::Placement& placement);

// A difference between the rules and what a device did.
struct Contradiction {
  const Operation* op;
  std::string device;  // where it ran
  std::string text;    // what the rules say
};

struct Explanation {
  std::shared_ptr<const Program> program;
  bool compiled = false;                        // whether the model was a source model
  std::vector<analysis::Placement> placements;  // by function, then by sizes
  std::vector<analysis::PlacementFinding> package;
  // Operations in `measured` that the unit ran against a rule, or did not run without one.
  // `refused`: a rule forbids the operation, but it ran. `allowed`: no rule forbids it.
  std::vector<Contradiction> allowed, refused;
  int64_t compared = 0;

  double lowest_share() const;  // of the work, over all functions and sizes
  // True if every function reaches ExplainOptions::fail_under.
  bool Passes(const ExplainOptions& options) const;
};

// The sizes of the inputs of a placement; those that depend on data are left out.
std::map<std::string, int64_t> InputSizes(const analysis::Placement& placement);
// The place of an operation in the source model; "" in a package, where it would repeat the name.
std::string PlaceInSource(const Operation& op);

// Explains a package as it is, or a source model as `mlc compile` would write it. Throws the errors
// of Import and Compile; "bad-file" if `measured` names no devices.
Explanation Explain(const std::filesystem::path& model, const ExplainOptions& options,
                    Diagnostics& diagnostics);

}  // namespace mlc::driver
