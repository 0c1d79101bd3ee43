#include "lib/support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __APPLE__
#include <libproc.h>
#include <mach-o/dyld.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include "lib/support/error.h"

extern char** environ;  // NOLINT: POSIX declares it in no header

namespace fs = std::filesystem;

namespace mlc {
namespace {

using Clock = std::chrono::steady_clock;

class Pipe {
 public:
  Pipe() {
    if (pipe(ends_.data()) != 0)
      throw Error("file-io", "cannot create a pipe: {}", strerror(errno));
    for (int end : ends_) fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  ~Pipe() {
    Close(0);
    Close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int end(size_t i) const { return ends_[i]; }
  void Close(size_t i) {
    if (ends_[i] >= 0) close(ends_[i]);
    ends_[i] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

int64_t ResidentBytesOf(pid_t process) {
#ifdef __APPLE__
  proc_taskinfo info;
  const int size = proc_pidinfo(process, PROC_PIDTASKINFO, 0, &info, sizeof info);
  return size == sizeof info ? static_cast<int64_t>(info.pti_resident_size) : 0;
#else
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/" + std::to_string(process) + "/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
#endif
}

pid_t Spawn(const fs::path& program, const ChildOptions& options, int input, int output) {
  std::vector<std::string> arguments = options.arguments, variables;
  for (const auto& [name, value] : options.environment) variables.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : options.environment)
      replaced = replaced || text.starts_with(name + "=");
    if (!replaced) envp.push_back(*entry);
  }
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    throw Error("file-io", "cannot start \"{}\": {}", program.string(), strerror(failed));
  return child;
}

}  // namespace

fs::path ThisExecutable() {
#ifdef __APPLE__
  std::array<char, PATH_MAX> path;
  uint32_t size = path.size();
  if (_NSGetExecutablePath(path.data(), &size) != 0)
    throw Error("file-io", "the path of this program is too long");
  return path.data();
#else
  return "/proc/self/exe";
#endif
}

ChildResult RunChild(const fs::path& program, const ChildOptions& options) {
  constexpr auto kGrace = std::chrono::seconds(2);
  constexpr auto kTick =
      std::chrono::milliseconds(100);  // at most, between two looks at time and memory
  static std::mutex spawning;          // no other child may inherit these pipes
  std::unique_lock lock(spawning);
  Pipe input, output;
  const pid_t child = Spawn(program, options, input.end(0), output.end(1));
  lock.unlock();
  input.Close(0);
  output.Close(1);
  ChildResult result;
  const Clock::time_point begin = Clock::now();
  Clock::time_point kill_at = Clock::time_point::max(), next_look = begin;
  auto end = [&](bool& why) {
    why = true;
    kill(child, SIGTERM);
    kill_at = Clock::now() + kGrace;
  };
  // Until the next look: the first ones follow fast, and none is later than the time limit.
  std::chrono::milliseconds pause(1);
  auto tick = [&] {
    const auto left = options.timeout - (Clock::now() - begin);
    if (options.timeout.count() <= 0 || left.count() <= 0) return pause;
    return std::min(pause, std::chrono::ceil<std::chrono::milliseconds>(left));
  };
  auto look = [&] {
    const Clock::time_point now = Clock::now();
    if (now < next_look) return;
    pause = std::min(pause * 2, kTick);
    next_look = now + tick();
    const bool ending = kill_at != Clock::time_point::max();
    if (!ending && options.timeout.count() > 0 && now - begin >= options.timeout)
      end(result.timed_out);
    else if (!ending && options.stop && options.stop(ResidentBytesOf(child)))
      end(result.stopped);
    else if (now >= kill_at)
      kill(child, SIGKILL);
  };
  for (bool open = true; open;) {
    pollfd wait{output.end(0), POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(tick().count())) > 0) {
      std::array<char, 65536> bytes;
      const ssize_t size = read(output.end(0), bytes.data(), bytes.size());
      if (size > 0)
        result.output.append(bytes.data(), static_cast<size_t>(size));
      else
        open = size < 0 && errno == EINTR;
    }
    look();
  }
  // A child may close its output and go on.
  int status = 0;
  rusage usage{};
  std::chrono::milliseconds again(1);
  for (pid_t ended = 0; ended != child; again = std::min(again * 2, kTick)) {
    ended = wait4(child, &status, WNOHANG, &usage);
    if (ended < 0 && errno != EINTR) break;
    if (ended == child) break;
    look();
    std::this_thread::sleep_for(again);
  }
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
#ifdef __APPLE__
  result.peak_memory_bytes = usage.ru_maxrss;
#else
  result.peak_memory_bytes = int64_t{usage.ru_maxrss} * 1024;
#endif
  return result;
}

void EndWithParent() {
  std::thread([] {
    char byte;
    while (true) {
      const ssize_t size = read(STDIN_FILENO, &byte, 1);
      if (size == 0) break;
      if (size < 0 && errno != EINTR) return;
    }
    kill(getpid(), SIGTERM);
  }).detach();
}

}  // namespace mlc
