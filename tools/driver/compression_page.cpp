#include "tools/driver/compression_page.h"

#include <algorithm>
#include <cmath>

#include "lib/report/render.h"
#include "lib/support/atomic_install.h"
#include "lib/support/error.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using compress::Compression;
using compress::CurvePoint;
using compress::WeightReport;
using report::Cell;
using report::Mark;
using report::Quantity;

// Loss against bits per element. Schemes for all weights are points; a scheme for each weight is a
// line.
report::Chart Curve(const Compression& compression) {
  const bool divergence = std::ranges::any_of(
      compression.curve, [](const CurvePoint& point) { return point.loss.divergence.has_value(); });
  report::Chart chart{
      report::Chart::Kind::kPlot,
      "Loss by size",
      {"bits per element", Quantity::kNone},
      {divergence ? "divergence of the next token, nats"
                  : "noise of the outputs or their scores, relative to the variance",
       Quantity::kError, true},
      {{"a scheme for each weight", {}, true, true, true}, {"one scheme", {}, false, true, true}}};
  for (const CurvePoint& point : compression.curve) {
    std::string label = point.scheme;
    if (point.chosen) label += label.empty() ? "chosen" : ", chosen";
    chart.series[point.scheme.empty() ? 0 : 1].points.push_back(
        {point.bits, std::max(point.loss.cost(), 1e-12), std::move(label),
         point.chosen ? Mark::kGood : Mark::kNone});
  }
  return chart;
}

Cell Decibels(double energy, double error) {
  if (!(energy > 0)) return Cell();
  return error > 0 ? Cell(10 * std::log10(energy / error)) : Cell("exact");
}

report::Document Report(const std::string& title, const Compression& compression) {
  const compress::Totals totals = compress::TotalsOf(compression.weights);
  report::Document document{fmt::format("Compression of {}", title), "compile"};
  document.facts = {
      {"rules", compress::Text(compression.rules)},
      {"compressed", fmt::format("{} of {} weights", totals.compressed, totals.weights)},
      {"bytes before", totals.bytes_before, Quantity::kBytes},
      {"bytes after", totals.bytes_after, Quantity::kBytes}};
  if (!compression.inputs.empty()) document.facts.push_back({"calibrated on", compression.inputs});
  if (compression.tuned && compression.tuned->weights > 0)
    document.facts.push_back(
        {"trained", fmt::format("{} weights, {} steps on {} samples", compression.tuned->weights,
                                compression.tuned->steps, compression.tuned->samples)});
  if (compression.loss) {
    document.facts.push_back(
        {"signal to noise", Decibels(1, compression.loss->noise), Quantity::kDecibels});
    document.facts.push_back({"measured on", compression.evaluated_on});
    if (compression.loss->divergence)
      document.facts.push_back({"divergence", fmt::format("{:.3g} nats, mean of the next token",
                                                          *compression.loss->divergence)});
  }
  if (!compression.curve.empty())
    document.sections.push_back({"Choice of schemes", {Curve(compression)}});
  report::Table table{"",
                      {{"weight"},
                       {"operator"},
                       {"scheme"},
                       {"before", Quantity::kBytes},
                       {"after", Quantity::kBytes},
                       {"signal to noise of the weight", Quantity::kDecibels},
                       {"of the output", Quantity::kDecibels},
                       {"remark"}},
                      {}};
  for (const WeightReport& weight : compression.weights)
    table.rows.push_back({weight.name, weight.op, weight.compressed ? weight.used : "unchanged",
                          weight.bytes_before, weight.bytes_after,
                          weight.compressed ? Decibels(weight.energy, weight.error) : Cell(),
                          Decibels(weight.output_energy, weight.output_error), weight.reason});
  document.sections.push_back({"Weights", {std::move(table)}});
  return document;
}

}  // namespace

void CheckCompressionReport(const fs::path& file) {
  const fs::path ending = file.extension();
  if (ending != ".svg") report::CheckForm(file, false);
}

void WriteCompressionReport(const fs::path& file, const std::string& title,
                            const Compression& compression) {
  CheckCompressionReport(file);
  if (file.extension() == ".json")
    return WriteFile(file, compress::CompressionJson(compression) + "\n");
  if (file.extension() != ".svg") return report::Write(Report(title, compression), file);
  if (compression.curve.empty())
    throw Error("usage", "--report: there is no curve to draw in \"{}\"", file.string())
        .Expected("a rule with auto, such as --compress auto:bits=4")
        .Help(".html and .json reports list the weights");
  WriteFile(file, report::Svg(Curve(compression)));
}

}  // namespace mlc::driver
