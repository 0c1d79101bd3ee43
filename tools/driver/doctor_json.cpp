#include <nlohmann/json.hpp>

#include "lib/support/build_id.h"
#include "tools/driver/doctor.h"
#include "tools/driver/json_results.h"
#include "tools/driver/system_info.h"
#include "tools/driver/version.h"

namespace mlc::driver {

using Json = nlohmann::ordered_json;

namespace {

Json LibrariesJson(const std::vector<LibraryVersion>& libraries) {
  Json list = Json::array();
  for (const LibraryVersion& library : libraries) {
    Json row{{"name", library.name}};
    if (!library.built.empty()) row["built"] = library.built;
    if (!library.running.empty()) row["running"] = library.running;
    list.push_back(row);
  }
  return list;
}

}  // namespace

Json VersionJson() {
  return {{"mlc", {{"version", kVersion}, {"build", BuildId()}}},
          {"libraries", LibrariesJson(Libraries())}};
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
  for (runtime::Units units : kAllUnits) {
    const std::string why = WhyUnusable(found, units);
    Json row{{"units", Name(units)}, {"runs", why.empty()}};
    if (!why.empty()) row["why"] = why;
    json["units"].push_back(row);
  }
  for (const runtime::Capabilities::Missing& missing : found.missing)
    json["missing"].push_back({{"feature", missing.feature}, {"why", missing.why}});
  json["libraries"] = LibrariesJson(report.libraries);
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

Json FindingsJson(const std::filesystem::path& model, const std::vector<Finding>& findings) {
  int warnings = 0;
  Json list = Json::array();
  for (const Finding& finding : findings) {
    warnings += finding.severity == analysis::Severity::kWarning;
    list.push_back({{"id", finding.rule->id},
                    {"severity", Name(finding.severity)},
                    {"place", finding.place},
                    {"text", finding.text},
                    {"help", finding.help}});
  }
  return {{"model", model.string()}, {"findings", list}, {"warnings", warnings}};
}

}  // namespace mlc::driver
