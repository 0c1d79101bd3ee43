#include "tools/driver/manifest_results.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "backends/coreml/manifest.h"
#include "lib/coreml/package_layout.h"
#include "lib/runtime/runtime.h"
#include "lib/support/atomic_install.h"
#include "lib/support/file_lock.h"
#include "lib/support/json_text.h"
#include "tools/driver/benchmark_report.h"

namespace fs = std::filesystem;

namespace mlc::driver {

using Json = nlohmann::ordered_json;

namespace {

std::string Read(const fs::path& path) {
  std::ifstream in(path);
  const char* why = in ? "" : strerror(errno);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) why = "it is a folder";
  if (*why) throw Error("file-io", "cannot read \"{}\": {}", path.string(), why);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

// Returns a member of a given type. Error "bad-file" otherwise; the caller adds the location.
template <class Is>
const Json& Field(const Json& object, const char* name, Is is, const char* kind) {
  if (!object.is_object()) throw Error("bad-file", "the parent of \"{}\" is not an object", name);
  const auto it = object.find(name);
  if (it == object.end()) throw Error("bad-file", "\"{}\" is missing", name);
  if (!std::invoke(is, *it)) throw Error("bad-file", "\"{}\" is not {}", name, kind);
  return *it;
}
const Json& Text(const Json& object, const char* name) {
  return Field(object, name, &Json::is_string, "a string");
}
const Json& Object(const Json& object, const char* name) {
  return Field(object, name, &Json::is_object, "an object");
}
const Json& List(const Json& object, const char* name) {
  return Field(object, name, &Json::is_array, "a list");
}
const Json& Count(const Json& object, const char* name) {
  auto is = [](const Json& v) {
    return v.is_number_unsigned() || (v.is_number_integer() && v.get<int64_t>() >= 0);
  };
  return Field(object, name, is, "a non-negative integer");
}
const Json& Figure(const Json& object, const char* name) {
  auto is = [](const Json& v) { return v.is_number() && v.get<double>() >= 0; };
  return Field(object, name, is, "a number of at least 0");
}

// Returns whether a report states that there is no figure.
bool NoFigure(const Json& value) { return value.is_null() || value == "inf" || value == "nan"; }

// Checks the members that identify an entry.
void CheckPlace(const Json& entry) {
  CheckResultTime(Text(entry, "time").get<std::string>());
  Text(entry, "function");
  if (const std::string units = Text(entry, "units"); !runtime::ParseUnits(units))
    throw Error("bad-file", "\"units\" is \"{}\"", units)
        .Expected("all, cpu, gpu, ane or reference");
  const Json& machine = Object(entry, "machine");
  Text(machine, "runtime");
  for (const auto& [name, value] : machine.items()) Text(machine, name.c_str());
}

// Converts a line of a history to a manifest entry.
Json Entry(const Json& line) {
  CheckPlace(line);
  Json entry{{"time", line["time"]},
             {"mlc", Text(line, "mlc")},
             {"machine", line["machine"]},
             {"function", line["function"]},
             {"units", line["units"]}};
  // If absent, single predictions were measured.
  if (line.contains("measures") && Text(line, "measures") != "predictions")
    entry["measures"] = line["measures"];
  if (line.contains("jobs") && Count(line, "jobs") != 1) entry["jobs"] = line["jobs"];
  const Json& placement = Object(line, "placement");
  if (placement.contains("operations")) {
    const Json& operations = Object(placement, "operations");
    for (const auto& [device, count] : operations.items()) Count(operations, device.c_str());
    entry["operations"] = operations;
  }
  entry["iterations"] = Count(line, "iterations");
  entry["load_ms"] = Figure(line, "load_ms");
  const Json& predict = Object(Object(line, "timings_ms"), "predict");
  for (const char* field : {"p50", "p95", "p99"})
    entry["predict_ms"][field] = Figure(predict, field).get<double>();
  if (line.contains("compared")) {
    const Json& compared = Object(line, "compared");
    entry["compared_with"] = Text(compared, "with");
    for (const Json& output : List(compared, "outputs")) {
      Json delta{{"output", Text(output, "name")}};
      for (const char* field : {"max_error", "rmse"})
        if (output.contains(field))
          delta[field] = NoFigure(output[field]) ? Json() : Figure(output, field);
      entry["deltas"].push_back(delta);
    }
  }
  return entry;
}

// Returns whether nothing was measured, or some results came from a fallback.
bool Failed(const Json& line) {
  if (Count(line, "iterations") == 0) return true;
  if (line.contains("failures") && !List(line, "failures").empty()) return true;
  if (!line.contains("telemetry")) return false;
  const Json& telemetry = Object(line, "telemetry");
  for (const char* field : {"fallbacks", "failed", "refused"})
    if (telemetry.contains(field) && Count(telemetry, field) > 0) return true;
  return false;
}

// Reads a manifest and checks the parts that merging uses.
Json ReadManifest(const fs::path& path) {
  std::string place;
  try {
    Json manifest = ParseJsonIfValid(Read(path));
    if (!manifest.is_object()) throw Error("bad-file", "this is not a manifest");
    Text(Object(manifest, "package"), "xxh3_128");
    if (!manifest.contains("measured")) return manifest;
    int64_t i = 0;
    for (const Json& entry : List(manifest, "measured")) {
      place = fmt::format("measured[{}]", i++);
      CheckPlace(entry);
      Figure(Object(entry, "predict_ms"), "p50");
    }
    return manifest;
  } catch (Error& error) {
    if (error.id() == "bad-file")
      throw Error(error).At({path.string(), place}).Help("compile again, for a new manifest");
    throw;
  }
}

bool IsOfSame(const Json& a, const Json& b, std::initializer_list<const char*> fields) {
  return std::ranges::all_of(
      fields, [&](const char* field) { return a.value(field, Json()) == b.value(field, Json()); });
}

void SetSpeedUps(Json& entries) {
  for (Json& entry : entries) {
    entry.erase("speedup_vs_cpu");
    for (const Json& other : entries)
      if (other.at("units") == "cpu" && entry.at("units") != "cpu" &&
          IsOfSame(entry, other, {"machine", "function", "measures", "jobs"}))
        if (const double p50 = entry.at("predict_ms").at("p50"); p50 > 0)
          entry["speedup_vs_cpu"] = other.at("predict_ms").at("p50").get<double>() / p50;
  }
}

// Merges one line and updates the counts.
void Merge(const Json& line, const std::string& hash, Json& entries, MergedResults& merged) {
  if (!line.is_object()) throw Error("bad-file", "this is not a JSON object");
  // Runs of source models have no hash.
  const bool hashed = line.contains("model_hash");
  if (!hashed) Object(line, "timings_ms");
  if (!hashed || Text(line, "model_hash") != hash) {
    ++merged.skipped;
    return;
  }
  if (Failed(line)) {
    ++merged.failed;
    return;
  }
  Json entry = Entry(line);
  const auto same = std::find_if(entries.begin(), entries.end(), [&](const Json& other) {
    return IsOfSame(entry, other, {"machine", "function", "units", "measures", "jobs"});
  });
  if (same == entries.end()) {
    entries.push_back(std::move(entry));
    ++merged.added;
  } else if (same->at("time") <= entry.at("time")) {
    *same = std::move(entry);
    ++merged.replaced;
  } else {
    ++merged.older;
  }
}

void MergeHistory(const fs::path& history, const std::string& hash, Json& entries,
                  MergedResults& merged, Diagnostics& diagnostics) {
  const std::string text = Read(history);
  int line_number = 0;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    ++line_number;
    if (end == begin) continue;
    const Location where{history.string(), fmt::format("line {}", line_number)};
    const Json line = ParseJsonIfValid(std::string_view(text).substr(begin, end - begin));
    if (line.is_discarded() && end == text.size()) {
      diagnostics.Warn(Error("bad-file", "the last line is truncated and was skipped").At(where));
      continue;
    }
    try {
      if (line.is_discarded()) throw Error("bad-file", "this is not JSON");
      Merge(line, hash, entries, merged);
    } catch (const Error& error) {
      throw Error("bad-file", "this is not the result of a run: {}", error.text())
          .At(where)
          .Expected("what `mlc run PACKAGE --history FILE` writes");
    }
  }
}

}  // namespace

MergedResults MergeResults(const fs::path& package, const std::vector<fs::path>& histories,
                           Diagnostics& diagnostics) {
  MergedResults merged{.manifest = coreml::ManifestPath(package)};
  const std::string hash = coreml::PackageHash(package);
  ReadManifest(merged.manifest);  // checks it before a lock file is created beside it
  // The lock ensures that concurrent merges see each other's results.
  const fs::path name = "." + merged.manifest.filename().string() + ".lock";
  FileLock lock = FileLock::Wait(merged.manifest.parent_path() / name, FileLock::kExclusive);
  try {
    Json manifest = ReadManifest(merged.manifest);
    if (manifest["package"]["xxh3_128"] != hash)
      throw Error("check-failed", "the manifest does not belong to the package beside it")
          .At({merged.manifest.string(), ""})
          .Help("compile again");
    Json entries = manifest.value("measured", Json::array());
    for (const fs::path& history : histories)
      MergeHistory(history, hash, entries, merged, diagnostics);
    if (merged.added + merged.replaced + merged.older == 0)
      throw Error("check-failed",
                  "no usable result for this package (failed runs: {}, results of other "
                  "packages: {})",
                  merged.failed, merged.skipped)
          .Note(
              "a run counts as failed if it has no prediction, or if a prediction failed or was "
              "answered by the reference engine in place of Core ML")
          .At({package.string(), ""})
          .Help("`mlc run PACKAGE --history FILE` measures it");
    if (merged.added + merged.replaced > 0) {
      SetSpeedUps(entries);
      manifest["measured"] = entries;
      WriteFile(merged.manifest, JsonText(manifest, 2) + "\n");
    }
  } catch (...) {
    lock.RemoveFile();
    throw;
  }
  lock.RemoveFile();
  return merged;
}

}  // namespace mlc::driver
