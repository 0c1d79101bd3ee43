#include "tools/driver/gate.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "lib/report/render.h"
#include "tools/driver/runtimes.h"
#include "tools/mlc/command.h"
#include "tools/mlc/terminal.h"

namespace mlc::driver {
namespace {

struct GateArguments {
  std::string gate;
  std::vector<std::string> models;
  GateOptions options;
};

// Options that do not apply to all gates. The import options apply to --source only, except for
// --shape and --dim, which apply to the package, too.
struct OptionUse {
  std::string_view option, gates;
  bool of_source = false;
};
constexpr OptionUse kUses[] = {
    {"--timeout", "bcd"},      {"--cycles", "a"},        {"--iterations", "bc"},
    {"--p99-ms", "b"},         {"--source", "b"},        {"--coverage", "c"},
    {"--duration", "d"},       {"--const", "b", true},   {"--outputs", "b", true},
    {"--replace", "b", true},  {"--image", "b", true},   {"--runtime", "b", true},
    {"--context", "b", true},  {"--requant", "b", true}, {"--data-root", "b", true},
    {"--compress", "b", true},
};

void CheckUses(char gate, const Session& session) {
  for (const auto& [option, gates, of_source] : kUses) {
    if (!session.given.contains(std::string(option))) continue;
    if (gates.find(gate) == std::string_view::npos)
      throw Error("usage", "gate {} does not use {}", gate, option)
          .Expected("gate {}", fmt::join(gates, ", "));
    if (of_source && !session.given.contains("--source"))
      throw Error("usage", "{} requires --source", option);
  }
}

int ExitCodeOf(GateVerdict verdict) {
  if (verdict == GateVerdict::kPass) return 0;
  return ExitCode(verdict == GateVerdict::kFail ? "check-failed" : "needs-system");
}

std::string Number(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "";
}

// Returns the options that apply to the gate.
nlohmann::ordered_json OptionsJson(char gate, const GateOptions& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (options.function) json["function"] = *options.function;
  if (gate == 'a')
    json["cycles"] = options.cycles;
  else
    json["timeout_ms"] = options.timeout.count();
  if (gate == 'b' || gate == 'c') json["iterations"] = options.iterations;
  if (gate == 'b') {
    if (options.p99_ms) json["p99_ms"] = *options.p99_ms;
    if (!options.source.empty()) json["source"] = options.source.string();
  }
  if (gate == 'c') json["coverage_percent"] = options.coverage_percent;
  if (gate == 'd') json["duration_ms"] = options.duration.count();
  return json;
}

void PrintJson(char gate, const GateOptions& options, const std::vector<GateResult>& results) {
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const GateResult& result : results) {
    nlohmann::ordered_json checks = nlohmann::ordered_json::array();
    for (const GateCheck& check : result.checks) {
      nlohmann::ordered_json entry{{"name", check.name}, {"verdict", Name(check.verdict)}};
      if (check.value) entry["value"] = *check.value;
      if (check.limit) entry["limit"] = *check.limit;
      if (!check.unit.empty()) entry["unit"] = check.unit;
      if (check.count) entry["count"] = *check.count;
      entry["text"] = check.text;
      checks.push_back(std::move(entry));
    }
    models.push_back({{"model", result.model.string()},
                      {"function", result.function},
                      {"runtime", result.runtime},
                      {"verdict", Name(Together(result.checks))},
                      {"checks", std::move(checks)}});
  }
  PrintDocument({{"gate", std::string(1, gate)},
                 {"units", Name(options.units)},
                 {"options", OptionsJson(gate, options)},
                 {"verdict", Name(Together(gate, results))},
                 {"models", std::move(models)}});
}

void Print(char gate, const std::vector<GateResult>& results) {
  for (const GateResult& result : results) {
    fmt::print("{}{} on {}\n", result.model.string(),
               result.function.empty() ? "" : fmt::format(", function {},", result.function),
               result.runtime);
    report::Table table{"", {{"check"}, {"verdict"}, {"found"}, {"limit"}, {"unit"}, {""}}, {}, 0};
    for (const GateCheck& check : result.checks)
      table.rows.push_back({check.name, std::string(Name(check.verdict)), Number(check.value),
                            Number(check.limit), check.unit, check.text});
    fmt::print("{}", CutLines(report::TerminalText(table), stdout));
  }
  fmt::print("gate {}: {}\n", gate, Name(Together(gate, results)));
}

int Gate(const GateArguments& given, Session& session) {
  const char gate = given.gate.size() == 1 ? given.gate[0] : '?';
  if (gate < 'a' || gate > 'd')
    throw Error("usage", "unknown gate \"{}\"", given.gate).Expected("a, b, c or d");
  CheckUses(gate, session);
  const std::vector<std::filesystem::path> models(given.models.begin(), given.models.end());
  const std::vector<GateResult> results = RunGate(gate, models, given.options, session.diagnostics);
  session.json ? PrintJson(gate, given.options, results) : Print(gate, results);
  return ExitCodeOf(Together(gate, results));
}

}  // namespace

Command GateCommand() {
  auto given = std::make_shared<GateArguments>();
  GateOptions& options = given->options;
  options.units = DefaultUnits();
  std::vector<Option> table = GateTable(options);
  table.insert(table.begin(),
               {{"GATE", "a|b|c|d",
                 "a (compile and load), b (schema, timeout, p99 latency, parity), c (compute "
                 "units) or d (soak)",
                 Into(given->gate), true},
                {"MODEL...", "", "packages or compiled bundles", Into(given->models), true, true}});
  table.push_back(JsonOption());
  return {
      "gate",
      "Check models against pass/fail limits",
      {"mlc gate b model.mlpackage --p99-ms 50 --source model.onnx",
       "mlc gate d model.mlpackage --duration 10s"},
      std::move(table),
      [given](Session& session) { return Gate(*given, session); },
      "Exit codes: 0, all checks pass; 3, a check fails; 1, none fails, but one is not applicable "
      "here (the report says why).\n\n",
      {"run", "verify"}};
}

}  // namespace mlc::driver
