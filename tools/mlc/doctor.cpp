#include "tools/driver/doctor.h"

#include <CLI/Version.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/json_results.h"
#include "tools/driver/runtimes.h"
#include "tools/driver/system_info.h"
#include "tools/mlc/command.h"
#include "tools/mlc/terminal.h"

namespace mlc::driver {
namespace {

struct DoctorArguments {
  std::vector<std::string> models;
  ImportOptions import;
  bool strict = false;
};

// --- the machine

constexpr runtime::Device kDevices[] = {runtime::Device::kCpu, runtime::Device::kGpu,
                                        runtime::Device::kAne, runtime::Device::kReference};
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
    if (std::ranges::find(found.devices, device) != found.devices.end())
      devices += fmt::format("{}{}", devices.empty() ? "" : ", ", Name(device));
  fmt::print("devices    {}\n", devices);
  for (runtime::Units units : kAllUnits) {
    const std::string why = WhyUnusable(found, units);
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
    cache = fmt::format(
        "{}, {} of {}; {} hits, {} misses",
        report.cache->entries == 1 ? "1 entry" : fmt::format("{} entries", report.cache->entries),
        BytesText(report.cache->bytes), BytesText(report.cache->limit), report.cache->hits,
        report.cache->misses);
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

int ExamineModel(const DoctorArguments& given, const std::filesystem::path& model, Session& session,
                 nlohmann::ordered_json& document) {
  const std::vector<Finding> findings = Examine(model, given.import, session.diagnostics);
  if (given.models.size() > 1 && !session.json) fmt::print("{}\n", model.string());
  int warnings = 0;
  for (const Finding& finding : findings) {
    warnings += finding.severity == analysis::Severity::kWarning;
    if (!session.json)
      PrintColored(stdout,
                   fmt::format("{}[{}]: {}{}{}\n  help: {}\n", Name(finding.severity),
                               finding.rule->id, finding.place, finding.place.empty() ? "" : ": ",
                               finding.text, finding.help));
  }
  if (session.json)
    document = FindingsJson(model, findings);
  else
    fmt::print("{}, {}\n", Counted(std::ssize(findings), "finding"), Counted(warnings, "warning"));
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
      {"MODEL...", "", "packages or other models to examine (default: this machine and build)",
       Into(given->models)},
      {"--strict", "", "fail (exit code 3) if there is any finding", Switch(given->strict)},
      JsonOption()};
  Append(ImportTable(given->import), table);
  return {"doctor",
          "Describe this machine, or find problems that a model would cause in an app",
          {"mlc doctor", "mlc doctor model.mlpackage --strict"},
          std::move(table),
          [given](Session& session) {
            if (!given->models.empty())
              return RunEach(given->models, session,
                             [&](const std::filesystem::path& model, Session& own,
                                 nlohmann::ordered_json& document) {
                               return ExamineModel(*given, model, own, document);
                             });
            if (given->strict) throw Error("usage", "--strict requires a model");
            return DescribeSystem(session);
          },
          RuleList(),
          {"explain", "inspect"}};
}

}  // namespace mlc::driver
