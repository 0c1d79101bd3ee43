#include "lib/support/child_process.h"

#include <signal.h>

#include <chrono>

#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc {
namespace {

using namespace std::chrono_literals;

ChildResult Shell(const std::string& script, ChildOptions options = {}) {
  options.arguments = {"sh", "-c", script};
  return RunChild("/bin/sh", options);
}

TEST_CASE("child process: output, exit code and environment", "[child]") {
  const ChildResult result =
      Shell("echo $MLC_TEST; exit 3", {.environment = {{"MLC_TEST", "a b"}}});
  CHECK(result.output == "a b\n");
  CHECK(result.exit_code == 3);
  CHECK(result.signal == 0);
  CHECK(result.peak_memory_bytes > 0);
}

TEST_CASE("child process: long output", "[child]") {
  CHECK(Shell("i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; "
              "i=$((i+1)); done")
            .output.size() == 3000 * 41);
}

TEST_CASE("child process: the signal that ended it", "[child]") {
  CHECK(Shell("kill -9 $$").signal == SIGKILL);
}

TEST_CASE("child process: the time limit, also of one that ignores SIGTERM or closes its output",
          "[child]") {
  for (const char* script :
       {"exec sleep 60", "trap '' TERM; while :; do sleep 0.1; done", "exec >&-; exec sleep 60"}) {
    const ChildResult result = Shell(script, {.timeout = 50ms});
    CHECK(result.timed_out);
    CHECK(result.signal != 0);
  }
}

TEST_CASE("child process: it is watched", "[child]") {
  int64_t seen = 0;
  const ChildResult result =
      Shell("exec sleep 60", {.stop = [&](int64_t resident) { return (seen = resident) > 0; }});
  CHECK(result.stopped);
  CHECK_FALSE(result.timed_out);
  CHECK(seen > 0);
}

TEST_CASE("child process: a program that does not exist", "[child]") {
  CHECK(test::RefusalId([] { RunChild("/none", {.arguments = {"none"}}); }) == "file-io");
}

}  // namespace
}  // namespace mlc
