// lib/cache/action_record.h - the result of an action, as caches store it: the file ac/KEY.
//
// The file is an ActionResult message of the Remote Execution API (proto/action_result.proto), so that servers of that API
// accept it. Its files are those of the result; its standard output is a JSON object with the other members.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/cache/file_digests.h"
#include "lib/support/error.h"

namespace mlc::cache {

using KeyParts = std::vector<std::pair<std::string, std::string>>;
// The value of a part; null if there is no such part.
const std::string* FindPart(const KeyParts& parts, std::string_view name);

// Everything that the result of an action depends on: named parts in the order in which they were
// added.
class CacheKey {
 public:
  void Add(std::string_view name, std::string_view value);
  // Adds the digest of a file; its path does not become part of the key.
  void AddFile(std::string_view name, const std::filesystem::path& path,
               const FileDigests::Digest& digest);
  // 64 hexadecimal digits.
  std::string Hex() const;
  const KeyParts& parts() const { return parts_; }
  // The files that were added. They must still be unchanged when the action is complete.
  const std::map<std::filesystem::path, FileIdentity>& files() const { return files_; }
  // Error "file-io" if one of them was modified.
  void RequireUnchanged() const;

 private:
  KeyParts parts_;
  std::map<std::filesystem::path, FileIdentity> files_;
};

// Returns whether a text is a SHA-256 in lower-case hexadecimal digits.
bool IsSha256(std::string_view text);

struct ActionRecord {
  struct File {
    std::string path, sha256;  // the path is NAME, or below NAME/
    uint64_t size = 0;
  };
  std::string name;         // file or folder that the action made
  KeyParts parts;           // of the key
  std::vector<File> files;  // sorted by path
  int64_t made = 0;         // seconds since 1970
  double seconds = 0;       // time that the action took

  uint64_t bytes() const;
  // Returns the part "model", or the name.
  std::string model() const;
};

// The maximum size of an encoded record in bytes.
inline constexpr size_t kMostOfRecord = 64u << 20;
std::string Encode(const ActionRecord& record);
// Returns nothing unless `bytes` is a complete record of the action `key`, and all paths stay
// inside the folder in which the files are created.
std::optional<ActionRecord> Decode(std::string_view bytes, std::string_view key);

struct NoRegularFile : Error {
  explicit NoRegularFile(std::string text) : Error("file-io", std::move(text)) {}
};
// Returns the regular files below a folder, sorted by relative path. Throws NoRegularFile for
// symlinks, sockets and devices.
std::map<std::string, std::filesystem::path> FilesBelow(const std::filesystem::path& folder);
// Hashes those files.
std::vector<ActionRecord::File> RecordFiles(const std::filesystem::path& folder,
                                            FileDigests& digests);
// Reads the files and compares their hashes. FOLDER/NAME must contain nothing else.
bool SameFiles(const std::filesystem::path& folder, std::string_view name,
               const std::vector<ActionRecord::File>& files);

}  // namespace mlc::cache
