#include "tools/driver/doctor.h"

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/runtimes.h"
#include "tools/driver/system_info.h"
#include "tools/mlc/command.h"

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorArguments {
  std::optional<std::string> model;
  ImportOptions import;
  bool strict = false;
};

// --- the machine

constexpr runtime::Device kDevices[] = {runtime::Device::kCpu, runtime::Device::kGpu,
                                        runtime::Device::kAne, runtime::Device::kReference};
constexpr runtime::Units kUnits[] = {runtime::Units::kAll, runtime::Units::kCpu,
                                     runtime::Units::kGpu, runtime::Units::kAne,
                                     runtime::Units::kReference};

bool Has(const runtime::Capabilities& found, runtime::Device device) {
  return std::ranges::find(found.devices, device) != found.devices.end();
}

// Returns why units cannot be used with --units, or "" if they can.
std::string WhyNot(const runtime::Capabilities& found, runtime::Units units) {
  if (units == runtime::Units::kReference) return "";
  if (!make_core_ml) return "requires Core ML, which runs on Apple's systems only";
  for (runtime::Device device : {runtime::Device::kGpu, runtime::Device::kAne})
    if (Name(device) == Name(units) && !Has(found, device))
      return "Core ML finds none on this machine";
  return "";
}

Json SystemJson(const SystemReport& report) {
  const runtime::Capabilities& found = report.runtime;
  Json json{{"mlc", {{"version", report.version}, {"build", report.build}}},
            {"chip", found.chip},
            {"os", found.os},
            {"os_build", found.os_build},
            {"runtime", {{"name", found.runtime}, {"version", found.runtime_version}}},
            {"devices", Json::array()},
            {"units", Json::array()},
            {"missing", Json::array()},
            {"libraries", Json::array()},
            {"threads", report.threads},
            {"processors", report.processors},
            {"memory_bytes", report.memory_bytes},
            {"cache", {{"folder", report.cache_folder.string()}}}};
  for (runtime::Device device : found.devices) json["devices"].push_back(Name(device));
  for (runtime::Units units : kUnits) {
    const std::string why = WhyNot(found, units);
    Json row{{"units", Name(units)}, {"runs", why.empty()}};
    if (!why.empty()) row["why"] = why;
    json["units"].push_back(row);
  }
  for (const runtime::Capabilities::Missing& missing : found.missing)
    json["missing"].push_back({{"feature", missing.feature}, {"why", missing.why}});
  for (const LibraryVersion& library : report.libraries) {
    Json row{{"name", library.name}};
    if (!library.built.empty()) row["built"] = library.built;
    if (!library.running.empty()) row["running"] = library.running;
    json["libraries"].push_back(row);
  }
  Json& cache = json["cache"];
  cache["disk_free_bytes"] = report.disk_free_bytes;
  if (!report.cache_fault.empty()) cache["fault"] = report.cache_fault;
  if (report.cache) {
    cache["entries"] = report.cache->entries;
    cache["bytes"] = report.cache->bytes;
    cache["limit"] = report.cache->limit;
    cache["hits"] = report.cache->hits;
    cache["misses"] = report.cache->misses;
  }
  return json;
}

void PrintSystem(const SystemReport& report) {
  const runtime::Capabilities& found = report.runtime;
  fmt::print("mlc        {}, build {}\n", report.version,
             report.build.empty() ? "unknown" : report.build);
  fmt::print("machine    {}, {} of {} processors used, {} of memory\n",
             found.chip.empty() ? "unknown chip" : found.chip, report.threads, report.processors,
             BytesText(report.memory_bytes));
  fmt::print("system     {} ({})\n", found.os, found.os_build);
  fmt::print("runtime    {} {}\n", found.runtime, found.runtime_version);
  std::string devices;
  for (runtime::Device device : kDevices)
    if (Has(found, device))
      devices += fmt::format("{}{}", devices.empty() ? "" : ", ", Name(device));
  fmt::print("devices    {}\n", devices);
  for (runtime::Units units : kUnits) {
    const std::string why = WhyNot(found, units);
    fmt::print("{:<11}{:<10} {}\n", units == runtime::Units::kAll ? "--units" : "", Name(units),
               why.empty() ? "yes" : "no: " + why);
  }
  std::string_view title = "missing";
  for (const runtime::Capabilities::Missing& missing : found.missing) {
    fmt::print("{:<11}{}: {}\n", title, missing.feature, missing.why);
    title = "";
  }
  title = "libraries";
  for (const LibraryVersion& library : report.libraries) {
    const bool differ =
        !library.built.empty() && !library.running.empty() && library.built != library.running;
    fmt::print("{:<11}{:<14} {}{}\n", title, library.name,
               library.built.empty() ? library.running : library.built,
               differ ? fmt::format(" (running with {})", library.running) : "");
    title = "";
  }
  std::string cache = "not created yet";
  if (!report.cache_fault.empty())
    cache = report.cache_fault;
  else if (report.cache)
    cache = fmt::format("{} entries, {} of {}; {} hits, {} misses", report.cache->entries,
                        BytesText(report.cache->bytes), BytesText(report.cache->limit),
                        report.cache->hits, report.cache->misses);
  fmt::print("cache      {}: {}; {} free\n", report.cache_folder.string(), cache,
             BytesText(report.disk_free_bytes));
}

int DescribeSystem(Session& session) {
  std::unique_ptr<runtime::Runtime> runtime = MakeRuntime(DefaultUnits(), {});
  SystemReport report = ExamineSystem(*runtime);
  report.libraries.push_back({"CLI11", CLI11_VERSION, ""});
  if (session.json)
    PrintDocument(SystemJson(report));
  else
    PrintSystem(report);
  return 0;
}

// --- a model

int ExamineModel(const DoctorArguments& given, Session& session) {
  const std::vector<Finding> findings = Examine(*given.model, given.import, session.diagnostics);
  int warnings = 0;
  Json list = Json::array();
  for (const Finding& finding : findings) {
    warnings += finding.severity == analysis::Severity::kWarning;
    list.push_back({{"id", finding.rule->id},
                    {"severity", Name(finding.severity)},
                    {"place", finding.place},
                    {"text", finding.text},
                    {"help", finding.help}});
    if (!session.json)
      fmt::print("{}[{}]: {}{}{}\n  help: {}\n", Name(finding.severity), finding.rule->id,
                 finding.place, finding.place.empty() ? "" : ": ", finding.text, finding.help);
  }
  if (session.json)
    PrintDocument({{"model", *given.model}, {"findings", list}, {"warnings", warnings}});
  else
    fmt::print("{} finding{}, {} warning{}\n", findings.size(), findings.size() == 1 ? "" : "s",
               warnings, warnings == 1 ? "" : "s");
  return given.strict && !findings.empty() ? ExitCode("check-failed") : 0;
}

// The help text lists the rules.
std::string RuleList() {
  std::string text = "Findings:\n";
  for (const analysis::Rule& rule : DoctorRules())
    text += fmt::format("  {:<24} {:<8} {}\n", rule.id, Name(rule.severity), rule.meaning);
  return text +
         "  and what the Neural Engine cannot run, or computes wrongly, by the rules of mlc "
         "explain\n\n";
}

}  // namespace

Command DoctorCommand() {
  auto given = std::make_shared<DoctorArguments>();
  std::vector<Option> table = {
      {"MODEL", "", "package or other model to examine (default: this machine and build)",
       Into(given->model)},
      {"--strict", "", "fail (exit code 3) if there is any finding", Switch(given->strict)},
      JsonOption()};
  Append(ImportTable(given->import), table);
  return {"doctor",
          "Describe this machine, or find problems that a model would cause in an app",
          "mlc doctor model.mlpackage --strict",
          std::move(table),
          [given](Session& session) {
            if (given->model) return ExamineModel(*given, session);
            if (given->strict) throw Error("usage", "--strict requires a model");
            return DescribeSystem(session);
          },
          RuleList()};
}

}  // namespace mlc::driver
