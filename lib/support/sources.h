// lib/support/sources.h - what a run reads, so that it never writes over it.
#pragma once

#include <sys/stat.h>

#include <filesystem>

namespace mlc {

// While one exists, every file that OpenRegular opens is noted, and Staging refuses what would
// replace one. At most one at a time in a process: the tools make one for each command. Where there
// is none, nothing is noted: the host of the library decides for itself what it replaces.
//
// Files are known by device and inode: links, other spellings of a path and mounts make no
// difference.
class Sources {
 public:
  Sources();
  ~Sources();
  Sources(const Sources&) = delete;
  Sources& operator=(const Sources&) = delete;

  static void AddFile(const std::filesystem::path& path, const struct stat& info);
  // A folder that is read as one thing, as a package is: nothing may be put into it either.
  static void AddFolder(const std::filesystem::path& path);
  // Error "overwrites-input", which names both, when `target` is something that is read, lies in a
  // folder that is read as one thing, or is a folder in which something lies that is read.
  static void CheckTarget(const std::filesystem::path& target);
  // Error "file-io" when a file has been written to since it was opened: what was made of it is of
  // no use.
  static void CheckUnchanged();

  // What this thread opens while one exists is not noted: a look at what is to be replaced.
  class Unnoted {
   public:
    Unnoted();
    ~Unnoted();
    Unnoted(const Unnoted&) = delete;
    Unnoted& operator=(const Unnoted&) = delete;
  };
};

}  // namespace mlc
