#include "lib/support/work_scope.h"

#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "lib/support/mapped_file.h"
#include "lib/support/temporary_folder.h"
#include "lib/support/threads.h"
#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc::test {

TEST_CASE("work scope: the number of threads holds for this thread and inside it") {
  const int before = DefaultThreads();
  {
    const WorkScope scope({.threads = 1});
    CHECK(DefaultThreads() == 1);
    std::set<std::thread::id> used;
    ParallelFor(100, 0, [&](int64_t) { used.insert(std::this_thread::get_id()); });
    CHECK(used.size() == 1);
    std::thread([&] { CHECK(DefaultThreads() == before); }).join();
  }
  CHECK(DefaultThreads() == before);
}

TEST_CASE("work scope: cancelled work ends with an error, also on other threads") {
  std::atomic<bool> cancelled = false;
  const WorkScope scope({.cancelled = &cancelled});
  std::atomic<int> done = 0;
  const auto work = [&](int64_t) {
    ++done;
    cancelled = true;
  };
  for (int threads : {1, 4}) {
    cancelled = false;
    done = 0;
    CHECK(RefusalId([&] { ParallelFor(1000, threads, work); }) == "cancelled");
    CHECK(done <= threads);
  }
  CHECK(RefusalId(ThrowIfCancelled) == "cancelled");
}

TEST_CASE("work scope: without mapped files, a file that shrinks is an error") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path / "f";
  std::ofstream(path) << std::string(100'000, 'x');
  const WorkScope scope({.map_files = false});
  const std::shared_ptr<const MappedFile> kept = MappedFile::Open(path),
                                          later = MappedFile::Open(path);
  CHECK(kept->mapped().empty());
  CHECK(kept->bytes().size() == 100'000);
  std::filesystem::resize_file(path, 10);
  CHECK(kept->bytes()[99'999] == std::byte('x'));  // a copy
  CHECK(RefusalId([&] { later->bytes(); }) == "file-io");
  std::byte last{};
  CHECK(RefusalId([&] { later->Read(99'999, {&last, 1}); }) == "file-io");
}

}  // namespace mlc::test
