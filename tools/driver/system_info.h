// tools/driver/system_info.h - describes this machine, this build of mlc and the default runtime.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/cache/folder_cache.h"
#include "lib/runtime/runtime.h"
#include "lib/support/library_version.h"

namespace mlc::driver {

struct SystemReport {
  std::string version, build;     // version and build of mlc
  runtime::Capabilities runtime;  // the default runtime; chip and OS are filled in
  std::vector<LibraryVersion> libraries;
  int threads = 0;     // used by mlc
  int processors = 0;  // available
  uint64_t memory_bytes = 0;
  std::filesystem::path cache_folder;
  std::string cache_fault;                      // why there is no cache; empty: no fault
  std::optional<cache::CacheStatistics> cache;  // absent if the folder does not exist yet
  uint64_t disk_free_bytes = 0;                 // on the disk of the cache folder
};

inline constexpr runtime::Units kAllUnits[] = {runtime::Units::kAll, runtime::Units::kCpu,
                                               runtime::Units::kGpu, runtime::Units::kAne,
                                               runtime::Units::kReference};
// Returns why units cannot be used on this machine, or "" if they can.
std::string WhyUnusable(const runtime::Capabilities& found, runtime::Units units);

// The libraries that mlc uses.
std::vector<LibraryVersion> Libraries();
// Does not create the cache folder.
SystemReport ExamineSystem(runtime::Runtime& runtime);

}  // namespace mlc::driver
