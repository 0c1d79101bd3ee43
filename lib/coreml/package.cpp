#include "lib/coreml/package.h"

#include <algorithm>

#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/mapped_file.h"

namespace mlc {

namespace fs = std::filesystem;

std::string PackageHash(const fs::path& package) {
  std::map<std::string, fs::path> files;
  try {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(package))
      if (entry.is_regular_file())
        files[fs::relative(entry.path(), package).generic_string()] = entry.path();
  } catch (const fs::filesystem_error& error) {
    throw Error("file-io", error.what());
  }
  Xxh3 hash;
  constexpr size_t kWindow = 1 << 20;
  for (const auto& [name, path] : files) {
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
