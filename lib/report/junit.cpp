#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/report/markup.h"
#include "lib/report/render.h"
#include "lib/support/error.h"

namespace mlc::report {

namespace {

struct Counts {
  size_t failures = 0, errors = 0, skipped = 0;
  double milliseconds = 0;
};

std::string CaseText(const Check& check, std::string_view command) {
  std::string text =
      fmt::format("    <testcase classname=\"mlc.{}.{}\" name=\"{}\"", MarkupText(command),
                  MarkupText(check.group), MarkupText(check.name));
  if (check.milliseconds > 0) text += fmt::format(" time=\"{:.3f}\"", check.milliseconds / 1000);
  const std::string said = MarkupText(check.text);
  switch (check.outcome) {
    case Check::Outcome::kPassed:
      return text + (said.empty() ? "/>\n"
                                  : fmt::format("><system-out>{}</system-out></testcase>\n", said));
    case Check::Outcome::kFailed:
      return text +
             fmt::format("><failure type=\"check-failed\" message=\"{}\"/></testcase>\n", said);
    case Check::Outcome::kError:
      return text + fmt::format("><error type=\"error\" message=\"{}\"/></testcase>\n", said);
    case Check::Outcome::kSkipped:
      return text + fmt::format("><skipped message=\"{}\"/></testcase>\n", said);
  }
  return text;
}

}  // namespace

// Elements and attributes are those of junit-10.xsd of Jenkins' xunit plugin: `testsuite` requires
// name, tests, failures and errors; `testsuites` has no attribute `skipped`; times match
// [0-9]*(\.[0-9]*)?, in seconds.
std::string JUnit(const Document& document) {
  if (document.checks.empty())
    throw Error("usage", "option 'report': mlc {} checks nothing that a test report could list",
                document.command)
        .Expected("a file that ends in .html, .md, .json or .txt");
  std::vector<std::string_view> groups;  // in order of appearance
  std::map<std::string_view, std::pair<Counts, std::string>> suites;
  for (const Check& check : document.checks) {
    if (!suites.contains(check.group)) groups.push_back(check.group);
    auto& [counts, cases] = suites[check.group];
    counts.failures += check.outcome == Check::Outcome::kFailed;
    counts.errors += check.outcome == Check::Outcome::kError;
    counts.skipped += check.outcome == Check::Outcome::kSkipped;
    counts.milliseconds += check.milliseconds;
    cases += CaseText(check, document.command);
  }
  Counts all;
  std::string text;
  for (const std::string_view group : groups) {
    const auto& [counts, cases] = suites[group];
    all.failures += counts.failures;
    all.errors += counts.errors;
    all.milliseconds += counts.milliseconds;
    const auto tests = std::ranges::count(document.checks, group, &Check::group);
    text += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
        "time=\"{:.3f}\">\n{}  </testsuite>\n",
        MarkupText(group), tests, counts.failures, counts.errors, counts.skipped,
        counts.milliseconds / 1000, cases);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" tests=\"{}\" "
      "failures=\"{}\" errors=\"{}\" time=\"{:.3f}\">\n{}</testsuites>\n",
      MarkupText(document.title), document.checks.size(), all.failures, all.errors,
      all.milliseconds / 1000, text);
}

}  // namespace mlc::report
