// tools/driver/doctor.h - what of a model is likely to fail or to be slow in an app: a linter.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/driver/import.h"

namespace mlc {

// A rule of the linter. kWarning: fails, or costs much, for most who meet it; kNote: worth knowing.
struct DoctorRule {
  std::string_view id;
  enum class Severity { kNote, kWarning } severity;
  std::string_view meaning;  // for the list of rules
};
std::span<const DoctorRule> DoctorRules();
std::string_view Name(DoctorRule::Severity severity);  // "note", "warning"

struct Finding {
  const DoctorRule* rule;
  std::string place;  // "input \"x\"", "function \"f\", output \"y\"", "" for the model as a whole
  std::string text;   // what was found
  std::string help;   // what to do
};

// Looks at a model of any format that mlc reads: of a package what is in it, of a source model what compiling would
// meet. Findings in the order of the rules. Throws what Import throws.
std::vector<Finding> Examine(const std::filesystem::path& model, const ImportOptions& options,
                             Diagnostics& diagnostics);

}  // namespace mlc
