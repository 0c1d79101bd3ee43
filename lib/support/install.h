// lib/support/install.h - atomic installation of a file or a folder: readers see the old one or the
// new one, whole.
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
// path() lies in a hidden folder beside the target, ".NAME.mlc-PID-N", locked as long as this
// process lives:
//   mlc-staging   the marker: without it a folder is somebody else's, and stays
//   new/NAME      path()
//   old/NAME      what was there, while Commit replaces it in two steps
// Making a Staging removes such folders of the same target whose process is dead. A process that is
// killed at any moment leaves the target as it was, or new, but for the two steps: between them it
// is in old/, and the next Staging puts it back.
class Staging {
 public:
  enum Kind { kFile, kFolder };
  // A target that is a symbolic link stands for what it points to, also where that is not there
  // yet. Error "file-io" when the target's folder does not exist or cannot be written,
  // "overwrites-input" as Sources::CheckTarget says, "file-exists" where there is a device, a pipe
  // or a socket, or a folder in the place of a file. `force` allows Commit to replace a folder in
  // two steps where the file system cannot exchange.
  Staging(std::filesystem::path target, Kind kind, bool force = false);
  // Removes what was not committed, or what the committed one replaced.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& target() const { return target_; }
  // Puts what is at path() in the target's place; a folder is written through to the disk first,
  // files, which are easily made again, are not. Once. Error "file-exists" when there is a target
  // that cannot be exchanged atomically and `force` was not given, "file-io" when a source was
  // written to meanwhile (Sources::CheckUnchanged), or the target cannot be renamed; then the target
  // is untouched.
  void Commit();

 private:
  void Install();
  std::filesystem::path target_, folder_, path_;
  Kind kind_;
  bool force_;
  std::optional<FileLock> lock_;  // of the folder
};

// "NUMBER-NUMBER", as names of what a process makes for a while end.
bool IsNumberPair(std::string_view name);

// Brings what was written to a file, or the names in a folder, to the disk. Error "file-io".
void SyncToDisk(const std::filesystem::path& path);

// Bytes of one read or write: Darwin refuses those above INT_MAX.
inline constexpr size_t kMostAtOnce = size_t{1} << 30;

// A file being written, at the very place: what is to be seen only when it is whole lies in a
// Staging. Error "file-io".
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);  // made, or emptied
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int descriptor() const { return descriptor_; }
  void Write(std::span<const std::byte> bytes);
  void Write(std::string_view text) { Write(std::as_bytes(std::span(text))); }
  // Some file systems say only here that there is no room. Once.
  void Close();

 private:
  [[noreturn]] void Fail(const char* what);
  std::filesystem::path path_;
  int descriptor_;
};

// Writes a whole file by way of a Staging.
void WriteFile(const std::filesystem::path& path, std::string_view bytes);

}  // namespace mlc
