#include "lib/coreml/package.h"

#include <algorithm>

#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/mapped_file.h"

namespace mlc {

namespace fs = std::filesystem;

std::map<std::string, fs::path> PackageFiles(const fs::path& package) {
  constexpr int kMostEntries = 100000, kDeepest = 32;
  std::map<std::string, fs::path> files;
  try {
    auto walk = fs::directory_options::follow_directory_symlink;
    int entries = 0;
    for (auto it = fs::recursive_directory_iterator(package, walk);
         it != fs::recursive_directory_iterator(); ++it) {
      if (++entries > kMostEntries || it.depth() > kDeepest)
        throw Error("resource-limit", fmt::format("\"{}\" has more than {} entries or {} levels",
                                                  package.string(), kMostEntries, kDeepest))
            .Help("look for links to a folder around them");
      if (it->is_regular_file())
        files[it->path().lexically_relative(package).generic_string()] = it->path();
    }
  } catch (const fs::filesystem_error& error) {
    throw Error("file-io", error.what());
  }
  return files;
}

std::string PackageHash(const fs::path& package) {
  Xxh3 hash;
  constexpr size_t kWindow = 1 << 20;
  for (const auto& [name, path] : PackageFiles(package)) {
    hash.Update(name);
    std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
    for (size_t offset = 0; offset < file->bytes().size(); offset += kWindow) {
      size_t size = std::min(kWindow, file->bytes().size() - offset);
      hash.Update(file->bytes().subspan(offset, size));
      file->Release(offset, size);
    }
  }
  return hash.Hex();
}

std::optional<int64_t> FixedSize(const Dim& dim, const Symbols& symbols) {
  if (dim.is_constant()) return dim.constant();
  std::map<std::string, int64_t> fixed;
  for (const auto& [name, range] : symbols)
    if (range.low == range.high) fixed[name] = range.low;
  return dim.Evaluate(fixed);
}

}  // namespace mlc
