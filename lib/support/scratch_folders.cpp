#include "lib/support/scratch_folders.h"

#include <set>

namespace mlc {

namespace fs = std::filesystem;

namespace {

struct Folders {
  std::mutex mutex;
  std::set<fs::path> paths;
};
// Never destroyed: a signal may come after main.
Folders& All() {
  static auto* folders = new Folders;
  return *folders;
}

}  // namespace

ScratchFolders::ScratchFolders() : lock_(All().mutex) {}

void ScratchFolders::Add(const fs::path& folder) { All().paths.insert(folder); }

void ScratchFolders::Remove(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  All().paths.erase(folder);
}

void ScratchFolders::RemoveAll() {
  All().mutex.lock();  // for good
  // Other threads may still be writing there.
  constexpr int kTries = 100;
  std::error_code ignored;
  for (const fs::path& folder : All().paths)
    for (int i = 0; i < kTries && fs::exists(folder, ignored); ++i) fs::remove_all(folder, ignored);
}

}  // namespace mlc
