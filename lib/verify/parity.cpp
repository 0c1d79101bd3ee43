#include "lib/verify/parity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/ir/npy.h"
#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/install.h"
#include "lib/support/mapped_file.h"
#include "lib/support/percent.h"
#include "lib/support/sources.h"

namespace mlc {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kParity = "parity.json";
constexpr int kVersion = 1;
constexpr std::string_view kCopyAgain = "copy the whole folder again";

// Both files carry the XXH3-128 of their text, computed with zeros in its place.
const std::string kChecksum = "\"checksum\": \"", kNoChecksum(32, '0');

std::string Checksum(std::string_view text) {
  Xxh3 hash;
  hash.Update(text);
  return hash.Hex();
}

// Returns the checksum.
std::string WriteJson(const fs::path& path, Json json) {
  Json whole{{"version", kVersion}, {"checksum", kNoChecksum}};
  whole.update(json);
  std::string text = whole.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  std::string checksum = Checksum(text);
  text.replace(text.find(kChecksum) + kChecksum.size(), checksum.size(), checksum);
  WriteFile(path, text);
  return checksum;
}

// Checks the checksum and gives `read` the document.
template <class Read>
auto ReadJson(const fs::path& path, std::string_view what, std::string_view way_to_one,
              Read&& read) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored))
    throw Error("file-io", fmt::format("there is no {}", what))
        .At({path.string(), ""})
        .Help(std::string(way_to_one));
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  std::string text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  size_t at = text.find(kChecksum);
  bool whole = false;
  if (at != std::string::npos && at + kChecksum.size() + kNoChecksum.size() <= text.size()) {
    std::string zeroed = text;
    zeroed.replace(at + kChecksum.size(), kNoChecksum.size(), kNoChecksum);
    whole = text.substr(at + kChecksum.size(), kNoChecksum.size()) == Checksum(zeroed);
  }
  if (!whole)
    throw Error("check-failed", fmt::format("this is no {}, or it was changed since", what))
        .At({path.string(), ""})
        .Help(fmt::format("copy it again; {}", way_to_one));
  try {
    Json json = Json::parse(text);
    if (int version = json.at("version").get<int>(); version != kVersion)
      throw Error("bad-file", fmt::format("version {}", version))
          .Expected(fmt::format("{}", kVersion));
    return read(json);
  } catch (const nlohmann::json::exception& error) {
    throw Error("bad-file", error.what()).At({path.string(), ""});
  } catch (Error& error) {
    if (!error.has_location()) error.At({path.string(), ""});
    throw;
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
  std::error_code ignored;
  for (const ParityFile& file : files) {
    fs::path path = folder / file.file;
    if (!fs::is_regular_file(path, ignored))
      throw Error("file-io", fmt::format("the parity bundle lacks \"{}\"", file.file))
          .At({path.string(), ""})
          .Help(std::string(kCopyAgain));
    if (Xxh3OfFile(path) != file.hash)
      throw Error("check-failed", fmt::format("\"{}\" was changed since it was written", file.file))
          .At({path.string(), ""})
          .Help(std::string(kCopyAgain));
  }
}

// JSON has no infinity.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json("inf"); }
double NumberFrom(const Json& json) {
  return json.is_string() ? std::numeric_limits<double>::infinity() : json.get<double>();
}

// Whether mlc wrote a parity bundle, or its result, and the folder holds nothing else.
bool IsOwnParity(const fs::path& folder) {
  Sources::Unnoted look;
  try {
    std::set<fs::path> known = {kParity, kParityResult, "inputs", "reference", "outputs"};
    known.insert(ReadJson(folder / kParity, "parity bundle", "",
                          [](const Json& json) { return json.at("package").get<std::string>(); }));
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (!known.contains(entry.path().filename())) return false;
    return true;
  } catch (const Error&) {
    return false;
  } catch (const fs::filesystem_error&) {
    return false;
  }
}

}  // namespace

void WriteParity(const fs::path& folder, const fs::path& package, Parity parity,
                 const NamedTensors& inputs, const NamedTensors& references) {
  std::error_code error;
  Staging staging(folder, Staging::kFolder, true);
  if (fs::exists(folder, error) && !IsOwnParity(folder) &&
      !(fs::is_directory(folder, error) && fs::is_empty(folder, error)))
    throw Error("file-exists",
                fmt::format("\"{}\" exists and is no parity bundle, or holds more than one",
                            folder.string()))
        .Help("choose another folder");
  fs::create_directories(staging.path());
  parity.package = package.filename().empty() ? package.parent_path().filename().string()
                                              : package.filename().string();
  fs::copy(package, staging.path() / parity.package, fs::copy_options::recursive, error);
  if (error)
    throw Error("file-io",
                fmt::format("cannot copy \"{}\": {}", package.string(), error.message()));
  parity.inputs = WriteTensors(staging.path(), "inputs", inputs);
  parity.outputs = WriteTensors(staging.path(), "reference", references);
  WriteJson(staging.path() / kParity,
            {{"package", parity.package},
             {"package_hash", parity.package_hash},
             {"reference", parity.reference},
             {"budget", {{"max_error", parity.budget.max_error}, {"rmse", parity.budget.rmse}}},
             {"inputs", ToJson(parity.inputs)},
             {"outputs", ToJson(parity.outputs)}});
  staging.Commit();
}

Parity ReadParity(const fs::path& folder) {
  auto way = "`mlc verify SOURCE PACKAGE --bundle DIR` makes a parity bundle";
  Parity parity = ReadJson(folder / kParity, "parity bundle", way, [](const Json& json) {
    Parity read;
    read.checksum = json.at("checksum");
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
  result.bundle = parity.checksum;
  result.package_hash = parity.package_hash;
  std::vector<ParityFile> files = WriteTensors(folder, "outputs", outputs);
  Json list = Json::array();
  for (size_t i = 0; i < parity.outputs.size(); ++i) {
    Comparison c = Compare(outputs.at(i).second, ReadNpy(folder / parity.outputs[i].file));
    bool within = c.Within(parity.budget);
    list.push_back({{"name", parity.outputs[i].name},
                    {"file", files[i].file},
                    {"xxh3_128", files[i].hash},
                    {"max_error", Number(c.max_error)},
                    {"rmse", Number(c.rmse)},
                    {"exact", c.exact},
                    {"equal_fraction", c.equal_fraction},
                    {"discriminating", c.discriminating},
                    {"mismatch", c.mismatch},
                    {"within", within}});
    result.outputs.push_back({parity.outputs[i].name, c, within});
  }
  WriteJson(folder / kParityResult,
            {{"ok", result.ok()},
             {"bundle", result.bundle},
             {"package_hash", result.package_hash},
             {"units", result.units},
             {"machine", result.machine},
             {"mlc", result.version},
             {"predict_ms", result.milliseconds},
             {"budget", {{"max_error", parity.budget.max_error}, {"rmse", parity.budget.rmse}}},
             {"outputs", list}});
  return result;
}

ParityResult ReadResult(const fs::path& file, const fs::path& bundle) {
  fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  auto way = "`mlc-run --bundle DIR` writes a result into the bundle";
  std::vector<ParityFile> files;
  Budget budget;
  ParityResult result = ReadJson(file, "result of a parity bundle", way, [&](const Json& json) {
    ParityResult read;
    read.bundle = json.at("bundle");
    read.package_hash = json.at("package_hash");
    read.units = json.at("units");
    read.machine = json.at("machine");
    read.version = json.at("mlc");
    read.milliseconds = json.at("predict_ms");
    budget = {json.at("budget").at("max_error"), json.at("budget").at("rmse")};
    files = FilesFrom(json.at("outputs"));
    for (const Json& entry : json.at("outputs")) {
      Comparison c;
      c.max_error = NumberFrom(entry.at("max_error"));
      c.rmse = NumberFrom(entry.at("rmse"));
      c.exact = entry.at("exact");
      c.equal_fraction = entry.at("equal_fraction");
      c.discriminating = entry.at("discriminating");
      c.mismatch = entry.at("mismatch");
      read.outputs.push_back({entry.at("name"), c, c.Within(budget)});
    }
    return read;
  });
  if (bundle.empty() && !fs::exists(folder / kParity)) return result;
  Parity parity = ReadParity(bundle.empty() ? folder : bundle);
  if (result.bundle != parity.checksum)
    throw Error("check-failed", "the result is of another parity bundle")
        .At({file.string(), ""})
        .Note(fmt::format("compared with {}", (bundle.empty() ? folder : bundle).string()))
        .Help("run the bundle again, or name the one that the result is of: --bundle DIR");
  if (!fs::exists(folder / "outputs")) return result;
  CheckFiles(folder, files);
  for (size_t i = 0; i < files.size() && i < parity.outputs.size(); ++i) {
    ParityResult::Output& output = result.outputs[i];
    output.comparison =
        Compare(ReadNpy(folder / files[i].file),
                ReadNpy((bundle.empty() ? folder : bundle) / parity.outputs[i].file));
    output.within = output.comparison.Within(budget);
  }
  result.compared_again = true;
  return result;
}

}  // namespace mlc
