// lib/support/interrupt.h - how a tool ends when a signal ends it: nothing half written stays.
//
// For mains. The library installs no handlers.
#pragma once

#include <functional>

#include "lib/support/error.h"

namespace mlc {

// From here on, for the whole process:
//   SIGINT, SIGTERM, SIGHUP  what every Staging and TemporaryFolder holds is removed, then the
//                            process dies of the signal. One that was ignored stays so (nohup).
//   SIGBUS                   in a MappedFile, which somebody cut short: the same, but `report` gets
//                            Error "file-io" that names the file, and the exit code is that of its
//                            id. Elsewhere: a crash, as always.
//   SIGXFSZ                  is ignored: beyond the file-size limit, writing fails with an error.
// `report` is called on a thread of its own, while others may still work.
void HandleSignals(std::function<void(const Error&)> report);

// While one lives, where HandleSignals was called, the first SIGINT is noted and ends nothing: for
// work that is worth something wherever it ends. The second one does what it always does. One at a
// time.
class FirstInterrupt {
 public:
  FirstInterrupt();
  ~FirstInterrupt();
  FirstInterrupt(const FirstInterrupt&) = delete;
  FirstInterrupt& operator=(const FirstInterrupt&) = delete;
  bool came() const;
};
// Ends the process as a SIGINT that nobody waits for does.
[[noreturn]] void DieOfInterrupt();

}  // namespace mlc
