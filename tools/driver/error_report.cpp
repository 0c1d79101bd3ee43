// The report of a command that ends with errors.
#include <fmt/ranges.h>

#include "tools/driver/errors.h"
#include "tools/driver/reports.h"

namespace mlc::driver {

using report::Cell;
using report::Mark;

report::Document ErrorReport(std::string_view command, const std::string& subject,
                             const std::vector<Error>& errors) {
  report::Document document{fmt::format("mlc {} {}", command, subject), std::string(command),
                            Cell("ERROR", Mark::kBad)};
  report::Table table{"", {{"error"}, {"location"}, {"notes"}}, {}};
  for (const Error& error : errors) {
    table.rows.push_back(
        {Cell(WithFlags(fmt::format("[{}] {}", error.id(), error.text())), Mark::kBad),
         error.location().ToString(),
         WithFlags(fmt::format("{}", fmt::join(error.notes(), "; ")))});
    document.checks.push_back(
        {report::Check::Outcome::kError, subject, error.id(), WithFlags(error.text())});
  }
  document.sections.push_back({"Errors", {std::move(table)}});
  return document;
}

}  // namespace mlc::driver
