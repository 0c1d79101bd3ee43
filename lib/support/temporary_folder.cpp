#include "lib/support/temporary_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lib/support/error.h"
#include "lib/support/scratch_folders.h"
#include "lib/support/work_scope.h"

namespace mlc {

namespace fs = std::filesystem;

fs::path TemporaryRoot() {
  const std::shared_ptr<const fs::path>& folder = WorkScope::Current().temporary_folder;
  return folder ? *folder : fs::temp_directory_path();
}

TemporaryFolder::TemporaryFolder() {
  std::string text = (TemporaryRoot() / "mlc-XXXXXX").string();
  ScratchFolders folders;
  if (!mkdtemp(text.data()))
    throw Error("file-io", "cannot create a folder \"{}\": {}", text, std::strerror(errno));
  path = text;
  folders.Add(path);
}

TemporaryFolder::~TemporaryFolder() { ScratchFolders().Remove(path); }

}  // namespace mlc
