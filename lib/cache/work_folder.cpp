#include "lib/cache/work_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "lib/support/atomic_install.h"
#include "lib/support/error.h"

namespace fs = std::filesystem;

namespace mlc::cache {

WorkFolder::WorkFolder(const fs::path& parent) {
  static std::atomic<int> counter = 0;
  while (!lock_) {
    path_ = parent / fmt::format("{}-{}", getpid(), ++counter);
    if (mkdir(path_.c_str(), 0700) != 0) {
      if (errno == EEXIST)
        continue;  // left by a process that ended, or owned by one in another container
      throw Error("file-io", "cannot create a folder in \"{}\": {}", parent.string(),
                  strerror(errno));
    }
    // Another process may have removed the folder as a leftover before it was locked.
    lock_ = FileLock::TryFolder(path_);
  }
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void WorkFolder::RemoveStale(const fs::path& parent) {
  std::error_code error, ignored;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error))
    if (std::optional<FileLock> lock = IsNumberPair(entry->path().filename().string())
                                           ? FileLock::TryFolder(entry->path())
                                           : std::nullopt)
      fs::remove_all(entry->path(), ignored);
}

}  // namespace mlc::cache
