// lib/support/input_registry.h - records which files a run reads, to protect them from being
// overwritten.
#pragma once

#include <sys/stat.h>

#include <filesystem>

namespace mlc {

// While an instance exists, every file opened by OpenRegular is recorded, and Staging refuses to
// replace it. At most one instance per process: the tools create one per command. Without an
// instance nothing is recorded; the host of the library decides what it replaces.
//
// Files are identified by device and inode, regardless of links, path spelling and mounts, as long
// as they are where they were read.
class InputRegistry {
 public:
  InputRegistry();
  ~InputRegistry();
  InputRegistry(const InputRegistry&) = delete;
  InputRegistry& operator=(const InputRegistry&) = delete;

  static void AddFile(const std::filesystem::path& path, const struct stat& info);
  // Records a folder that is read as a unit, such as a package: no file may be written into it
  // either.
  static void AddFolder(const std::filesystem::path& path);
  // Error "overwrites-input", which names both paths, if `target` was read, lies in a folder that
  // is read as a unit, or is a folder that contains a file that was read.
  static void CheckTarget(const std::filesystem::path& target);
  // Error "file-io" if a recorded file has been modified since it was opened, which makes the
  // result unusable.
  static void CheckUnchanged();

  // While an instance exists, files that this thread opens are not recorded. Used to inspect files
  // that are about to be replaced.
  class Unnoted {
   public:
    Unnoted();
    ~Unnoted();
    Unnoted(const Unnoted&) = delete;
    Unnoted& operator=(const Unnoted&) = delete;
  };
};

}  // namespace mlc
