#include "lib/support/temporary_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lib/support/error.h"
#include "lib/support/scratch_folders.h"

namespace mlc {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string text = (fs::temp_directory_path() / "mlc-XXXXXX").string();
  ScratchFolders folders;
  if (!mkdtemp(text.data()))
    throw Error("file-io", "cannot create a folder \"{}\": {}", text, std::strerror(errno));
  path = text;
  folders.Add(path);
}

TemporaryFolder::~TemporaryFolder() { ScratchFolders().Remove(path); }

}  // namespace mlc
