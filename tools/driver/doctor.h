// tools/driver/doctor.h - a linter for models: finds what is likely to fail or to be slow in an
// app.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/analysis/rule.h"
#include "tools/driver/import.h"

namespace mlc::driver {

// The linter's own rules, of severity note or warning. It also applies those rules of placement
// (lib/analysis/placement_rules.h) that say what the Neural Engine cannot run or computes wrongly.
std::span<const analysis::Rule> DoctorRules();

struct Finding {
  const analysis::Rule* rule;
  analysis::Severity severity;  // kNote or kWarning
  std::string place;  // "input \"x\"", "function \"f\", output \"y\"", "" for the model as a whole
  std::string text;   // what was found
  std::string help;   // what to do
};

// Examines a model of any supported format: the contents of a package, or what compiling a source
// model would produce. Findings are in the order of the rules. Throws the errors of Import.
std::vector<Finding> Examine(const std::filesystem::path& model, const ImportOptions& options,
                             Diagnostics& diagnostics);

}  // namespace mlc::driver
