#include <algorithm>
#include <cmath>

#include "lib/engine/engine.h"
#include "lib/verify/fp16_floor.h"
#include "tools/driver/errors.h"
#include "tools/driver/model_interface.h"
#include "tools/driver/reports.h"

namespace mlc::driver {

using report::Cell;
using report::Mark;
using report::Quantity;
using verify::Compared;
using verify::Comparison;

namespace {

Mark MarkOf(const Compared& compared) {
  if (!compared.tells) return Mark::kNone;
  if (!compared.within) return Mark::kBad;
  return compared.exceeds ? Mark::kNotice : Mark::kGood;
}

std::string_view JudgedText(const Compared& compared) {
  if (!compared.tells) return "inconclusive";
  if (!compared.within) return "outside the budget";
  return compared.exceeds ? "within the stated error" : "within the budget";
}

Cell PositionCell(const Comparison& c) {
  if (!c.mismatch.empty()) return WithFlags(c.mismatch);
  if (c.worst_index < 0) return "all equal";
  std::string text = "[";
  for (const int64_t index : c.worst_position())
    text += fmt::format("{}{}", text.size() > 1 ? ", " : "", index);
  return fmt::format("{}]: {:.6g}, reference {:.6g}", text, c.worst_value, c.worst_reference);
}

std::vector<const Compared*> WorstFirst(const std::vector<Compared>& list) {
  std::vector<const Compared*> sorted;
  for (const auto& [worst, steps] : verify::WorstSteps(list)) sorted.push_back(worst);
  std::ranges::stable_sort(sorted,
                           [](const Compared* a, const Compared* b) { return Worse(*a, *b); });
  return sorted;
}

std::string NameOf(const Compared& compared, bool several) {
  return fmt::format("{}{}{}", several ? compared.function + ": " : "",
                     compared.state ? "state " : "", compared.name);
}

// Whether the outputs are those of several functions.
bool HasFunctions(const std::vector<Compared>& outputs) {
  return std::ranges::any_of(
      outputs, [&](const Compared& one) { return one.function != outputs.front().function; });
}

// Bars of the errors of floats, and what each may be.
report::Chart OutputsChart(const std::vector<const Compared*>& sorted, bool several) {
  constexpr size_t kMost = 24;
  report::Chart chart =
      report::BarChart("Error of each output; dashed: the largest that is allowed", "max error",
                       Quantity::kError, true);
  for (const Compared* compared : sorted) {
    const Comparison& c = compared->comparison;
    const verify::Budget allowed = compared->budget.Allowed();
    if (c.exact || !c.mismatch.empty() || allowed.elementwise()) continue;
    if (chart.series[0].points.size() == kMost) break;
    chart.series[0].points.push_back({.y = c.max_error,
                                      .label = NameOf(*compared, several),
                                      .mark = compared->within ? Mark::kNone : Mark::kBad,
                                      .limit = allowed.max_error});
  }
  return chart;
}

report::Section LayersSection(const VerifyResult::OfFunction& function, bool several) {
  report::Section section{several ? fmt::format("Layers of {}", function.name) : "Layers", {}};
  const std::vector<verify::Layer>& layers = function.layers.layers;
  std::string text = fmt::format("{} values exist in both programs", layers.size());
  if (function.layers.others > 0)
    text += fmt::format("; {} more share a name, but have different dimensions or another order",
                        function.layers.others);
  const auto first =
      std::ranges::find_if(layers, [](const auto& layer) { return !layer.compared.within; });
  text += first == layers.end() ? ". All are within the budget."
                                : fmt::format(". The first one outside the budget is {} \"{}\".",
                                              first->op, first->compared.name);
  section.blocks.push_back(text);
  report::Chart chart{report::Chart::Kind::kPlot,
                      "Error of each layer in the order of execution",
                      {"layer", Quantity::kCount},
                      {"max error", Quantity::kError, true},
                      {{"max error", {}, true, true}}};
  std::vector<const verify::Layer*> sorted;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Compared& compared = layers[i].compared;
    sorted.push_back(&layers[i]);
    if (compared.comparison.exact || !compared.comparison.mismatch.empty()) continue;
    chart.series[0].points.push_back({static_cast<double>(i), compared.comparison.max_error,
                                      fmt::format("{} {}", layers[i].op, compared.name),
                                      compared.within ? Mark::kNone : Mark::kBad});
  }
  if (!layers.empty() && !layers[0].compared.budget.elementwise())
    chart.lines.push_back({"budget", layers[0].compared.budget.Allowed().max_error});
  if (chart.series[0].points.size() > 1) section.blocks.push_back(std::move(chart));
  std::ranges::stable_sort(sorted, [](const verify::Layer* a, const verify::Layer* b) {
    return Worse(a->compared, b->compared);
  });
  report::Table table{"Worst first",
                      {{"value"},
                       {"operator"},
                       {"max error", Quantity::kError},
                       {"RMSE", Quantity::kError},
                       {"verdict"},
                       {"worst element"}},
                      {}};
  for (const verify::Layer* layer : sorted) {
    const Comparison& c = layer->compared.comparison;
    table.rows.push_back({layer->compared.name, layer->op, c.max_error, c.rmse,
                          Cell(JudgedText(layer->compared), MarkOf(layer->compared)),
                          PositionCell(c)});
  }
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  return section;
}

report::Section LanguageSection(const LanguageResult& language) {
  report::Section section{fmt::format("Prompt of {} tokens{}", language.tokens.size(),
                                      language.generated ? ", generated" : ""),
                          {}};
  report::Table table{"",
                      {{"evaluation"},
                       {"same top token", Quantity::kCount},
                       {"of", Quantity::kCount},
                       {"wrong", Quantity::kCount},
                       {"RMSE of the logits", Quantity::kError},
                       {"mean KL divergence", Quantity::kError},
                       {"largest", Quantity::kError}},
                      {}};
  for (const auto& [name, figures] :
       {std::pair{"at once", &language.at_once}, {"step by step", &language.step_by_step}})
    table.rows.push_back(
        {name, figures->equal, figures->tokens,
         Cell(figures->wrong.size(), figures->wrong.empty() ? Mark::kGood : Mark::kBad),
         figures->error, figures->mean_divergence, figures->max_divergence});
  section.blocks.push_back(std::move(table));
  if (language.own)
    section.blocks.push_back(
        report::Facts{{"own floor, RMSE", language.own->floor, Quantity::kError},
                      {"allowed, RMSE", language.own->limit, Quantity::kError}});
  return section;
}

}  // namespace

report::Table ComparedTable(const std::vector<Compared>& outputs, bool several) {
  report::Table table{"",
                      {{"output"},
                       {"verdict"},
                       {"max error", Quantity::kError},
                       {"allowed", Quantity::kError},
                       {"RMSE", Quantity::kError},
                       {"equal", Quantity::kShare},
                       {"worst element"},
                       {"remarks"}},
                      {}};
  for (const Compared* compared : WorstFirst(outputs)) {
    const Comparison& c = compared->comparison;
    const verify::Budget allowed = compared->budget.Allowed();
    std::string remarks = verify::WhyItTellsNothing(*compared);
    const auto remark = [&](const std::string& text) {
      if (!text.empty()) remarks += (remarks.empty() ? "" : "; ") + text;
    };
    remark(DescribeFloor(compared->budget, c));
    if (compared->hidden) remark(Describe(*compared->hidden));
    if (compared->ties > 0)
      remark(fmt::format("{} elements differ by one quantisation step", compared->ties));
    const bool floats = !c.exact && c.mismatch.empty();
    table.rows.push_back({NameOf(*compared, several),
                          Cell(JudgedText(*compared), MarkOf(*compared)),
                          floats ? Cell(c.max_error) : Cell(),
                          floats && !allowed.elementwise() ? Cell(allowed.max_error) : Cell(),
                          floats ? Cell(c.rmse) : Cell(),
                          c.exact && c.mismatch.empty() ? Cell(c.equal_fraction) : Cell(),
                          PositionCell(c), WithFlags(remarks)});
  }
  return table;
}

std::vector<report::Check> ComparedChecks(const std::vector<Compared>& outputs, bool several,
                                          const std::string& group) {
  std::vector<report::Check> checks;
  bool failed = false;
  for (const auto& [worst, steps] : verify::WorstSteps(outputs)) {
    const std::string text = WithFlags(Describe(worst->comparison)) +
                             (worst->tells ? "" : " (" + verify::WhyItTellsNothing(*worst) + ")");
    checks.push_back({!worst->tells   ? report::Check::Outcome::kSkipped
                      : worst->within ? report::Check::Outcome::kPassed
                                      : report::Check::Outcome::kFailed,
                      group, NameOf(*worst, several), text});
    failed = failed || (worst->tells && !worst->within);
  }
  if (Judge(outputs) != verify::Verdict::kPassed && !failed)
    checks.push_back({report::Check::Outcome::kFailed, group, "comparison", VerdictText(outputs)});
  return checks;
}

report::Document ParityReport(std::string_view command, const std::vector<CheckedBundle>& bundles) {
  std::vector<const CheckedBundle*> sorted;
  for (const CheckedBundle& bundle : bundles) sorted.push_back(&bundle);
  const auto passed = [](const CheckedBundle* bundle) {
    return bundle->errors.empty() && Judge(bundle->result.outputs) == verify::Verdict::kPassed;
  };
  std::ranges::stable_sort(sorted, {}, passed);
  const bool ok = std::ranges::all_of(sorted, passed);
  report::Document document{bundles.size() == 1 ? "Parity bundle " + bundles[0].name
                                                : fmt::format("{} parity bundles", bundles.size()),
                            std::string(command),
                            Cell(ok ? "PASSED" : "FAILED", ok ? Mark::kGood : Mark::kBad)};
  report::Table table{"",
                      {{"bundle"},
                       {"verdict"},
                       {"time of a prediction", Quantity::kMilliseconds},
                       {"units"},
                       {"machine"},
                       {"mlc"}},
                      {}};
  for (const CheckedBundle* bundle : sorted) {
    const verify::ParityResult& result = bundle->result;
    if (bundle->errors.empty()) {
      table.rows.push_back(
          {bundle->name,
           Cell(VerdictText(result.outputs), passed(bundle) ? Mark::kGood : Mark::kBad),
           result.milliseconds, result.units, result.machine, result.version});
      std::vector<report::Check> checks =
          ComparedChecks(result.outputs, HasFunctions(result.outputs), bundle->name);
      if (!checks.empty()) checks.front().milliseconds = result.milliseconds;
      document.checks.insert(document.checks.end(), checks.begin(), checks.end());
    }
    for (const Error& error : bundle->errors) {
      const std::string text = WithFlags(fmt::format("[{}] {}", error.id(), error.text()));
      table.rows.push_back({bundle->name, Cell(text, Mark::kBad), Cell(), "", "", ""});
      document.checks.push_back(
          {report::Check::Outcome::kError, bundle->name, error.id(), WithFlags(error.text())});
    }
  }
  document.sections.push_back({"Bundles", {std::move(table)}});
  for (const CheckedBundle* bundle : sorted) {
    if (!bundle->errors.empty()) continue;
    report::Section& section = document.sections.emplace_back(
        report::Section{bundles.size() == 1 ? "Outputs" : "Outputs of " + bundle->name, {}});
    const std::vector<Compared>& outputs = bundle->result.outputs;
    const bool several = HasFunctions(outputs);
    if (report::Chart chart = OutputsChart(WorstFirst(outputs), several);
        chart.series[0].points.size() > 1)
      section.blocks.push_back(std::move(chart));
    section.blocks.push_back(ComparedTable(outputs, several));
    section.blocks.push_back(fmt::format("Error: {}.", verify::kErrorFigure));
    if (bundle->result.compared_again)
      section.blocks.push_back("The outputs were compared again on this machine.");
  }
  return document;
}

report::Document VerifyReport(const std::filesystem::path& source,
                              const std::filesystem::path& package, const VerifyResult& result,
                              const VerifyOptions& options) {
  const verify::Verdict verdict = Judge(result.outputs);
  const bool passed = verdict == verify::Verdict::kPassed;
  const bool several = result.functions.size() > 1;
  const std::string name = package.filename().string();
  report::Document document{fmt::format("{} compared with {}", name, source.filename().string()),
                            "verify",
                            Cell(VerdictText(result.outputs), passed ? Mark::kGood : Mark::kBad)};
  const std::vector<const Compared*> sorted = WorstFirst(result.outputs);
  document.facts = {{"reference", result.reference},
                    {"budget", result.budgets.name},
                    {"allowed", Describe(result.budgets.all)}};
  if (result.exact)
    document.facts.push_back({"arithmetic", Describe(engine::EngineOptions::Arithmetic::kExact)});
  if (!result.tokenizer.empty())
    document.facts.push_back(
        {"tokenizer", fmt::format("{} matches the source's", result.tokenizer)});

  report::Section& outputs = document.sections.emplace_back(report::Section{"Outputs", {}});
  if (report::Chart chart = OutputsChart(sorted, several); chart.series[0].points.size() > 1)
    outputs.blocks.push_back(std::move(chart));
  outputs.blocks.push_back(ComparedTable(result.outputs, several));
  outputs.blocks.push_back(fmt::format("Error: {}.", verify::kErrorFigure));
  if (result.floors)
    outputs.blocks.push_back(fmt::format("Floor: {}; errors up to {} x the floor are allowed.",
                                         verify::kFloorDescription, verify::kFloors));
  report::Table inputs{"", {{"input"}, {"values"}, {"because"}}, {}};
  for (const VerifyResult::OfFunction& function : result.functions) {
    for (const std::string& missing : function.not_compared)
      outputs.blocks.push_back(
          fmt::format("{}: not compared, because {} does not have it", missing, result.reference));
    if (function.language) document.sections.push_back(LanguageSection(*function.language));
    if (options.layers) document.sections.push_back(LayersSection(function, several));
    for (const auto& [input, range] : function.generated)
      inputs.rows.push_back({InputNameOf(*function.source, input), Describe(range), range.why});
  }
  if (!inputs.rows.empty()) {
    document.facts.push_back({"seed", options.make_up.seed, Quantity::kCount});
    document.sections.push_back({"Generated inputs", {std::move(inputs)}});
  }

  document.checks = ComparedChecks(result.outputs, several, name);
  return document;
}

}  // namespace mlc::driver
