#include "tools/driver/measured.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/coreml/manifest.h"
#include "lib/coreml/package.h"
#include "lib/support/install.h"

namespace fs = std::filesystem;

namespace mlc {

using Json = nlohmann::ordered_json;

namespace {

std::string Read(const fs::path& path) {
  std::ifstream in(path);
  if (!in) throw Error("file-io", fmt::format("cannot read \"{}\"", path.string()));
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

// What of a line of a history goes into a manifest.
Json Entry(const Json& line) {
  Json entry{{"time", line.at("time")},
             {"mlc", line.at("mlc")},
             {"machine", line.at("machine")},
             {"function", line.at("function")},
             {"units", line.at("units")}};
  const Json& placement = line.at("placement");
  if (placement.contains("operations")) entry["operations"] = placement["operations"];
  entry["iterations"] = line.at("iterations");
  entry["load_ms"] = line.at("load_ms");
  const Json& predict = line.at("timings_ms").at("predict");
  for (const char* field : {"p50", "p95", "p99"})
    entry["predict_ms"][field] = predict.at(field).get<double>();
  if (line.contains("compared")) {
    entry["compared_with"] = line["compared"].at("with");
    for (const Json& output : line["compared"].at("outputs")) {
      Json delta{{"output", output.at("name")}};
      for (const char* field : {"max_error", "rmse"})
        if (output.contains(field)) delta[field] = output[field];
      entry["deltas"].push_back(delta);
    }
  }
  return entry;
}

bool IsOfSame(const Json& a, const Json& b) {
  return a.at("machine") == b.at("machine") && a.at("function") == b.at("function") &&
         a.at("units") == b.at("units");
}

void SetSpeedUps(Json& entries) {
  for (Json& entry : entries) {
    entry.erase("speedup_vs_cpu");
    for (const Json& other : entries)
      if (other.at("units") == "cpu" && entry.at("units") != "cpu" &&
          other.at("machine") == entry.at("machine") &&
          other.at("function") == entry.at("function"))
        if (const double p50 = entry.at("predict_ms").at("p50"); p50 > 0)
          entry["speedup_vs_cpu"] = other.at("predict_ms").at("p50").get<double>() / p50;
  }
}

}  // namespace

MergedResults MergeResults(const fs::path& package, const std::vector<fs::path>& histories) {
  MergedResults merged{.manifest = ManifestPath(package)};
  const std::string hash = PackageHash(package);
  Json manifest = Json::parse(Read(merged.manifest), nullptr, false);
  if (!manifest.is_object() || !manifest.contains("package"))
    throw Error("bad-file", "this is no manifest").At({merged.manifest.string(), ""});
  if (manifest["package"].value("xxh3_128", "") != hash)
    throw Error("check-failed", "the manifest is of another package than the one beside it")
        .At({merged.manifest.string(), ""})
        .Help("compile again");
  Json entries = manifest.value("measured", Json::array());
  std::vector<std::string> others;
  for (const fs::path& history : histories) {
    const std::string text = Read(history);
    int line_number = 0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      ++line_number;
      try {
        if (end > begin) {
          const Json line = Json::parse(text.begin() + begin, text.begin() + end);
          if (line.at("model_hash") != hash) {
            ++merged.skipped;
          } else {
            Json entry = Entry(line);
            auto same = std::find_if(entries.begin(), entries.end(),
                                     [&](const Json& other) { return IsOfSame(entry, other); });
            if (same == entries.end()) {
              entries.push_back(std::move(entry));
              ++merged.added;
            } else if (same->at("time") <= entry.at("time")) {
              *same = std::move(entry);
              ++merged.replaced;
            }
          }
        }
      } catch (const Json::exception& error) {
        throw Error("bad-file", fmt::format("this is no result of a run: {}", error.what()))
            .At({history.string(), fmt::format("line {}", line_number)})
            .Expected("what `mlc run PACKAGE --history FILE` writes");
      }
      begin = end + 1;
    }
  }
  if (merged.added + merged.replaced == 0)
    throw Error("check-failed",
                fmt::format("no result is of this package; {} are of others", merged.skipped))
        .At({package.string(), ""})
        .Help("mlc run of this very package, with --history FILE, measures it");
  SetSpeedUps(entries);
  manifest["measured"] = entries;
  WriteFile(merged.manifest, manifest.dump(2) + "\n");
  return merged;
}

}  // namespace mlc
