#include "lib/support/scratch_folders.h"

#include <memory>
#include <new>
#include <set>

namespace mlc {

namespace fs = std::filesystem;

namespace {

// Address space that Remove releases when there is too little for reading a folder. Nothing is ever
// written to it, so it takes no memory.
constexpr size_t kReserve = size_t{1} << 20;
std::unique_ptr<char[]> Reserve() {
  return std::unique_ptr<char[]>(new (std::nothrow) char[kReserve]);
}

struct Folders {
  std::mutex mutex;
  std::set<fs::path> paths;
  std::unique_ptr<char[]> reserve = Reserve();
};
// Never destroyed: a signal may come after main.
Folders& All() {
  static auto* folders = new Folders;
  return *folders;
}

// Removes a folder if possible. Returns false if memory ran out.
bool HadMemoryToRemove(const fs::path& folder) {
  try {
    std::error_code error;
    fs::remove_all(folder, error);
    return error != std::errc::not_enough_memory;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

ScratchFolders::ScratchFolders() : lock_(All().mutex) {}

void ScratchFolders::Add(const fs::path& folder) { All().paths.insert(folder); }

void ScratchFolders::Remove(const fs::path& folder) {
  if (!HadMemoryToRemove(folder)) {
    All().reserve.reset();
    HadMemoryToRemove(folder);
    All().reserve = Reserve();
  }
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
