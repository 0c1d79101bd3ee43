// tools/driver/compiled_model_cache.h - compiles models for a runtime, using the cache of compiled
// models.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/cache/folder_cache.h"
#include "lib/runtime/runtime.h"
#include "lib/runtime/worker.h"
#include "lib/support/error.h"

namespace mlc::driver {

// Parses a size in bytes: "5000000", "500MB", "1.5 GB", "20GiB". Error "usage", which names `what`.
uint64_t ParseBytes(std::string_view what, std::string_view text);
// "1.50 GB"
std::string BytesText(uint64_t bytes);

// Returns $MLC_CACHE_DIR if set, otherwise mlc in $XDG_CACHE_HOME or ~/.cache (on Apple systems
// ~/Library/Caches/mlc-models). Error "file-io" if none of these is known.
std::filesystem::path DefaultCacheFolder();
// Returns the limit set by MLC_CACHE_LIMIT, or the default. Error "usage".
uint64_t CacheLimit();
// Opens the cache in `folder` (empty: the default folder) with that limit, creating it if
// necessary.
std::unique_ptr<cache::FolderCache> OpenCache(const std::filesystem::path& folder);
// Returns null if the cache does not exist, instead of creating it.
std::unique_ptr<cache::FolderCache> OpenExistingCache(const std::filesystem::path& folder);

// A bundle that can be loaded from `path` as long as this object or a copy of it lives; the cache
// does not evict it meanwhile. Without a cache, it is in a temporary folder that is removed with
// the last copy.
struct CompiledModel {
  std::filesystem::path path;
  bool made = false;   // whether it was compiled by this call
  double seconds = 0;  // time that compilation took, also if cached; 0 for models given compiled
  std::shared_ptr<const void> held;
};

// Returns the .mlmodelc of a .mlpackage or .mlmodel for `units`, compiled by `runtime` or taken
// from `cache` (may be null). A .mlmodelc is returned as it is. Throws Error "usage" for other
// formats, and the errors of Runtime::Compile and FolderCache::FindOrMake. If `faults` is given, a
// "file-io" error of the cache is appended to it, and the model is compiled without a cache.
CompiledModel CompiledFor(runtime::Runtime& runtime, const std::filesystem::path& model,
                          runtime::Units units, cache::FolderCache* cache = nullptr,
                          std::vector<Error>* faults = nullptr);
// Uses the cache in the default folder; if it is unusable, adds a note and compiles without a
// cache. Throws Error "timeout" beyond `limit`, and the other errors of Worker::Run.
CompiledModel CompiledWithin(runtime::Worker::Timeout limit,
                             std::shared_ptr<runtime::Runtime> runtime,
                             const std::filesystem::path& model, runtime::Units units,
                             Diagnostics& diagnostics);

// Returns whether the compiled form of a .mlpackage or .mlmodel depends only on the model's own
// files. A bare .mlmodel that refers to files beside it is never cached.
bool CanBeCached(const std::filesystem::path& model);
// Returns the cache key of the bundle that `maker` compiles from a package. It covers the package's
// name and files, `maker`, `options` and this build of mlc.
cache::CacheKey KeyOfCompiled(cache::FolderCache& cache, const std::filesystem::path& package,
                              std::string_view maker,
                              const std::vector<std::pair<std::string, std::string>>& options);

}  // namespace mlc::driver
