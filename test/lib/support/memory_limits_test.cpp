#include "lib/support/memory_limits.h"

#include <sys/resource.h>

#include <new>

#include "lib/support/threads.h"
#include "test/catch.h"

namespace mlc {
namespace {

TEST_CASE("memory limits: errors name them, threads and room respect them") {
  struct rlimit before, low;
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  low = before;
  low.rlim_cur = size_t{1} << 46;  // more than a sanitizer needs
  if (before.rlim_cur < low.rlim_cur || setrlimit(RLIMIT_AS, &low) != 0) return;
  CHECK(AddressLimit() == low.rlim_cur);
  CHECK(IsMemoryLimited());
  CHECK(ThreadLimit() <= low.rlim_cur >> 27);
  CHECK(DefaultThreads() >= 1);
  CHECK_NOTHROW(RequireRoom(4096));
  CHECK_NOTHROW(RequireRoomForThreads(1));
  CHECK_THROWS_AS(RequireRoom(low.rlim_cur), std::bad_alloc);
  CHECK_THAT(OutOfMemory("no room").what(),
             ContainsSubstring("error[resource-limit]: no room") &&
                 ContainsSubstring("limited to 70368744 MB: raise the limit (ulimit -v)"));
  setrlimit(RLIMIT_AS, &before);
  CHECK(AddressLimit() == before.rlim_cur);
}

}  // namespace
}  // namespace mlc
