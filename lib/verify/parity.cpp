#include "lib/verify/parity.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "lib/ir/npy.h"
#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/install.h"
#include "lib/support/percent.h"

namespace mlc {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char *kParity = "parity.json", *kResult = "result.json";
constexpr int kVersion = 1;

void WriteJson(const fs::path& path, const Json& json) {
  std::ofstream file(path, std::ios::binary);
  file << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  if (!file.flush()) throw Error("file-io", fmt::format("cannot write \"{}\"", path.string()));
}

// Parses a file and gives `read` its document; what is missing or of another type is "bad-file".
template <class Read>
auto ReadJson(const fs::path& path, Read&& read) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("file-io", fmt::format("cannot open \"{}\"", path.string()));
  try {
    Json json = Json::parse(file);
    if (int version = json.at("version").get<int>(); version != kVersion)
      throw Error("bad-file", fmt::format("version {}", version))
          .At({path.string(), ""})
          .Expected(fmt::format("{}", kVersion));
    return read(json);
  } catch (const nlohmann::json::exception& error) {
    throw Error("bad-file", error.what()).At({path.string(), ""});
  }
}

Json ToJson(const std::vector<ParityFile>& files) {
  Json list = Json::array();
  for (const ParityFile& file : files)
    list.push_back({{"name", file.name}, {"file", file.file}, {"xxh3_128", file.hash}});
  return list;
}

std::vector<ParityFile> FilesFrom(const Json& json) {
  std::vector<ParityFile> files;
  for (const Json& entry : json) {
    ParityFile file{entry.at("name"), entry.at("file"), entry.at("xxh3_128")};
    fs::path path = file.file;
    if (path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end())
      throw Error("bad-file", fmt::format("\"{}\" lies outside the folder", file.file));
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<ParityFile> WriteTensors(const fs::path& folder, const char* name,
                                     const NamedTensors& tensors) {
  std::vector<ParityFile> files;
  fs::create_directories(folder / name);
  for (const auto& [port, tensor] : tensors) {
    std::string file = fmt::format("{}/{}.npy", name, PercentEncode(port));
    WriteNpy(folder / file, tensor);
    files.push_back({port, file, Xxh3OfFile(folder / file)});
  }
  return files;
}

void CheckFiles(const fs::path& folder, const std::vector<ParityFile>& files) {
  for (const ParityFile& file : files)
    if (Xxh3OfFile(folder / file.file) != file.hash)
      throw Error("check-failed", fmt::format("\"{}\" is not what was written", file.file))
          .At({(folder / file.file).string(), ""})
          .Help("copy the folder again");
}

// JSON has no infinity.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json("inf"); }
double NumberFrom(const Json& json) {
  return json.is_string() ? std::numeric_limits<double>::infinity() : json.get<double>();
}

}  // namespace

void WriteParity(const fs::path& folder, const fs::path& package, Parity parity,
                 const NamedTensors& inputs, const NamedTensors& references) {
  if (fs::exists(folder) && !fs::exists(folder / kParity) && !fs::is_empty(folder))
    throw Error("file-exists",
                fmt::format("\"{}\" exists and is no parity bundle", folder.string()))
        .Help("choose another folder");
  Staging staging(folder, true);
  fs::create_directories(staging.path());
  parity.package = package.filename().empty() ? package.parent_path().filename().string()
                                              : package.filename().string();
  std::error_code error;
  fs::copy(package, staging.path() / parity.package, fs::copy_options::recursive, error);
  if (error)
    throw Error("file-io",
                fmt::format("cannot copy \"{}\": {}", package.string(), error.message()));
  parity.inputs = WriteTensors(staging.path(), "inputs", inputs);
  parity.outputs = WriteTensors(staging.path(), "reference", references);
  WriteJson(staging.path() / kParity,
            {{"version", kVersion},
             {"package", parity.package},
             {"package_hash", parity.package_hash},
             {"reference", parity.reference},
             {"budget", {{"max_error", parity.budget.max_error}, {"rmse", parity.budget.rmse}}},
             {"inputs", ToJson(parity.inputs)},
             {"outputs", ToJson(parity.outputs)}});
  staging.Commit();
}

Parity ReadParity(const fs::path& folder) {
  Parity parity = ReadJson(folder / kParity, [](const Json& json) {
    Parity read;
    read.package = json.at("package");
    read.package_hash = json.at("package_hash");
    read.reference = json.at("reference");
    read.budget = {json.at("budget").at("max_error"), json.at("budget").at("rmse")};
    read.inputs = FilesFrom(json.at("inputs"));
    read.outputs = FilesFrom(json.at("outputs"));
    if (fs::path(read.package).filename() != read.package || read.package == "..")
      throw Error("bad-file", fmt::format("\"{}\" lies outside the folder", read.package));
    return read;
  });
  CheckFiles(folder, parity.inputs);
  CheckFiles(folder, parity.outputs);
  return parity;
}

bool ParityResult::ok() const {
  return std::all_of(outputs.begin(), outputs.end(), [](const Output& output) {
    return output.within || !output.comparison.discriminating;
  });
}

ParityResult WriteResult(const fs::path& folder, const Parity& parity, ParityResult result,
                         const NamedTensors& outputs) {
  result.package_hash = parity.package_hash;
  std::vector<ParityFile> files = WriteTensors(folder, "outputs", outputs);
  Json list = Json::array();
  for (size_t i = 0; i < parity.outputs.size(); ++i) {
    Comparison c = Compare(outputs.at(i).second, ReadNpy(folder / parity.outputs[i].file));
    bool within = c.Within(parity.budget);
    list.push_back({{"name", parity.outputs[i].name},
                    {"file", files[i].file},
                    {"xxh3_128", files[i].hash},
                    {"reference", parity.outputs[i].file},
                    {"reference_xxh3_128", parity.outputs[i].hash},
                    {"max_error", Number(c.max_error)},
                    {"rmse", Number(c.rmse)},
                    {"exact", c.exact},
                    {"equal_fraction", c.equal_fraction},
                    {"discriminating", c.discriminating},
                    {"mismatch", c.mismatch},
                    {"within", within}});
    result.outputs.push_back({parity.outputs[i].name, c, within});
  }
  WriteJson(folder / kResult,
            {{"version", kVersion},
             {"ok", result.ok()},
             {"package_hash", result.package_hash},
             {"units", result.units},
             {"machine", result.machine},
             {"mlc", result.version},
             {"predict_ms", result.milliseconds},
             {"budget", {{"max_error", parity.budget.max_error}, {"rmse", parity.budget.rmse}}},
             {"outputs", list}});
  return result;
}

ParityResult ReadResult(const fs::path& file) {
  fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  return ReadJson(file, [&](const Json& json) {
    ParityResult result;
    result.package_hash = json.at("package_hash");
    result.units = json.at("units");
    result.machine = json.at("machine");
    result.version = json.at("mlc");
    result.milliseconds = json.at("predict_ms");
    Budget budget{json.at("budget").at("max_error"), json.at("budget").at("rmse")};
    for (const Json& entry : json.at("outputs")) {
      Comparison c;
      c.max_error = NumberFrom(entry.at("max_error"));
      c.rmse = NumberFrom(entry.at("rmse"));
      c.exact = entry.at("exact");
      c.equal_fraction = entry.at("equal_fraction");
      c.discriminating = entry.at("discriminating");
      c.mismatch = entry.at("mismatch");
      ParityFile output = FilesFrom(Json::array({entry}))[0], reference = output;
      reference.file = entry.at("reference");
      reference.hash = entry.at("reference_xxh3_128");
      reference = FilesFrom(ToJson({reference}))[0];
      if (fs::exists(folder / output.file)) {
        CheckFiles(folder, {output});
        if (fs::exists(folder / reference.file)) {
          CheckFiles(folder, {reference});
          c = Compare(ReadNpy(folder / output.file), ReadNpy(folder / reference.file));
        }
      }
      result.outputs.push_back({output.name, c, c.Within(budget)});
    }
    if (json.at("ok").get<bool>() != result.ok())
      throw Error("check-failed", "the result says another thing than its figures");
    return result;
  });
}

}  // namespace mlc
