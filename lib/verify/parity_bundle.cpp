#include "lib/verify/parity_bundle.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/ir/npy.h"
#include "lib/support/atomic_install.h"
#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/input_registry.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/percent_encoding.h"

namespace mlc::verify {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kParity = "parity.json";
constexpr int kVersion = 3;
constexpr int64_t kMostSteps = 1 << 16;
constexpr std::string_view kCopyAgain = "copy the whole folder again";

// Both files contain the XXH3-128 of their text, computed with zeros in place of the checksum.
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
  std::string text = JsonText(whole, 2, BadUtf8::kReplace) + "\n";
  std::string checksum = Checksum(text);
  text.replace(text.find(kChecksum) + kChecksum.size(), checksum.size(), checksum);
  WriteFile(path, text);
  return checksum;
}

// Verifies the checksum, then passes the document to `read`.
template <class Read>
auto ReadJson(const fs::path& path, std::string_view what, std::string_view way_to_one,
              Read&& read) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored))
    throw Error("file-io", "no {} found", what)
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
    throw Error("check-failed", "not a {}, or modified since it was written", what)
        .At({path.string(), ""})
        .Help("copy it again; {}", way_to_one);
  try {
    Json json = ParseJson(text);
    if (int version = json.at("version").get<int>(); version != kVersion)
      throw Error("bad-file", "the {} has format version {}", what, version)
          .Expected("version {}", kVersion)
          .Help("create it again with this version of mlc");
    return read(json);
  } catch (const nlohmann::json::exception& error) {
    throw Error("bad-file", JsonFault(error.what())).At({path.string(), ""});
  } catch (Error& error) {
    if (!error.has_location()) error.At({path.string(), ""});
    throw;
  }
}

Json ToJson(const std::vector<ParityFile>& files) {
  Json list = Json::array();
  for (const ParityFile& file : files) {
    list.push_back({{"function", file.function},
                    {"step", file.step},
                    {"kind", file.state ? "state" : "tensor"},
                    {"name", file.name},
                    {"file", file.file},
                    {"xxh3_128", file.hash}});
    if (file.floor) list.back()["floor"] = ParseJson(ToJson(*file.floor));
  }
  return list;
}

std::vector<ParityFile> FilesFrom(const Json& json) {
  std::vector<ParityFile> files;
  for (const Json& entry : json) {
    ParityFile file{entry.at("function"), entry.at("step"), entry.at("kind") == "state",
                    entry.at("name"),     entry.at("file"), entry.at("xxh3_128")};
    if (entry.contains("floor")) file.floor = FloorFromJson(JsonText(entry.at("floor")));
    fs::path path = file.file;
    if (path.is_absolute() || std::ranges::find(path, "..") != path.end())
      throw Error("bad-file", "path \"{}\" is outside the folder", file.file);
    if (file.step < 0 || file.step >= kMostSteps)
      throw Error("bad-file", "\"{}\" has invalid step {}", file.name, file.step);
    files.push_back(std::move(file));
  }
  return files;
}

// The layout of the folders of a bundle.
struct Folders {
  bool functions, steps;  // whether there are several of them
  fs::path Of(const ParityFile& file) const {
    fs::path path;
    if (functions) path /= file.function;
    if (steps) path /= std::to_string(file.step);
    if (file.state) path /= "states";
    return path / (FileStem(file.name) + ".npy");
  }
};

// Writes `tensor` below folder/kind and fills in the path and the hash.
ParityFile WriteTensor(const fs::path& folder, const fs::path& kind, const Folders& folders,
                       ParityFile file, const Tensor& tensor) {
  fs::path path = kind / folders.Of(file);
  fs::create_directories((folder / path).parent_path());
  WriteNpy(folder / path, tensor);
  file.file = path.generic_string();
  file.hash = Xxh3OfFile(folder / path);
  return file;
}

void CheckFiles(const fs::path& folder, const std::vector<ParityFile>& files) {
  std::error_code ignored;
  for (const ParityFile& file : files) {
    fs::path path = folder / file.file;
    if (!fs::is_regular_file(path, ignored))
      throw Error("file-io", "\"{}\" is missing from the parity bundle", file.file)
          .At({path.string(), ""})
          .Help(std::string(kCopyAgain));
    if (Xxh3OfFile(path) != file.hash)
      throw Error("check-failed", "\"{}\" was modified after it was written", file.file)
          .At({path.string(), ""})
          .Help(std::string(kCopyAgain));
  }
}

// Returns whether the folder holds a parity bundle, with or without a result, and nothing else.
bool IsOwnParity(const fs::path& folder) {
  InputRegistry::Unnoted look;
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

Compared CompareWith(const fs::path& folder, const Parity& parity, const ParityFile& reference,
                     const Tensor& value) {
  Budget budget = parity.budgets.of(reference.name);
  budget.floor = reference.floor;
  return CompareTensor(reference.function, reference.name, reference.state, reference.step, value,
                       ReadNpy(folder / reference.file), budget);
}

}  // namespace

void WriteParity(const fs::path& folder, const fs::path& package, Parity parity,
                 const std::vector<ParityFunction>& functions) {
  std::error_code error;
  Staging staging(folder, Staging::kFolder, true);
  if (fs::exists(folder, error) && !IsOwnParity(folder) &&
      !(fs::is_directory(folder, error) && fs::is_empty(folder, error)))
    throw Error("file-exists", "\"{}\" exists and is not a parity bundle, or contains other files",
                folder.string())
        .Help("choose another folder");
  fs::create_directories(staging.path());
  parity.package = package.filename().empty() ? package.parent_path().filename().string()
                                              : package.filename().string();
  fs::copy(package, staging.path() / parity.package, fs::copy_options::recursive, error);
  if (error) throw Error("file-io", "cannot copy \"{}\": {}", package.string(), error.message());
  for (const ParityFunction& function : functions) {
    Folders folders{functions.size() > 1, function.inputs.size() > 1};
    for (size_t step = 0; step < function.inputs.size(); ++step)
      for (const auto& [name, tensor] : function.inputs[step])
        parity.inputs.push_back(
            WriteTensor(staging.path(), "inputs", folders,
                        {function.name, static_cast<int64_t>(step), false, name, "", ""}, tensor));
    for (size_t step = 0; step < function.references.size(); ++step)
      for (bool state : {false, true})
        for (const auto& [name, tensor] :
             state ? function.references[step].states : function.references[step].outputs)
          if (tensor)
            parity.outputs.push_back(WriteTensor(staging.path(), "reference", folders,
                                                 {function.name, static_cast<int64_t>(step), state,
                                                  name, "", "", function.budgets.of(name).floor},
                                                 tensor));
  }
  WriteJson(staging.path() / kParity, {{"package", parity.package},
                                       {"package_hash", parity.package_hash},
                                       {"reference", parity.reference},
                                       {"budget", ParseJson(ToJson(parity.budgets))},
                                       {"inputs", ToJson(parity.inputs)},
                                       {"outputs", ToJson(parity.outputs)}});
  staging.Commit();
}

Parity ReadParity(const fs::path& folder) {
  auto way = "`mlc verify SOURCE PACKAGE option 'bundle' DIR` creates a parity bundle";
  Parity parity = ReadJson(folder / kParity, "parity bundle", way, [](const Json& json) {
    Parity read;
    read.checksum = json.at("checksum");
    read.package = json.at("package");
    read.package_hash = json.at("package_hash");
    read.reference = json.at("reference");
    read.budgets = BudgetsFromJson(JsonText(json.at("budget")), kParity);
    read.inputs = FilesFrom(json.at("inputs"));
    read.outputs = FilesFrom(json.at("outputs"));
    if (fs::path(read.package).filename() != read.package || read.package == "..")
      throw Error("bad-file", "path \"{}\" is outside the folder", read.package);
    return read;
  });
  CheckFiles(folder, parity.inputs);
  CheckFiles(folder, parity.outputs);
  return parity;
}

ParityResult WriteResult(const fs::path& folder, const fs::path& result_file, const Parity& parity,
                         ParityResult result, const std::vector<Tensor>& outputs) {
  result.bundle = parity.checksum;
  result.package_hash = parity.package_hash;
  MLC_CHECK(outputs.size() == parity.outputs.size(), "{} outputs of {}", outputs.size(),
            parity.outputs.size());
  fs::path home = result_file.parent_path();
  std::string beside =
      result_file == folder / kParityResult ? "outputs" : result_file.stem().string() + ".outputs";
  std::vector<ParityFile> files;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ParityFile& reference = parity.outputs[i];
    result.outputs.push_back(CompareWith(folder, parity, reference, outputs[i]));
    ParityFile file = reference;
    // Mirrors the layout of reference/.
    file.file = (fs::path(beside) / fs::path(reference.file).lexically_relative("reference"))
                    .generic_string();
    file.hash.clear();
    if (outputs[i]) {
      fs::create_directories((home / file.file).parent_path());
      WriteNpy(home / file.file, outputs[i]);
      file.hash = Xxh3OfFile(home / file.file);
    }
    files.push_back(std::move(file));
  }
  WriteJson(result_file, {{"ok", Judge(result.outputs) == Verdict::kPassed},
                          {"bundle", result.bundle},
                          {"package_hash", result.package_hash},
                          {"units", result.units},
                          {"machine", result.machine},
                          {"mlc", result.version},
                          {"predict_ms", result.milliseconds},
                          {"budget", ParseJson(ToJson(parity.budgets))},
                          {"files", ToJson(files)},
                          {"outputs", ParseJson(ReportJson(result.outputs))}});
  return result;
}

ParityResult ReadResult(const fs::path& file, const fs::path& bundle) {
  fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  auto way = "`mlc-run option 'bundle' DIR` writes a result into the bundle";
  std::vector<ParityFile> files;
  ParityResult result = ReadJson(file, "result of a parity bundle", way, [&](const Json& json) {
    ParityResult read;
    read.bundle = json.at("bundle");
    read.package_hash = json.at("package_hash");
    read.units = json.at("units");
    read.machine = json.at("machine");
    read.version = json.at("mlc");
    read.milliseconds = json.at("predict_ms");
    files = FilesFrom(json.at("files"));
    read.outputs = ReportFromJson(JsonText(json.at("outputs")));
    return read;
  });
  if (bundle.empty() && !fs::exists(folder / kParity)) return result;
  const fs::path home = bundle.empty() ? folder : bundle;
  Parity parity = ReadParity(home);
  if (result.bundle != parity.checksum)
    throw Error("check-failed", "the result belongs to another parity bundle")
        .At({file.string(), ""})
        .Note("compared with {}", home.string())
        .Help("run the bundle again, or pass the matching bundle with option 'bundle' DIR");
  if (files.empty() || !fs::exists(folder / *fs::path(files[0].file).begin())) return result;
  std::vector<ParityFile> written = files;
  std::erase_if(written, [](const ParityFile& output) { return output.hash.empty(); });
  CheckFiles(folder, written);
  if (files.size() != parity.outputs.size())
    throw Error("bad-file", "the result has {} outputs, the bundle has {}", files.size(),
                parity.outputs.size())
        .At({file.string(), ""});
  result.outputs.clear();
  for (size_t i = 0; i < files.size(); ++i) {
    const ParityFile& reference = parity.outputs[i];
    result.outputs.push_back(
        CompareWith(home, parity, reference,
                    files[i].hash.empty() ? Tensor() : ReadNpy(folder / files[i].file)));
  }
  result.compared_again = true;
  return result;
}

}  // namespace mlc::verify
