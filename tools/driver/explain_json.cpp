#include <nlohmann/json.hpp>

#include "tools/driver/errors.h"
#include "tools/driver/explain.h"
#include "tools/driver/json_results.h"

namespace mlc::driver {

using Json = nlohmann::ordered_json;

Json RuleJson(const analysis::Rule& rule) {
  return {{"id", rule.id},           {"severity", Name(rule.severity)},
          {"meaning", rule.meaning}, {"standing", Name(rule.standing)},
          {"source", rule.source},   {"fix", WithFlags(rule.fix)}};
}

namespace {

using analysis::NameOf;
using analysis::Placement;
using analysis::PlacementFinding;
using analysis::Severity;

Json FindingJson(const PlacementFinding& finding) {
  Json json{{"rule", finding.rule->id}};
  if (finding.op) {
    json["operation"] = NameOf(*finding.op);
    json["operator"] = finding.op->def->name;
    if (const std::string where = PlaceInSource(*finding.op); !where.empty())
      json["source"] = where;
  }
  json["text"] = finding.text;
  return json;
}

Json FunctionJson(const Placement& placement) {
  Json json{{"function", placement.function->name},
            {"sizes", InputSizes(placement)},
            {"operations", placement.operations.size()},
            {"eligible_operations", placement.eligible_operations},
            {"operation_coverage_pct", 100 * placement.operation_share()},
            {"work", placement.work},
            {"work_coverage_pct", 100 * placement.work_share()},
            {"transfers", placement.transfers},
            {"transfer_bytes", placement.transfer_bytes},
            {"segments", Json::array()},
            {"rules", Json::array()},
            {"findings", Json::array()}};
  for (const analysis::PlacedSegment& segment : placement.segments)
    json["segments"].push_back({{"eligible", segment.eligible},
                                {"operations", segment.operations},
                                {"work", segment.work},
                                {"first", segment.first ? NameOf(*segment.first) : ""},
                                {"last", segment.last ? NameOf(*segment.last) : ""},
                                {"bytes_in", segment.bytes_in},
                                {"bytes_out", segment.bytes_out}});
  for (const RuleImpact& impact : ImpactsOf(placement)) {
    Json rule = RuleJson(*impact.rule);
    rule["operations"] = impact.findings.size();
    rule["work"] = impact.work;
    if (impact.rule->severity == Severity::kCannotRun)
      rule["work_coverage_without_pct"] = 100 * impact.work_share_without;
    json["rules"].push_back(std::move(rule));
  }
  for (const PlacementFinding& finding : placement.findings)
    json["findings"].push_back(FindingJson(finding));
  return json;
}

Json ContradictionsJson(const std::vector<Contradiction>& found) {
  Json list = Json::array();
  for (const Contradiction& one : found)
    list.push_back({{"operation", NameOf(*one.op)},
                    {"operator", one.op->def->name},
                    {"device", one.device},
                    {"rules", one.text}});
  return list;
}

}  // namespace

Json ExplainJson(const std::filesystem::path& model, const Explanation& explanation,
                 const ExplainOptions& options) {
  Json json{{"model", model.string()},
            {"unit", Name(options.unit)},
            {"chip", options.chip.name},
            {"work_coverage_pct", 100 * explanation.lowest_share()},
            {"passed", explanation.Passes(options)},
            {"functions", Json::array()},
            {"package", Json::array()}};
  for (const Placement& placement : explanation.placements)
    json["functions"].push_back(FunctionJson(placement));
  for (const PlacementFinding& finding : explanation.package) {
    Json found = RuleJson(*finding.rule);
    found["text"] = finding.text;
    json["package"].push_back(std::move(found));
  }
  if (!options.measured.empty())
    json["measured"] = {{"compared", explanation.compared},
                        {"ran_although_forbidden", ContradictionsJson(explanation.refused)},
                        {"did_not_run_although_allowed", ContradictionsJson(explanation.allowed)}};
  return json;
}

}  // namespace mlc::driver
