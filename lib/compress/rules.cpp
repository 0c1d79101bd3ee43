#include "lib/compress/rules.h"

#include <algorithm>

#include "lib/support/error.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"

namespace mlc::compress {

namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Returns the end of the rule that `text` begins with.
size_t EndOfRule(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == ';') return at;
    if (text[at] == ',' && !BeginsWithOption(Trimmed(text.substr(at + 1)))) return at;
  }
  return text.size();
}

Rule ParseRule(std::string_view text) {
  size_t equals = std::string_view::npos;
  if (!BeginsWithScheme(text))
    // The last '=' that a scheme follows: names may contain the character.
    for (size_t at = text.find('='); at != std::string_view::npos; at = text.find('=', at + 1))
      if (equals == std::string_view::npos || BeginsWithScheme(Trimmed(text.substr(at + 1))))
        equals = at;
  if (equals == std::string_view::npos) return {"", ParseScheme(text)};
  const std::string_view selector = Trimmed(text.substr(0, equals));
  if (selector.empty())
    throw Error("usage", "option 'compress': \"{}\": the selector is empty", text)
        .Expected("SELECTOR=SCHEME, e.g. conv=int8");
  const std::string_view scheme = Trimmed(text.substr(equals + 1));
  if (scheme.empty())
    throw Error("usage", "option 'compress': \"{}\": the scheme is missing", text)
        .Expected("SELECTOR=SCHEME, e.g. conv=int8");
  return {std::string(selector), ParseScheme(scheme)};
}

// Appends the rules of a line.
void ParseLine(std::string_view line, std::vector<Rule>& rules) {
  while (!line.empty()) {
    const size_t end = EndOfRule(line);
    if (const std::string_view rule = Trimmed(line.substr(0, end)); !rule.empty())
      rules.push_back(ParseRule(rule));
    else if (end < line.size())
      throw Error("usage", "option 'compress': there is an empty rule before \"{}\"",
                  line.substr(end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
}

}  // namespace

std::vector<Rule> ParseRules(std::string_view text) {
  std::vector<Rule> rules;
  if (text.starts_with('@')) {
    const std::string path(text.substr(1));
    const auto file = MappedFile::Open(path);
    std::string_view all = AsText(file->bytes());
    for (int number = 1; !all.empty(); ++number) {
      const size_t end = std::min(all.find('\n'), all.size());
      const std::string_view line = all.substr(0, end);
      try {
        ParseLine(Trimmed(line.substr(0, line.find('#'))), rules);
      } catch (Error& error) {
        throw error.Note("in line {} of \"{}\"", number, path);
      }
      all.remove_prefix(std::min(end + 1, all.size()));
    }
  } else {
    ParseLine(Trimmed(text), rules);
  }
  if (rules.empty())
    throw Error("usage", "option 'compress': \"{}\" contains no rule", text)
        .Expected("[SELECTOR=]SCHEME, e.g. int8 or conv=pal4:group=16");
  return rules;
}

std::string Text(const std::vector<Rule>& rules) {
  std::string text;
  for (const Rule& rule : rules)
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ";", rule.selector,
                        rule.selector.empty() ? "" : "=", Text(rule.scheme));
  return text;
}

bool MatchesGlob(std::string_view pattern, std::string_view name) {
  // Backtracks to the last *, which takes one more character.
  size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Match MatchOf(std::string_view selector, const Subject& subject) {
  if (selector.empty()) return Match::kAny;
  if (std::ranges::find(subject.names, selector) != subject.names.end()) return Match::kName;
  if (std::ranges::find(subject.types, selector) != subject.types.end()) return Match::kType;
  if ((selector == "first" && subject.first) || (selector == "last" && subject.last))
    return Match::kAny;
  for (const auto* names : {&subject.names, &subject.consumers})
    for (const std::string& name : *names)
      if (MatchesGlob(selector, name)) return Match::kAny;
  return Match::kNone;
}

}  // namespace mlc::compress
