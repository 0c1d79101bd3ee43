// tools/driver/doctor.h - a linter for models: finds what is likely to fail or to be slow in an
// app.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/driver/import.h"

namespace mlc::driver {

// A rule of the linter. kWarning: likely to fail or to be expensive; kNote: for information.
struct DoctorRule {
  std::string_view id;
  enum class Severity { kNote, kWarning } severity;
  std::string_view meaning;  // shown in the list of rules
};
std::span<const DoctorRule> DoctorRules();
std::string_view Name(DoctorRule::Severity severity);  // "note", "warning"

struct Finding {
  const DoctorRule* rule;
  std::string place;  // "input \"x\"", "function \"f\", output \"y\"", "" for the model as a whole
  std::string text;   // what was found
  std::string help;   // what to do
};

// Examines a model of any supported format: the contents of a package, or what compiling a source
// model would produce. Findings are in the order of the rules. Throws the errors of Import.
std::vector<Finding> Examine(const std::filesystem::path& model, const ImportOptions& options,
                             Diagnostics& diagnostics);

}  // namespace mlc::driver
