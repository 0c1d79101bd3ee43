// lib/support/atomic_install.h - atomic installation of a file or folder: readers see either the
// complete old version or the complete new one.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "lib/support/file_lock.h"

namespace mlc {

//   Staging staging("out/model.mlpackage", Staging::kFolder, force);
//   ... make a folder at staging.path() ...
//   staging.Commit();
//
// path() is in a hidden folder beside the target, ".NAME.mlc-PID-N", which stays locked while this
// process lives:
//   mlc-staging   the marker; folders without it are not ours and are left alone
//   new/NAME      path()
//   old/NAME      the previous target, while Commit replaces it in two steps
// Creating a Staging removes such folders of the same target whose process has died. If a process
// is killed at any time, the target is either unchanged or complete. Only between the two steps it
// is in old/, and the next Staging restores it.
class Staging {
 public:
  enum Kind { kFile, kFolder };
  // A target that is a symbolic link, dangling or not, is replaced by the path that it points to.
  // Error "file-io" if the target's folder does not exist or is not writable, "overwrites-input"
  // from InputRegistry::CheckTarget, "file-exists" if the target is a device, a pipe or a socket,
  // or a folder where a file is to be written. `force` allows Commit to replace a folder in two
  // steps on file systems without atomic exchange.
  Staging(std::filesystem::path target, Kind kind, bool force = false);
  // Removes what killed processes left beside any targets in a folder, like the constructor.
  static void RemoveAbandoned(const std::filesystem::path& folder);
  // Removes the output if it was not committed, otherwise the old version that Commit replaced.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& target() const { return target_; }
  // Replaces the target by the contents of path(). A folder is first synchronised to disk; a file,
  // which is easy to create again, is not. May be called once. Error "file-exists" if the target
  // cannot be exchanged atomically and `force` is not set; "file-io" if a source was modified in
  // the meantime (InputRegistry::CheckUnchanged) or the target cannot be renamed. On error the
  // target is unchanged.
  void Commit();

 private:
  void Install();
  std::filesystem::path target_, folder_, path_;
  Kind kind_;
  bool force_;
  std::optional<FileLock> lock_;  // lock of the temporary folder
};

// Returns whether a string is "NUMBER-NUMBER", the suffix of temporary names.
bool IsNumberPair(std::string_view name);

// Synchronises the contents of a file, or the entries of a folder, to disk. Error "file-io".
void SyncToDisk(const std::filesystem::path& path);

// Maximum bytes per read or write: Darwin rejects sizes above INT_MAX.
inline constexpr size_t kMostAtOnce = size_t{1} << 30;

// A file that is written in place; output that must appear only when complete uses a Staging. Error
// "file-io".
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);  // created, or truncated
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int descriptor() const { return descriptor_; }
  void Write(std::span<const std::byte> bytes);
  void Write(std::string_view text) { Write(std::as_bytes(std::span(text))); }
  // Some file systems report a full disk only on close. May be called once.
  void Close();

 private:
  [[noreturn]] void Fail(const char* what);
  std::filesystem::path path_;
  int descriptor_;
};

// Writes a complete file through a Staging.
void WriteFile(const std::filesystem::path& path, std::string_view bytes);

}  // namespace mlc
