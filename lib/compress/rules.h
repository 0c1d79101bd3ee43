// lib/compress/rules.h - the rules of `--compress`: which weights are stored in which scheme.
//
//   RULE[;RULE]...      RULE is [SELECTOR=]SCHEME; the last rule that selects a weight applies
//   @FILE               one rule per line; text from # on is a comment
//
// A comma may stand for a semicolon: it begins a rule unless an option of a scheme follows. So
// "conv=pal4:group=16,vec=2,linear=int8" has two rules, and no shell needs quotes except for globs.
//
// A selector is an operator type (conv), the name of a weight or of an operation that uses it, or a
// glob of either (* and ?), `first` or `last` (the first and last weight of a function, in order of
// execution). A rule without a selector selects every weight.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/compress/scheme.h"

namespace mlc::compress {

struct Rule {
  std::string selector;  // empty: every weight
  Scheme scheme;

  bool operator==(const Rule&) const = default;
};

// Parses rules; reads the file that @FILE names. Error "usage" for an invalid rule, or if there is
// none.
std::vector<Rule> ParseRules(std::string_view text);
// The rules in the canonical form, separated by semicolons.
std::string Text(const std::vector<Rule>& rules);

// Returns whether a name matches a pattern, in which * stands for any text and ? for any character.
bool MatchesGlob(std::string_view pattern, std::string_view name);
inline bool IsGlob(std::string_view selector) {
  return selector.find_first_of("*?") != std::string_view::npos;
}

// A constant that rules may select.
struct Subject {
  std::vector<std::string> names;       // of the constants: a tied weight may have several
  std::vector<std::string> consumers;   // names of the operations that use it
  std::vector<std::string_view> types;  // their operators
  bool weight = false;  // an operand that holds weights; other constants must be named
  bool first = false, last = false;
};
// How a selector refers to a constant. kName and kType may select constants that are not weights.
enum class Match : uint8_t { kNone, kAny, kType, kName };
Match MatchOf(std::string_view selector, const Subject& subject);

}  // namespace mlc::compress
