#include "tools/driver/build_history.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "lib/support/atomic_install.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/utc_time.h"
#include "tools/driver/version.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using Json = nlohmann::ordered_json;

Json ReadJson(const fs::path& file) {
  const auto contents = MappedFile::Open(file);
  const std::span<const std::byte> bytes = contents->bytes();
  return ParseJsonIfValid({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Adds what the manifest knows beyond the record.
void AddManifestFigures(const fs::path& manifest, std::map<std::string, double>& figures) {
  std::error_code error;
  if (manifest.empty() || !fs::is_regular_file(manifest, error)) return;
  const Json json = ReadJson(manifest);
  try {
    if (json.contains("placement"))
      figures["coverage"] = json["placement"].at("ane_work_coverage_pct").get<double>() / 100;
    for (const Json& entry : json.value("measured", Json::array())) {
      if (entry.contains("measures") || entry.contains("jobs")) continue;
      const Json& machine = entry.at("machine");
      figures[fmt::format("p50 {}, {}", entry.at("units").get<std::string>(),
                          machine.value("chip", machine.at("runtime").get<std::string>()))] =
          entry.at("predict_ms").at("p50");
    }
  } catch (const Json::exception&) {  // not a manifest of mlc
  }
}

PastBuild BuildFrom(const Json& json) {
  PastBuild build{.time = json.at("time"), .variants = {}};
  for (const auto& [name, variant] : json.at("variants").items()) {
    VariantFigures& figures = build.variants[name];
    figures.status = variant.at("status");
    for (const auto& [figure, value] : variant.at("figures").items())
      figures.figures[figure] = NumberFromJson(value);
  }
  return build;
}

}  // namespace

VariantFigures FiguresOf(const BuildRecord& record) {
  VariantFigures found{std::string(Name(record.status)), {}};
  if (record.status == BuildRecord::Status::kNotBuilt) return found;
  std::map<std::string, double>& figures = found.figures;
  figures["size"] = static_cast<double>(record.package_bytes);
  figures["operations"] = static_cast<double>(record.operations);
  figures["fp16"] = record.fp16_share;
  for (const BuildCheck& check : record.checks) {
    if (check.kind == BuildCheck::Kind::kReference) {
      double& error = figures.try_emplace("error", 0).first->second;
      error = std::max(error, check.max_error);
    } else if (check.kind == BuildCheck::Kind::kAccuracy) {
      double& accuracy = figures.try_emplace("accuracy", 1).first->second;
      accuracy = std::min(accuracy, check.found);
    }
  }
  AddManifestFigures(record.manifest, figures);
  if (record.latency_ms) figures["p50 " + record.machine] = *record.latency_ms;
  return found;
}

std::vector<PastBuild> ReadHistory(const fs::path& folder, Diagnostics& diagnostics) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json" && entry.path().filename().string()[0] != '.')
      files.push_back(entry.path());
  // Names begin with the time.
  std::ranges::sort(files);
  if (files.size() > kMostBuilds)
    files.erase(files.begin(), files.end() - static_cast<ptrdiff_t>(kMostBuilds));
  std::vector<PastBuild> builds;
  for (const fs::path& file : files) {
    try {
      builds.push_back(BuildFrom(ReadJson(file)));
    } catch (const Json::exception& problem) {
      diagnostics.Warn(Error("bad-file", "not the file of a build: {}", JsonFault(problem.what()))
                           .At({file.string(), ""})
                           .Help("remove it from the folder of option 'history'"));
    }
  }
  return builds;
}

void AddToHistory(const fs::path& folder, const std::map<std::string, VariantFigures>& variants) {
  const std::string time = UtcText(std::time(nullptr));
  Json json{{"time", time}, {"mlc", kVersion}, {"variants", Json::object()}};
  for (const auto& [name, variant] : variants) {
    if (variant.figures.empty()) continue;
    Json figures = Json::object();
    for (const auto& [figure, value] : variant.figures) figures[figure] = NumberJson(value);
    json["variants"][name] = {{"status", variant.status}, {"figures", figures}};
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error("file-io", "cannot create \"{}\": {}", folder.string(), error.message());
  // Colons are separators of folders in the Finder.
  std::string stem = time;
  std::ranges::replace(stem, ':', '-');
  fs::path file = folder / (stem + ".json");
  for (int i = 2; fs::exists(file, error); ++i) file = folder / fmt::format("{}-{}.json", stem, i);
  WriteFile(file, JsonText(json) + "\n");
}

}  // namespace mlc::driver
