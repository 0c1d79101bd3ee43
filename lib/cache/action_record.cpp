#include "lib/cache/action_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/input_registry.h"
#include "lib/support/json_text.h"
#include "proto/action_result.pb.h"

namespace mlc::cache {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

constexpr int kRecordVersion = 2;

// Hashes the length too, so that different lists of strings have different hashes.
void Update(Sha256& hash, std::string_view text) {
  hash.Update(fmt::format("{}:", text.size()));
  hash.Update(text);
}

// Detects records that were mixed up or damaged.
std::string Checksum(const ActionRecord& record) {
  Sha256 hash;
  Update(hash, record.name);
  for (const ActionRecord::File& file : record.files) {
    Update(hash, file.path);
    Update(hash, file.sha256);
    Update(hash, std::to_string(file.size));
  }
  return hash.Hex();
}

bool IsFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

// Returns whether a path is `name` or below it, without "..", empty parts and the like.
bool IsBelow(const std::string& path, const std::string& name) {
  const fs::path parsed = path;
  return !path.empty() && path.find('\0') == path.npos && path.back() != '/' &&
         parsed.lexically_normal().generic_string() == path && *parsed.begin() == name;
}

}  // namespace

const std::string* FindPart(const KeyParts& parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name, &KeyParts::value_type::first);
  return found == parts.end() ? nullptr : &found->second;
}

void CacheKey::Add(std::string_view name, std::string_view value) {
  parts_.emplace_back(name, value);
}

void CacheKey::AddFile(std::string_view name, const fs::path& path,
                       const FileDigests::Digest& digest) {
  Add(fmt::format("file {}", name), digest.sha256);
  files_[path] = digest.identity;
}

std::string CacheKey::Hex() const {
  Sha256 hash;
  for (const auto& [name, value] : parts_) {
    Update(hash, name);
    Update(hash, value);
  }
  return hash.Hex();
}

void CacheKey::RequireUnchanged() const {
  for (const auto& [path, identity] : files_)
    if (IdentityOf(path) != identity)
      throw Error("file-io", "the file was modified while it was being compiled")
          .At({path.string(), ""})
          .Help("run again when no process writes to the file");
}

bool IsSha256(std::string_view text) {
  constexpr size_t kDigits = 64;
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

uint64_t ActionRecord::bytes() const {
  uint64_t sum = 0;
  for (const File& file : files) sum += file.size;
  return sum;
}

std::string ActionRecord::model() const {
  const std::string* model = FindPart(parts, "model");
  return model && !model->empty() ? *model : name;
}

std::string Encode(const ActionRecord& record) {
  schema::ActionResult result;
  for (const ActionRecord::File& file : record.files) {
    schema::OutputFile& output = *result.add_output_files();
    output.set_path(file.path);
    output.mutable_digest()->set_hash(file.sha256);
    output.mutable_digest()->set_size_bytes(static_cast<int64_t>(file.size));
  }
  result.set_stdout_raw(JsonText(Json{{"mlc", kRecordVersion},
                                      {"name", record.name},
                                      {"made", record.made},
                                      {"seconds", record.seconds},
                                      {"parts", record.parts},
                                      {"files", Checksum(record)}},
                                 -1, BadUtf8::kReplace));
  return result.SerializeAsString();
}

std::optional<ActionRecord> Decode(std::string_view bytes, std::string_view key) {
  schema::ActionResult result;
  if (bytes.size() > kMostOfRecord ||
      !result.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      result.exit_code() != 0)
    return std::nullopt;
  ActionRecord record;
  std::string checksum;
  try {
    const Json json = ParseJson(result.stdout_raw());
    if (json.at("mlc") != kRecordVersion) return std::nullopt;
    record.name = json.at("name");
    record.made = json.at("made");
    record.seconds = json.at("seconds");
    CacheKey parts;
    for (const Json& part : json.at("parts"))
      parts.Add(part.at(0).get<std::string>(), part.at(1).get<std::string>());
    if (parts.Hex() != key) return std::nullopt;
    record.parts = parts.parts();
    checksum = json.at("files");
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (!IsFileName(record.name)) return std::nullopt;
  for (const schema::OutputFile& file : result.output_files()) {
    if (!IsBelow(file.path(), record.name) || !IsSha256(file.digest().hash()) ||
        file.digest().size_bytes() < 0)
      return std::nullopt;
    record.files.push_back(
        {file.path(), file.digest().hash(), static_cast<uint64_t>(file.digest().size_bytes())});
  }
  const bool sorted =
      std::ranges::adjacent_find(record.files, [](const auto& one, const auto& next) {
        return one.path >= next.path;
      }) == record.files.end();
  if (!sorted || checksum != Checksum(record)) return std::nullopt;
  return record;
}

std::map<std::string, fs::path> FilesBelow(const fs::path& folder) {
  std::map<std::string, fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const fs::file_status status = entry.symlink_status();
    if (fs::is_directory(status)) continue;
    if (!fs::is_regular_file(status))
      throw NoRegularFile(
          fmt::format("\"{}\" is not a regular file and cannot be cached", entry.path().string()));
    files[entry.path().lexically_relative(folder).generic_string()] = entry.path();
  }
  return files;
}

std::vector<ActionRecord::File> RecordFiles(const fs::path& folder, FileDigests& digests) {
  InputRegistry::Unnoted unnoted;
  std::vector<ActionRecord::File> files;
  for (const auto& [path, file] : FilesBelow(folder)) {
    const FileDigests::Digest digest = digests.Of(file);
    files.push_back({path, digest.sha256, digest.identity.size});
  }
  return files;
}

bool SameFiles(const fs::path& folder, std::string_view name,
               const std::vector<ActionRecord::File>& files) {
  InputRegistry::Unnoted unnoted;
  if (!fs::is_directory(folder / name))
    return files.size() == 1 && files[0].path == name &&
           Sha256OfFile(folder / name) == files[0].sha256;
  const std::map<std::string, fs::path> found = FilesBelow(folder / name);
  return found.size() == files.size() &&
         std::ranges::all_of(files, [&](const ActionRecord::File& file) {
           const fs::path below = fs::path(file.path).lexically_relative(name);
           auto it = found.find(below.generic_string());
           return it != found.end() && Sha256OfFile(it->second) == file.sha256;
         });
}

}  // namespace mlc::cache
