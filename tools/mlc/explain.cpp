#include "tools/driver/explain.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/driver/errors.h"
#include "tools/driver/frontends.h"
#include "tools/driver/json_results.h"
#include "tools/driver/run_tokens.h"
#include "tools/mlc/command.h"
#include "tools/mlc/terminal.h"

namespace mlc::driver {
namespace {

using analysis::Chip;
using analysis::NameOf;
using analysis::Placement;
using analysis::PlacementFinding;
using analysis::Severity;
using analysis::Unit;

struct ExplainArguments {
  std::vector<std::string> models;
  ExplainOptions options;
  bool all = false, rules = false;
};

constexpr size_t kShown = 3;  // findings per rule, without --all

// Shares that differ from 0 and 1 do not look like them.
std::string Percent(double share) {
  const double percent = 100 * share;
  if (percent > 99.95 && share < 1)
    return percent < 99.995 ? fmt::format("{:.2f} %", percent) : "almost 100 %";
  if (percent < 0.05 && share > 0) return "under 0.1 %";
  return fmt::format("{:.1f} %", percent);
}

std::string BytesText(double bytes) {
  return bytes < 1e4   ? fmt::format("{:.0f} bytes", bytes)
         : bytes < 1e6 ? fmt::format("{:.1f} kB", bytes / 1e3)
                       : fmt::format("{:.1f} MB", bytes / 1e6);
}

std::string ChipsOfGeneration(int generation) {
  std::vector<std::string_view> names;
  for (const Chip& chip : analysis::Chips())
    if (chip.generation == generation) names.push_back(chip.name);
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string Heading(Severity severity, Unit unit) {
  switch (severity) {
    case Severity::kCannotRun:
      return fmt::format("Operations that the {} cannot run (one may have several reasons)",
                         Name(unit));
    case Severity::kInaccurate:
      return "Operations whose results may be wrong";
    case Severity::kSlow:
      return "What makes it slower than necessary";
    default:
      return "Notes";
  }
}

// Without the output of the node, which is usually the name of the operation.
std::string FindingText(const PlacementFinding& finding) {
  if (!finding.op) return fmt::format("      {}\n", finding.text);
  std::string where = PlaceInSource(*finding.op);
  where = where.substr(0, where.find(" (output \""));
  std::string text = fmt::format("      {} \"{}\"", finding.op->def->name, NameOf(*finding.op));
  if (finding.text != analysis::ItIs(*finding.op)) text += ": " + finding.text;
  return text + (where.empty() ? "\n" : fmt::format(", from {}\n", where));
}

std::string ImpactText(const RuleImpact& impact, const Placement& placement, bool all,
                       bool rewritten) {
  const analysis::PlacementRule& rule = *impact.rule;
  std::string text = fmt::format("\n    {}: {}", rule.id, rule.meaning);
  if (placement.findings[impact.findings[0]].op)
    text += fmt::format(" ({}, {} of the work)", Counted(std::ssize(impact.findings), "operation"),
                        Percent(placement.work > 0 ? impact.work / placement.work : 0));
  text += fmt::format(" [{}]\n", Name(rule.standing));
  const size_t shown = all ? impact.findings.size() : std::min(kShown, impact.findings.size());
  for (size_t i = 0; i < shown; ++i) text += FindingText(placement.findings[impact.findings[i]]);
  if (shown < impact.findings.size())
    text +=
        fmt::format("      ... and {} more (--all lists them)\n", impact.findings.size() - shown);
  if (rewritten && rule.fix.find("optimize-for") != std::string_view::npos)
    text += "      fix: change the source model; --optimize-for leaves these as they are\n";
  else
    text += fmt::format("      fix: {}\n", WithFlags(rule.fix));
  const std::string before = Percent(placement.work_share()),
                    after = Percent(impact.work_share_without);
  if (rule.severity == Severity::kCannotRun && before != after)
    text += fmt::format("      this fix alone raises the coverage from {} to {} of the work\n",
                        before, after);
  return all ? text + fmt::format("      source: {}\n", rule.source) : text;
}

std::string CoverageText(const Placement& placement, Unit unit) {
  std::string sizes;
  for (const auto& [name, size] : InputSizes(placement))
    sizes += fmt::format("{}{} = {}", sizes.empty() ? " at " : ", ", name, size);
  std::string text = fmt::format(
      "  function {}{}: {} of the work and {} of {} can run on the {}", placement.function->name,
      sizes, Percent(placement.work_share()), placement.eligible_operations,
      Counted(std::ssize(placement.operations), "operation"), Name(unit));
  if (placement.eligible_segments > 0)
    text += fmt::format(", in {}", Counted(placement.eligible_segments, "part"));
  if (placement.transfers > 0)
    text +=
        fmt::format("; {} ({}) {} copied between units", Counted(placement.transfers, "tensor"),
                    BytesText(placement.transfer_bytes), placement.transfers == 1 ? "is" : "are");
  return text + "\n";
}

std::string PartsText(const Placement& placement, Unit unit, bool all) {
  constexpr size_t kMost = 6;
  if (placement.segments.size() < 2) return "";
  std::string text = "\n  Parts in execution order\n";
  const size_t shown = all ? placement.segments.size() : std::min(kMost, placement.segments.size());
  for (size_t i = 0; i < shown; ++i) {
    const analysis::PlacedSegment& segment = placement.segments[i];
    text += fmt::format(
        "    {:<15} {}, {} of the work; receives {}, sends {}; \"{}\" to \"{}\"\n",
        segment.eligible ? Name(unit) : "other units", Counted(segment.operations, "operation"),
        Percent(placement.work > 0 ? segment.work / placement.work : 0),
        BytesText(segment.bytes_in), BytesText(segment.bytes_out),
        segment.first ? NameOf(*segment.first) : "", segment.last ? NameOf(*segment.last) : "");
  }
  if (shown < placement.segments.size())
    text +=
        fmt::format("    ... and {} more (--all lists them)\n", placement.segments.size() - shown);
  return text;
}

constexpr double kLittle = 0.01;  // a share of the work that is not worth an effort

// The part with the most work, if the rest is little work after it: the model can end there.
const analysis::PlacedSegment* MainPart(const Placement& placement) {
  for (const analysis::PlacedSegment& segment : placement.segments)
    if (segment.eligible && segment.work >= (1 - kLittle) * placement.work) return &segment;
  return nullptr;
}

// The verdict and what to do first, with the rules that it names.
struct Advice {
  std::string text;
  std::vector<const analysis::PlacementRule*> named;
};

// How to fix the sizes of a function whose inputs have ranges of sizes.
std::string FixedSizes(const Function& function) {
  if (IsLanguageModel(function)) return "--dim tokens=1";
  std::vector<std::string> dims;
  for (const std::string& symbol : analysis::InputSymbols(function))
    dims.push_back(fmt::format("--dim {}=N", symbol));
  return fmt::format("{}", fmt::join(dims, " "));
}

Advice AdviceOn(const Placement& placement, const std::vector<RuleImpact>& impacts,
                const ExplainOptions& options, bool compiled) {
  const Unit unit = options.unit;
  const RuleImpact *gain = nullptr, *slow = nullptr, *splits = nullptr, *wrong = nullptr,
                   *open = nullptr;
  bool ports_only = true;
  for (const RuleImpact& impact : impacts) {
    if (!placement.findings[impact.findings[0]].op) continue;
    const Severity severity = impact.rule->severity;
    if (severity == Severity::kInaccurate && !wrong) wrong = &impact;
    if (severity == Severity::kSlow && impact.work >= kLittle * placement.work &&
        (!slow || impact.work > slow->work))
      slow = &impact;
    if (severity != Severity::kCannotRun) continue;
    if (impact.rule->id == "open-shape" && impact.work >= placement.work / 4) open = &impact;
    ports_only = ports_only && impact.rule->id == "fp32-port";
    if (!gain || impact.work_share_without > gain->work_share_without) gain = &impact;
    if (impact.rule->id != "fp32-port" &&
        (!splits || impact.findings.size() > splits->findings.size()))
      splits = &impact;
  }
  const double share = placement.work_share();
  const int64_t outside = std::ssize(placement.operations) - placement.eligible_operations;
  Advice advice;
  std::string& text = advice.text;
  auto named = [&](const RuleImpact* impact) {
    advice.named.push_back(impact->rule);
    return impact->rule->id;
  };
  std::string next;  // options to try
  if (open) {
    next = FixedSizes(*placement.function);
    text = fmt::format("Needs work: sizes must be fixed or listed ({}).", named(open));
  } else if (!gain) {
    text = fmt::format("Good: no known rule keeps an operation off the {}.", Name(unit));
  } else if (share >= 1 - kLittle && placement.eligible_segments == 1 &&
             (ports_only || outside <= 20)) {
    text =
        "Good: only a little work at the beginning and the end of the program runs on another "
        "unit, as usual.";
  } else if (gain->work_share_without - share >= kLittle) {
    text = fmt::format("Needs work: start with {}, which raises the coverage from {} to {}.",
                       named(gain), Percent(share), Percent(gain->work_share_without));
  } else if (const analysis::PlacedSegment* part = MainPart(placement); part && outside > 20) {
    text = fmt::format(
        "Cut the model: one part with {} of the work runs in one piece, up to \"{}\"; the {} "
        "operations outside are little work. End the model at the values that the rest needs from "
        "this part (--outputs takes their names in the source model), and compute the rest in the "
        "app.",
        Percent(part->work / placement.work), NameOf(*part->last), outside);
  } else if (share >= 1 - kLittle) {
    text = fmt::format(
        "Split: what cannot run is little work, but divides the program into {} parts; "
        "start with {}.",
        placement.eligible_segments, named(splits ? splits : gain));
  } else {
    text = fmt::format("Needs work: no fix alone raises the coverage; start with {}.",
                       named(splits ? splits : gain));
  }
  if (wrong) text += fmt::format(" Check the results: {}.", named(wrong));
  if (slow)
    text += fmt::format(" Speed: {} concerns {} of the work.", named(slow),
                        Percent(slow->work / placement.work));
  const bool rewrites = std::ranges::any_of(impacts, [](const RuleImpact& impact) {
    return impact.rule->fix.find("optimize-for") != std::string_view::npos;
  });
  if (options.compile.optimize_for != unit && rewrites)
    next += fmt::format("{}--optimize-for {}", next.empty() ? "" : " ", analysis::ShortName(unit));
  text = fmt::format("  {}\n", text);
  if (!next.empty())
    text += compiled ? fmt::format("  Next: mlc explain MODEL {}\n", next)
                     : fmt::format("  Next: compile the source model with {}\n", next);
  text += fmt::format(
      "  To check on a Mac: {}mlc run PACKAGE --units {} --json > FILE, and mlc explain "
      "PACKAGE --measured FILE.\n",
      compiled ? "mlc compile with the same options, " : "", analysis::ShortName(unit));
  return advice;
}

// Rules that concern little work, and do not split what is worth running there.
bool IsMinor(const RuleImpact& impact, const Placement& placement) {
  constexpr double kMinor = 0.001;
  if (!placement.findings[impact.findings[0]].op) return false;
  if (impact.rule->severity != Severity::kCannotRun) return impact.work < kMinor * placement.work;
  if (MainPart(placement)) return impact.work < kLittle * placement.work;
  return placement.eligible_segments <= 1 && impact.work < kMinor * placement.work;
}

std::string ContradictionsText(const Explanation& explanation, const ExplainArguments& given) {
  if (given.options.measured.empty()) return "";
  const std::string_view unit = Name(given.options.unit);
  std::string text =
      fmt::format("\n  Compared with {}: {}\n", given.options.measured.filename().string(),
                  Counted(explanation.compared, "operation"));
  const auto list = [&](const std::vector<Contradiction>& found, std::string_view what) {
    text += fmt::format("    {} {}\n", Counted(std::ssize(found), "operation"), what);
    const size_t shown = given.all ? found.size() : std::min<size_t>(10, found.size());
    for (size_t i = 0; i < shown; ++i)
      text += fmt::format("      {} \"{}\" ({}){}\n", found[i].op->def->name, NameOf(*found[i].op),
                          found[i].device, found[i].text.empty() ? "" : ": " + found[i].text);
    if (shown < found.size())
      text += fmt::format("      ... and {} more (--all lists them)\n", found.size() - shown);
  };
  list(explanation.refused, fmt::format("ran on the {} although a rule says that it cannot", unit));
  list(explanation.allowed, fmt::format("did not run on the {} although no rule forbids it", unit));
  return text;
}

void PrintText(const Explanation& explanation, const std::filesystem::path& model,
               const ExplainArguments& given, bool chip_given) {
  const Unit unit = given.options.unit;
  const int64_t rules =
      std::ranges::count_if(analysis::PlacementRules(), [&](const analysis::PlacementRule& rule) {
        return rule.AppliesTo(unit, given.options.chip);
      });
  fmt::print(
      "{} on the {} of {}{}\nThis is a prediction from the {} rules that apply, not a measurement "
      "(--rules lists all). \"Work\" is the estimated number\nof multiplications; it is not a "
      "time. [Apple] stands for text published by Apple, [measured] for measurements by others on "
      "devices,\n[source code] for published code, [claim] for a statement without figures.\n\n",
      model.filename().string(), Name(unit), ChipsOfGeneration(given.options.chip.generation),
      chip_given ? "" : " (the default; --chip selects another)", rules);
  // The sizes of a function differ little: the worst one is explained.
  std::vector<const Placement*> worst;
  for (const Placement& placement : explanation.placements) {
    fmt::print("{}", CoverageText(placement, unit));
    if (worst.empty() || worst.back()->function != placement.function)
      worst.push_back(&placement);
    else if (placement.work_share() < worst.back()->work_share())
      worst.back() = &placement;
  }
  for (const Placement* placement : worst) {
    if (worst.size() > 1) fmt::print("\nfunction {}\n", placement->function->name);
    const std::vector<RuleImpact> impacts = ImpactsOf(*placement);
    const Advice advice = AdviceOn(*placement, impacts, given.options, explanation.compiled);
    fmt::print("{}{}", advice.text, PartsText(*placement, unit, given.all));
    std::optional<Severity> last;
    int64_t minor = 0;
    for (const RuleImpact& impact : impacts) {
      if (!given.all && std::ranges::find(advice.named, impact.rule) == advice.named.end() &&
          (IsMinor(impact, *placement) || impact.rule->severity == Severity::kNote)) {
        ++minor;
        continue;
      }
      if (last != impact.rule->severity)
        fmt::print("\n  {}\n", Heading(impact.rule->severity, unit));
      last = impact.rule->severity;
      fmt::print("{}", ImpactText(impact, *placement, given.all,
                                  given.options.compile.optimize_for == unit));
    }
    if (minor > 0)
      fmt::print("\n  {} with little effect (--all lists {})\n",
                 Counted(minor, last ? "more rule" : "rule"), minor == 1 ? "it" : "them");
  }
  for (const PlacementFinding& finding : explanation.package)
    fmt::print("\n  The package\n\n    {}: {} [{}]\n{}      fix: {}\n", finding.rule->id,
               finding.rule->meaning, Name(finding.rule->standing), FindingText(finding),
               WithFlags(finding.rule->fix));
  fmt::print("{}", ContradictionsText(explanation, given));
}

int ExplainOne(const ExplainArguments& given, const std::filesystem::path& model, Session& session,
               nlohmann::ordered_json& document) {
  if (!FrontendOf(model).IsSource())
    Refuse({"--target", "--precision", "--budget", "--calibrate", "--fp16-strict", "--no-measure",
            "--fp32-ops", "--fp16-ops", "--optimize-for", "--io", "--labels"},
           "this option applies to source models only", session);
  const Explanation explanation = Explain(model, given.options, session.diagnostics);
  const bool failed = !explanation.Passes(given.options);
  if (session.json) {
    document = ExplainJson(model, explanation, given.options);
  } else {
    PrintText(explanation, model, given, session.given.contains("--chip"));
    if (failed)
      PrintColored(stdout,
                   fmt::format("FAILED: {} of the work can run on the {}, less than {:g} %\n",
                               Percent(explanation.lowest_share()), Name(given.options.unit),
                               *given.options.fail_under));
  }
  return failed ? ExitCode("check-failed") : 0;
}

int RunExplain(const ExplainArguments& given, Session& session) {
  if (given.rules) {
    if (!session.json) {
      fmt::print("{}", WithFlags(analysis::PlacementRulesPage()));
      return 0;
    }
    nlohmann::ordered_json rules = nlohmann::ordered_json::array();
    for (const analysis::PlacementRule& rule : analysis::PlacementRules())
      rules.push_back(RuleJson(rule));
    PrintDocument({{"rules", rules}});
    return 0;
  }
  if (given.models.empty())
    throw Error("usage", "MODEL is required").Help("--rules needs no MODEL");
  if (given.models.size() > 1) Refuse({"--measured"}, "the measurements are of one model", session);
  return RunEach(
      given.models, session,
      [&](const std::filesystem::path& model, Session& own, nlohmann::ordered_json& document) {
        return ExplainOne(given, model, own, document);
      });
}

}  // namespace

Command ExplainCommand() {
  auto given = std::make_shared<ExplainArguments>();
  ExplainOptions& options = given->options;
  std::vector<Option> table = {{"MODEL...", "",
                                "packages, or source models, which are compiled in memory",
                                Into(given->models)}};
  Append(ExplainTable(options), table);
  Append(
      {Common({"--all", "", "list all rules, operations, parts and sources", Switch(given->all)}),
       Common({"--rules", "", "print the rules with their sources, as Markdown",
               Switch(given->rules)}),
       JsonOption()},
      table);
  return {"explain",
          "Explain which operations a compute unit can run, and why not",
          {"mlc explain model.mlpackage --chip A17Pro --fail-under 95",
           "mlc explain model.onnx --optimize-for ane"},
          std::move(table),
          [given](Session& session) { return RunExplain(*given, session); },
          fmt::format("Chips: {}\n\n", ChipNames()),
          {"compile", "doctor", "run"}};
}

}  // namespace mlc::driver
