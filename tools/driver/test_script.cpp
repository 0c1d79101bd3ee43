#include "tools/driver/test_script.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "lib/support/error.h"

extern char** environ;  // NOLINT: POSIX declares it in no header

namespace fs = std::filesystem;

namespace mlc::driver {

TestScript::TestScript(const fs::path& path, std::chrono::milliseconds timeout,
                       std::function<bool()> stop)
    : path_(fs::absolute(path)), timeout_(timeout), stop_(std::move(stop)) {
  std::error_code ignored;
  if (!fs::exists(path_, ignored))
    throw Error("file-io", "the test script \"{}\" does not exist", path.string())
        .Help("check the path");
  if (!fs::is_regular_file(path_, ignored) || access(path_.c_str(), X_OK) != 0)
    throw Error("file-io", "the test script \"{}\" is not an executable file", path.string())
        .Help("make it executable: chmod +x {}", path.string());
}

TestScript::Outcome TestScript::Run(const fs::path& file) const {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::string program = path_.string(), argument = fs::absolute(file).string();
  char* arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0)
    throw Error("file-io", "the test script \"{}\" cannot be started: {}", path_.string(),
                std::strerror(failed))
        .Help("a script begins with a line such as #!/bin/sh");

  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Outcome outcome;
  int status = 0;
  std::chrono::microseconds pause(200);
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) break;
    if (Clock::now() - begin >= timeout_ || stop_()) {
      kill(-child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
      outcome.text = fmt::format("it took more than {} ms", timeout_.count());
      return outcome;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 5 / 4, std::chrono::microseconds(5000));
  }
  kill(-child, SIGKILL);  // what it left in the background
  outcome.passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  outcome.text = WIFSIGNALED(status) ? fmt::format("it was killed by signal {}", WTERMSIG(status))
                                     : fmt::format("it exited with {}", WEXITSTATUS(status));
  return outcome;
}

}  // namespace mlc::driver
