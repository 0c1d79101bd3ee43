#include "tools/driver/explain.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "tools/driver/frontends.h"

namespace fs = std::filesystem;

namespace mlc::driver {

using analysis::Placement;
using analysis::Severity;

namespace {

using Json = nlohmann::ordered_json;

std::string_view DeviceName(analysis::Unit unit) {
  return unit == analysis::Unit::kNeuralEngine ? "ane"
         : unit == analysis::Unit::kGpu        ? "gpu"
                                               : "cpu";
}

// The device that executed an operation, and those that support it.
struct Measured {
  std::string device;
  std::vector<std::string> supported;
};

// Reads the placements of `mlc run --json` by the name of the first result.
std::map<std::string, Measured> ReadMeasured(const fs::path& file) {
  const auto contents = MappedFile::Open(file);
  const std::span<const std::byte> bytes = contents->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  RequireJson(text, "bad-file", file.string());
  const Json json = ParseJson(text);
  std::map<std::string, Measured> measured;
  const auto fail = [&](std::string_view what) {
    return Error("bad-file", "{}", what)
        .At({file.string(), ""})
        .Expected("the output of mlc run PACKAGE --units ane --json on a Mac");
  };
  if (!json.is_object() || !json.contains("placement") || !json["placement"].is_object() ||
      !json["placement"].contains("by_operation") || !json["placement"]["by_operation"].is_array())
    throw fail("no placement of operations is recorded");
  for (const Json& entry : json["placement"]["by_operation"]) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
        !entry.contains("device") || !entry["device"].is_string())
      throw fail("an entry of by_operation lacks a name or a device");
    Measured& at = measured[entry["name"].get<std::string>()];
    at.device = entry["device"].get<std::string>();
    if (entry.contains("supported") && entry["supported"].is_array())
      for (const Json& device : entry["supported"])
        if (device.is_string()) at.supported.push_back(device.get<std::string>());
  }
  const bool known = std::any_of(measured.begin(), measured.end(), [](const auto& entry) {
    return entry.second.device != "reference" && entry.second.device != "unknown";
  });
  if (!known) throw fail("the operations ran on the reference engine, not on a device");
  return measured;
}

// Compares the rules with what a device supports or, if that is unknown, chose.
void Compare(const Placement& placement, std::string_view device,
             const std::map<std::string, Measured>& measured, Explanation& into) {
  for (const analysis::PlacedOperation& operation : placement.operations) {
    if (operation.op->results.empty()) continue;
    const auto found = measured.find(operation.op->result()->name);
    if (found == measured.end()) continue;
    const std::vector<std::string>& supported = found->second.supported;
    const bool runs = supported.empty() ? found->second.device == device
                                        : std::find(supported.begin(), supported.end(), device) !=
                                              supported.end();
    ++into.compared;
    if (runs == operation.eligible) continue;
    std::string rules;
    for (size_t i = 0; i < operation.findings; ++i) {
      const analysis::PlacementFinding& finding = placement.findings[operation.first + i];
      if (finding.rule->severity == Severity::kCannotRun)
        rules +=
            fmt::format("{}{} ({})", rules.empty() ? "" : "; ", finding.rule->id, finding.text);
    }
    (runs ? into.refused : into.allowed).push_back({operation.op, found->second.device, rules});
  }
}

}  // namespace

std::vector<RuleImpact> ImpactsOf(const Placement& placement) {
  std::map<const analysis::PlacementRule*, RuleImpact> by_rule;
  for (size_t i = 0; i < placement.findings.size(); ++i)
    by_rule[placement.findings[i].rule].findings.push_back(i);
  for (const analysis::PlacedOperation& operation : placement.operations)
    for (size_t i = 0; i < operation.findings; ++i)
      by_rule[placement.findings[operation.first + i].rule].work += operation.work;
  std::vector<RuleImpact> impacts;
  for (auto& [rule, impact] : by_rule) {
    impact.rule = rule;
    impact.work_share_without = rule->severity == Severity::kCannotRun
                                    ? WorkShareWithout(placement, *rule)
                                    : placement.work_share();
    impacts.push_back(std::move(impact));
  }
  std::sort(impacts.begin(), impacts.end(), [](const RuleImpact& a, const RuleImpact& b) {
    if (a.rule->severity != b.rule->severity) return a.rule->severity > b.rule->severity;
    return a.work != b.work ? a.work > b.work : a.rule < b.rule;
  });
  return impacts;
}

double Explanation::lowest_share() const {
  double lowest = 1;
  for (const Placement& placement : placements) lowest = std::min(lowest, placement.work_share());
  return lowest;
}

Explanation Explain(const fs::path& model, const ExplainOptions& options,
                    Diagnostics& diagnostics) {
  Explanation explanation;
  explanation.compiled = FrontendOf(model).IsSource();
  explanation.program = std::make_shared<Program>(
      explanation.compiled ? CompileProgram(model, options.compile, diagnostics)
                           : Import(model, options.compile.import, diagnostics));
  std::map<std::string, Measured> measured;
  if (!options.measured.empty()) measured = ReadMeasured(options.measured);
  for (const auto& function : explanation.program->functions)
    for (const analysis::SymbolSizes& sizes : analysis::SizesToExamine(*function))
      explanation.placements.push_back(
          analysis::PlacementOf(*function, options.unit, options.chip, sizes));
  explanation.package = ProgramFindings(*explanation.program, options.unit, options.chip);
  // The sizes of a function do not change which operations it has.
  const Function* compared = nullptr;
  for (const Placement& placement : explanation.placements)
    if (!measured.empty() && placement.function != compared) {
      compared = placement.function;
      Compare(placement, DeviceName(options.unit), measured, explanation);
    }
  if (!measured.empty() && explanation.compared == 0)
    throw Error("bad-file", "none of its {} operations is in the model", measured.size())
        .At({options.measured.string(), ""})
        .Expected("a measurement of this package");
  return explanation;
}

std::map<std::string, int64_t> InputSizes(const analysis::Placement& placement) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& name : analysis::InputSymbols(*placement.function))
    if (const auto found = placement.sizes.find(name); found != placement.sizes.end())
      sizes.insert(*found);
  return sizes;
}

std::string PlaceInSource(const Operation& op) {
  if (!op.location || op.location->where == fmt::format("{} \"{}\"", op.def->name, op.name))
    return "";
  return op.location->where;
}

bool Explanation::Passes(const ExplainOptions& options) const {
  return !options.fail_under || 100 * lowest_share() >= *options.fail_under;
}

}  // namespace mlc::driver
