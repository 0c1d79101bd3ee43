// lib/support/interrupt.h - signal handling of the tools: partial output is removed when a signal
// ends the process.
//
// For main functions; the library installs no handlers.
#pragma once

#include <functional>

#include "lib/support/error.h"

namespace mlc {

// Installs handlers for the whole process:
//   SIGINT, SIGTERM, SIGHUP  removes the folders of every Staging and TemporaryFolder, then dies of the
//                            signal. A signal that was ignored stays ignored (nohup).
//   SIGBUS                   in a MappedFile, which another process truncated: the same, but `report`
//                            gets Error "file-io" with the file name, and the exit code is that of its
//                            id. Elsewhere: crashes by default.
//   SIGXFSZ                  is ignored, so that writing beyond the file-size limit fails with an error.
// `report` is called on a separate thread while others may still be running.
void HandleSignals(std::function<void(const Error&)> report);

// While an instance exists and HandleSignals was called, the first SIGINT is only recorded, so that
// work whose partial result is useful can finish early. The second SIGINT acts as usual. At most
// one instance at a time.
class FirstInterrupt {
 public:
  FirstInterrupt();
  ~FirstInterrupt();
  FirstInterrupt(const FirstInterrupt&) = delete;
  FirstInterrupt& operator=(const FirstInterrupt&) = delete;
  bool came() const;
};
// Ends the process like an unhandled SIGINT.
[[noreturn]] void DieOfInterrupt();

}  // namespace mlc
