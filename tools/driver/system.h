// tools/driver/system.h - what this machine, this build and their runtime are and can do.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/runtime/model_cache.h"
#include "lib/runtime/runtime.h"
#include "lib/support/library_version.h"

namespace mlc {

struct SystemReport {
  std::string version, build;  // of mlc
  Capabilities runtime;  // of what runs models here where nobody says; chip and OS are filled in
  std::vector<LibraryVersion> libraries;
  int threads = 0;     // that mlc takes
  int processors = 0;  // that are there
  uint64_t memory_bytes = 0;
  std::filesystem::path cache_folder;
  std::string cache_fault;               // why there is none, else empty
  std::optional<CacheStatistics> cache;  // absent where there is no folder yet
  uint64_t disk_free_bytes = 0;          // where the cache is, or would be
};

// Makes nothing: a cache that is not there yet stays so.
SystemReport ExamineSystem(Runtime& runtime);

}  // namespace mlc
