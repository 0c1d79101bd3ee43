// lib/support/work_scope.h - limits of the work that the current thread does on behalf of a caller.
//
// A host that embeds the library sets them for one call, without a setting of the whole process.
// ParallelFor passes them on to its threads. Without a scope, nothing is limited.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>

namespace mlc {

struct WorkLimits {
  int threads = 0;                               // maximum number of threads; 0: DefaultThreads()
  const std::atomic<bool>* cancelled = nullptr;  // set by another thread to end the work early
  // False: files are read instead of mapped, so that a file that another process truncates is an
  // error instead of a signal.
  bool map_files = true;
  // Folders for temporary files and for the cache of compiled models; null: those of the
  // environment.
  std::shared_ptr<const std::filesystem::path> temporary_folder = nullptr, cache_folder = nullptr;
};

// Sets the limits of the current thread until it is destroyed.
class WorkScope {
 public:
  explicit WorkScope(const WorkLimits& limits);
  ~WorkScope();
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;
  // The limits of the current thread.
  static const WorkLimits& Current();

 private:
  WorkLimits before_;
};

// Error "cancelled" if the work of the current thread is cancelled. Long loops call it between
// items.
void ThrowIfCancelled();

}  // namespace mlc
