// lib/analysis/rule.h - what the rules of the linter and of placement have in common: an identifier,
// a meaning, a source and a fix.
#pragma once

#include <cstdint>
#include <string_view>

namespace mlc::analysis {

// How bad it is if a rule applies.
enum class Severity : uint8_t {
  kNote,        // for information
  kSlow,        // runs slower, or needs more memory, than another form would
  kWarning,     // likely to fail or to be expensive
  kInaccurate,  // may compute wrong or imprecise numbers
  kCannotRun,   // does not run on the compute unit
};
std::string_view Name(Severity severity);  // "note", "slow", "warning", "inaccurate", "cannot run"

// How well a source supports a rule.
enum class Standing : uint8_t {
  kApple,     // text published by Apple
  kCode,      // read in published source code
  kMeasured,  // measured on devices by others, with published figures
  kClaim,     // stated by others without figures
};
std::string_view Name(Standing standing);  // "Apple", "source code", "measured", "claim"

struct Rule {
  std::string_view id;  // kebab-case, stable
  Severity severity;
  std::string_view meaning;  // a noun phrase or a sentence, without a period
  Standing standing;
  std::string_view source;  // where the claim was published; conflicting sources are both named
  std::string_view fix;     // what to do, or why nothing can be done
};

}  // namespace mlc::analysis
