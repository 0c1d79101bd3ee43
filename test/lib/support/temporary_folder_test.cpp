#include "lib/support/temporary_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "lib/support/scratch_folders.h"
#include "test/catch.h"

namespace mlc {
namespace {

namespace fs = std::filesystem;

TEST_CASE("temporary folder: removed with its object or by a signal") {
  fs::path path;
  {
    const TemporaryFolder folder;
    path = folder.path;
    std::ofstream(path / "file") << "text";
    CHECK(fs::exists(path));
  }
  CHECK_FALSE(fs::exists(path));
  const TemporaryFolder folder;
  std::ofstream(folder.path / "file") << "text";
  const pid_t child = fork();
  if (child == 0) {
    ScratchFolders::RemoveAll();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK_FALSE(fs::exists(folder.path));
}

}  // namespace
}  // namespace mlc
