#include "tools/driver/build_folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/support/atomic_install.h"
#include "lib/support/build_id.h"
#include "lib/support/hash.h"
#include "lib/support/input_registry.h"
#include "lib/support/json_text.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFolder = ".mlc-build";
constexpr const char* kInstalling = ".installing";
constexpr int kStateVersion = 1;
constexpr size_t kMostOfState = 64u << 20;
constexpr auto kDigestsKept = std::chrono::hours(24 * 30);

std::string Contents(Json json) {
  json["version"] = kStateVersion;
  return JsonText(json, 1, BadUtf8::kReplace) + "\n";
}
// Returns a null value if the file is absent, damaged or of another version.
Json Read(const fs::path& path) {
  const std::optional<std::string> text = cache::TextOf(path, kMostOfState);
  Json json = text ? ParseJsonIfValid(*text) : Json();
  return json.is_object() && json.contains("version") && json["version"] == kStateVersion ? json
                                                                                          : Json();
}

// The names below a folder; empty for a file.
std::string NamesBelow(const fs::path& path) {
  if (!fs::is_directory(path)) return "";
  std::set<std::string> names;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(path, fs::directory_options::follow_directory_symlink |
                                                  fs::directory_options::skip_permission_denied))
    names.insert(entry.path().lexically_relative(path).generic_string());
  Sha256 hash;
  for (const std::string& name : names) hash.Update(name + "\n");
  return hash.Hex();
}

fs::path SourcePath(const fs::path& folder, const fs::path& source, const fs::path& data_root) {
  Sha256 hash;
  hash.Update(fs::absolute(source).lexically_normal().string() + "\n");
  if (!data_root.empty()) hash.Update(fs::absolute(data_root).lexically_normal().string() + "\n");
  return folder / "sources" / (hash.Hex() + ".json");
}

}  // namespace

BuildFolder::BuildFolder(fs::path out, When when) : out_(fs::absolute(out).lexically_normal()) {
  std::error_code error;
  if (when == kAlways || (when == kIfPresent && fs::is_directory(out_ / kFolder, error))) {
    Open(out_ / kFolder);
    return;
  }
  temporary_ = std::make_unique<TemporaryFolder>();
  Open(temporary_->path);
}

void BuildFolder::Open(const fs::path& folder) {
  folder_ = folder;
  // Another process may remove the folder between the two steps, in its destructor.
  constexpr int kAttempts = 3;
  for (int attempt = 1; !used_; ++attempt) try {
      for (const char* kind : {"state", "sources", "index", "lock", "work"})
        fs::create_directories(folder_ / kind);
      used_ = FileLock::Wait(folder_ / "lock" / ".users", FileLock::kShared);
    } catch (const fs::filesystem_error& error) {
      throw Error("file-io", "cannot create the folder \"{}\": {}", folder_.string(),
                  error.code().message())
          .Help("choose a writable output folder with -o");
    } catch (const Error&) {
      if (attempt == kAttempts) throw;
    }
  cache::WorkFolder::RemoveStale(folder_ / "work");
  // A variant that is up to date is not staged again, which would remove them.
  if (!temporary_) Staging::RemoveAbandoned(out_);
  work_ = std::make_unique<cache::WorkFolder>(folder_ / "work");
  digests_ = std::make_unique<cache::FileDigests>(folder_ / "index", work_->path(),
                                                  std::chrono::system_clock::now);
  digests_->ForgetBefore(std::chrono::system_clock::now() - kDigestsKept);
}

void BuildFolder::Create() {
  if (!temporary_) return;
  std::error_code error;
  created_out_ = !fs::exists(out_, error);
  created_ = true;
  used_.reset();
  Open(out_ / kFolder);
  for (const char* kind : {"sources", "index"})
    fs::copy(temporary_->path / kind, folder_ / kind,
             fs::copy_options::recursive | fs::copy_options::skip_existing, error);
  temporary_.reset();
}

BuildFolder::~BuildFolder() {
  if (created_) try {
      std::error_code error;
      for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "state", error))
        if (entry.path().extension() == ".json") return;
      used_.reset();
      const auto alone = FileLock::Try(folder_ / "lock" / ".users", FileLock::kExclusive);
      if (!alone) return;
      digests_.reset();
      work_.reset();
      fs::remove_all(folder_, error);
      if (created_out_) fs::remove(out_, error);  // if it is empty
    } catch (const std::exception&) {             // an unused folder stays
    }
}

FileLock BuildFolder::Lock(const std::string& name) const {
  return FileLock::Wait(folder_ / "lock" / name, FileLock::kExclusive);
}

FileLock BuildFolder::Working(bool alone) const {
  // An action that waits to be alone holds the turn, so that later ones cannot overtake it for ever.
  const FileLock turn = FileLock::Wait(folder_ / "lock" / ".turn", FileLock::kExclusive);
  return FileLock::Wait(folder_ / "lock" / ".work",
                        alone ? FileLock::kExclusive : FileLock::kShared);
}

std::optional<BuildState> BuildFolder::ReadState(const std::string& name) const {
  const Json json = Read(folder_ / "state" / (name + ".json"));
  if (json.is_null()) return std::nullopt;
  try {
    BuildState state;
    for (const auto& [action, of] : json.at("actions").items()) {
      BuildState::Action& into = state.actions[action];
      into.parts = of.at("parts").get<decltype(into.parts)>();
      for (const Json& file : of.at("files"))
        into.files.push_back({file.at("path"), file.at("sha256"), file.at("size")});
      into.facts = BuildRecordFromJson(of.at("facts"));
    }
    return state;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void BuildFolder::WriteState(const std::string& name, const BuildState& state) const {
  Json json{{"actions", Json::object()}};
  for (const auto& [action, of] : state.actions) {
    Json files = Json::array();
    for (const cache::ActionRecord::File& file : of.files)
      files.push_back({{"path", file.path}, {"sha256", file.sha256}, {"size", file.size}});
    json["actions"][action] = {
        {"parts", of.parts}, {"files", std::move(files)}, {"facts", BuildRecordJson(of.facts)}};
  }
  cache::PutFile(work_->path(), folder_ / "state" / (name + ".json"), Contents(std::move(json)),
                 true);
  std::error_code ignored;
  fs::remove(folder_ / "state" / (name + kInstalling), ignored);
}

void BuildFolder::Announce(const std::string& name, const std::set<std::string>& outputs) const {
  cache::PutFile(work_->path(), folder_ / "state" / (name + kInstalling),
                 Contents({{"outputs", outputs}}), true);
}

std::set<std::string> BuildFolder::Announced(const std::string& name) const {
  const Json json = Read(folder_ / "state" / (name + kInstalling));
  try {
    if (json.is_null()) return {};
    return json.at("outputs").get<std::set<std::string>>();
  } catch (const Json::exception&) {
    return {};
  }
}

int64_t BuildFolder::PeakMemory(const std::string& name) const {
  const Json json = Read(folder_ / "state" / (name + ".memory"));
  return json.is_object() ? json.value("peak_memory_bytes", int64_t{0}) : 0;
}

void BuildFolder::WritePeakMemory(const std::string& name, int64_t bytes) const {
  cache::PutFile(work_->path(), folder_ / "state" / (name + ".memory"),
                 Contents({{"peak_memory_bytes", bytes}}), false);
}

std::optional<std::vector<SourceFile>> BuildFolder::Known(const fs::path& source,
                                                          const fs::path& data_root) {
  const Json json = Read(SourcePath(folder_, source, data_root));
  if (json.is_null()) return std::nullopt;
  try {
    // A new file in the folder of a model may be one that its import reads.
    if (json.at("build") != BuildName() || json.at("names") != NamesBelow(source))
      return std::nullopt;
    std::vector<SourceFile> files;
    for (const Json& file : json.at("files")) {
      SourceFile& one = files.emplace_back();
      one.name = file.at("name");
      one.path = file.at("path").get<std::string>();
      one.bytes = file.at("bytes");
      one.xxh3_128 = file.at("xxh3_128");
      one.sha256 = file.at("sha256");
      if (!cache::IdentityOf(one.path) || digests_->Of(one.path).sha256 != one.sha256)
        return std::nullopt;
    }
    return files;
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const fs::filesystem_error&) {
    return std::nullopt;
  }
}

void BuildFolder::Remember(const fs::path& source, const fs::path& data_root,
                           const std::vector<SourceFile>& files) {
  Json json{{"build", BuildName()}, {"names", NamesBelow(source)}, {"files", Json::array()}};
  for (const SourceFile& file : files)
    json["files"].push_back({{"name", file.name},
                             {"path", fs::absolute(file.path).string()},
                             {"bytes", file.bytes},
                             {"xxh3_128", file.xxh3_128},
                             {"sha256", file.sha256}});
  cache::PutFile(work_->path(), SourcePath(folder_, source, data_root), Contents(std::move(json)),
                 false);
}

std::string BuildFolder::Difference(const std::vector<cache::ActionRecord::File>& files) {
  InputRegistry::Unnoted unnoted;  // outputs may be replaced
  std::set<std::string> names;
  std::set<fs::path> tops;
  for (const cache::ActionRecord::File& file : files) {
    const fs::path path = out_ / file.path;
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(path, error))) return "missing: " + file.path;
    const cache::FileDigests::Digest found = digests_->Of(path);
    if (found.identity.size != file.size || found.sha256 != file.sha256)
      return "modified: " + file.path;
    names.insert(file.path);
    tops.insert(*fs::path(file.path).begin());
  }
  for (const fs::path& top : tops) {
    std::error_code error;
    if (!fs::is_directory(fs::symlink_status(out_ / top, error))) continue;
    for (fs::recursive_directory_iterator entry(out_ / top, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().lexically_relative(out_).generic_string();
      if (!fs::is_directory(entry->symlink_status()) && !names.contains(name))
        return "added: " + name;
    }
  }
  return "";
}

}  // namespace mlc::driver
