#include "lib/support/temporary_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "lib/support/error.h"

namespace mlc {

namespace fs = std::filesystem;

namespace {

struct Folders {
  std::mutex mutex;
  std::set<fs::path> paths;
};
// Never destroyed: a signal may arrive after main.
Folders& AllFolders() {
  static auto* folders = new Folders;
  return *folders;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string text = (fs::temp_directory_path() / "mlc-XXXXXX").string();
  std::lock_guard lock(AllFolders().mutex);
  if (!mkdtemp(text.data()))
    throw Error("file-io",
                fmt::format("cannot create a folder \"{}\": {}", text, std::strerror(errno)));
  path = text;
  AllFolders().paths.insert(path);
}

TemporaryFolder::~TemporaryFolder() {
  std::lock_guard lock(AllFolders().mutex);
  std::error_code ignored;
  fs::remove_all(path, ignored);
  AllFolders().paths.erase(path);
}

void TemporaryFolder::RemoveAll() {
  AllFolders().mutex.lock();  // never unlocked
  // Other threads may still be writing into the folders.
  constexpr int kTries = 100;
  std::error_code ignored;
  for (const fs::path& folder : AllFolders().paths)
    for (int i = 0; i < kTries && fs::exists(folder, ignored); ++i) fs::remove_all(folder, ignored);
}

}  // namespace mlc
