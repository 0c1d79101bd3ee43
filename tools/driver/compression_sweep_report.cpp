// The report of a sweep over compression schemes.
#include <algorithm>

#include "tools/driver/compression_sweep.h"
#include "tools/driver/errors.h"
#include "tools/driver/output_path.h"

namespace mlc::driver {

using report::Cell;
using report::Mark;
using report::Quantity;

namespace {

bool OnText(const CompressionSweepResult& result) {
  return std::ranges::any_of(result.rows,
                             [](const CompressionSweepRow& row) { return row.text.has_value(); });
}

// What a scheme is judged by.
std::optional<double> ErrorOf(const CompressionSweepRow& row) {
  return row.text ? row.text->figures.divergence : row.max_error;
}

Mark MarkOf(const CompressionSweepRow& row) { return row.within ? Mark::kNone : Mark::kBad; }

report::Chart ErrorChart(const CompressionSweepResult& result) {
  const std::string what = OnText(result) ? "mean divergence" : "max error";
  report::Chart chart;
  chart.title = what + " by size";
  chart.x = {"size of the package", Quantity::kBytes};
  chart.y = {what, Quantity::kError, true};
  chart.series = {{"schemes", {}, false, true, true}};
  for (const CompressionSweepRow& row : result.rows)
    if (const std::optional<double> error = ErrorOf(row); error && row.bytes > 0)
      chart.series[0].points.push_back(
          {static_cast<double>(row.bytes), *error, row.scheme, MarkOf(row)});
  return chart;
}

report::Check CheckOf(const CompressionSweepRow& row, const std::string& model) {
  report::Check check{report::Check::Outcome::kPassed, model, row.scheme};
  if (row.times) check.milliseconds = row.times->p50;
  if (!row.errors.empty()) {
    check.outcome = report::Check::Outcome::kError;
    check.text = WithFlags(row.errors[0].text());
    return check;
  }
  if (!row.within) check.outcome = report::Check::Outcome::kFailed;
  check.text = fmt::format("{} {:.2g}{}", row.text ? "mean divergence" : "max error",
                           ErrorOf(row).value_or(0), row.within ? "" : ", over the budget");
  return check;
}

}  // namespace

report::Table CompressionSweepTable(const CompressionSweepResult& result) {
  const bool text = OnText(result);
  report::Table table;
  table.shown = 0;
  table.columns = {
      {"scheme"}, {"target"}, {"package", Quantity::kBytes}, {"weights", Quantity::kBytes}};
  const std::vector<report::Column> figures =
      text ? std::vector<report::Column>{{"perplexity"},
                                         {"mean divergence", Quantity::kError},
                                         {"same top token", Quantity::kShare}}
           : std::vector<report::Column>{
                 {"max error", Quantity::kError}, {"RMSE", Quantity::kError}, {"worst output"}};
  table.columns.insert(table.columns.end(), figures.begin(), figures.end());
  table.columns.push_back({"p50", Quantity::kMilliseconds});
  table.columns.push_back({"p95", Quantity::kMilliseconds});
  for (const CompressionSweepRow& row : result.rows) {
    std::vector<Cell> cells(table.columns.size());
    cells[0] = row.scheme;
    cells[1] = row.target;
    if (row.bytes > 0) {
      cells[2] = row.bytes;
      cells[3] = row.weight_bytes;
    }
    if (row.text) {
      const verify::AgreementFigures& of = row.text->figures;
      cells[4] = fmt::format("{:.4f}", of.value.perplexity);
      cells[5] = Cell(of.divergence, MarkOf(row));
      cells[6] = of.top1;
    } else if (row.max_error && !text) {
      cells[4] = Cell(*row.max_error, MarkOf(row));
      cells[5] = row.rmse.value_or(0);
      cells[6] = row.worst;
    }
    if (row.times) {
      cells[7] = row.times->p50;
      cells[8] = row.times->p95;
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

report::Document CompressionSweepReport(const std::filesystem::path& model,
                                        const CompressionSweepResult& result) {
  const std::string name = WithoutSlash(model).filename().string();
  report::Document document{"Compression of " + name, "sweep"};
  document.facts = {{"source", name}};
  report::Facts failures;
  const CompressionSweepRow *measured = nullptr, *timed = nullptr;
  for (const CompressionSweepRow& row : result.rows) {
    if (row.text && !measured) measured = &row;
    if (row.times && !timed) timed = &row;
    for (const Error& error : row.errors)
      failures.push_back({row.scheme, Cell(WithFlags(error.text()), Mark::kBad)});
    document.checks.push_back(CheckOf(row, name));
  }
  if (measured)
    document.facts.push_back({"perplexity of the source",
                              fmt::format("{:.4f}", measured->text->figures.reference.perplexity)});
  else
    document.facts.push_back({"error", verify::kErrorFigure});
  if (timed) document.facts.push_back({"units of timed predictions", timed->runtime});
  if (!failures.empty()) document.sections.push_back({"Failed", {std::move(failures)}});
  document.sections.push_back({"Schemes", {CompressionSweepTable(result)}});
  if (report::Chart chart = ErrorChart(result); chart.series[0].points.size() > 1)
    document.sections.back().blocks.emplace_back(std::move(chart));
  return document;
}

}  // namespace mlc::driver
