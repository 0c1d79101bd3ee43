#include "lib/support/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>

#include "lib/support/regular_file.h"
#include "lib/support/scratch_folders.h"

namespace mlc {

namespace {

struct Message {
  int signal;
  const void* address;  // address of the fault
};
enum class First { kNotAwaited, kAwaited, kCame };
std::atomic<First> first_interrupt = First::kNotAwaited;
static_assert(std::atomic<First>::is_always_lock_free);  // required in a signal handler
int to_watcher = -1;  // a pipe, since write is among the few calls allowed in a handler

void Handle(int number, siginfo_t* info, void*) {
  First awaited = First::kAwaited;
  if (number == SIGINT && first_interrupt.compare_exchange_strong(awaited, First::kCame)) return;
  int kept = errno;
  Message message{number, number == SIGBUS ? info->si_addr : nullptr};
  ssize_t written = write(to_watcher, &message, sizeof(message));
  if (number == SIGBUS) {
    // Returning would repeat the fault; the watcher thread ends the process.
    while (written > 0) pause();
    signal(SIGBUS, SIG_DFL);
  }
  errno = kept;
}

[[noreturn]] void DieOf(int number) {
  signal(number, SIG_DFL);
  kill(getpid(), number);
  while (true) pause();
}

void Watch(int pipe, const std::function<void(const Error&)>& report) {
  Message message;
  while (read(pipe, &message, sizeof(message)) != sizeof(message)) continue;
  ScratchFolders::RemoveAll();
  if (message.signal != SIGBUS) DieOf(message.signal);
  std::filesystem::path path = MappedAt(message.address);
  if (path.empty()) DieOf(SIGBUS);
  Error error = CutShort(path);
  report(error);
  _exit(ExitCode(error.id()));
}

}  // namespace

void HandleSignals(std::function<void(const Error&)> report) {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, nullptr);
  int ends[2];
  if (pipe(ends) != 0) return;  // no descriptors: signals keep their default actions
  for (int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  to_watcher = ends[1];
  try {
    std::thread([from = ends[0], report = std::move(report)] { Watch(from, report); }).detach();
  } catch (const std::system_error&) {
    return;  // no threads available
  }
  struct sigaction handle = {}, before;
  handle.sa_sigaction = Handle;
  handle.sa_flags = SA_SIGINFO | SA_RESTART;
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGBUS})
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      sigaction(number, &handle, nullptr);
}

FirstInterrupt::FirstInterrupt() { first_interrupt = First::kAwaited; }
FirstInterrupt::~FirstInterrupt() { first_interrupt = First::kNotAwaited; }
bool FirstInterrupt::came() const { return first_interrupt == First::kCame; }

void DieOfInterrupt() {
  ScratchFolders::RemoveAll();
  DieOf(SIGINT);
}

}  // namespace mlc
