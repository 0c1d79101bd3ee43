// tools/driver/compiled_model_cache.h - compiled models, from the cache where they are in it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/runtime/model_cache.h"
#include "lib/runtime/runtime.h"
#include "lib/runtime/worker.h"
#include "lib/support/error.h"

namespace mlc {

// Bytes: "5000000", "500MB", "1.5 GB", "20GiB". Error "usage", which names `what`.
uint64_t ParseBytes(std::string_view what, std::string_view text);
// "1.50 GB"
std::string BytesText(uint64_t bytes);

// $MLC_CACHE_DIR; else mlc in $XDG_CACHE_HOME or ~/.cache; on Apple ~/Library/Caches/mlc-models. Error "file-io" where there is
// none of all that.
std::filesystem::path DefaultCacheFolder();
// What MLC_CACHE_LIMIT says, or the default. Error "usage".
uint64_t CacheLimit();
// The cache in `folder` (empty: the default one), which is made where it is not there, with that limit.
std::unique_ptr<ModelCache> OpenCache(const std::filesystem::path& folder);
// The same, but null where there is none: nothing is made.
std::unique_ptr<ModelCache> OpenExistingCache(const std::filesystem::path& folder);

// A bundle that may be loaded from `path` as long as this, or a copy, lives: nobody evicts it meanwhile. Without a
// cache it lies in a folder for temporary files, and goes with this.
struct CompiledModel {
  std::filesystem::path path;
  bool made = false;   // now; else it was in the cache, or given compiled
  double seconds = 0;  // that compiling took, whenever that was; 0 of what was given compiled
  std::shared_ptr<const void> held;
};

// The .mlmodelc of a .mlpackage or .mlmodel for `units`, by `runtime` or from `cache` (may be null). A .mlmodelc is
// what it is. Error "usage" for other formats; those of Runtime::Compile and ModelCache::FindOrMake, but that a cache
// which fails with "file-io" is done without where there are `faults`, and said there.
CompiledModel CompiledFor(Runtime& runtime, const std::filesystem::path& model, Units units,
                          ModelCache* cache = nullptr, std::vector<Error>* faults = nullptr);
// The same from the cache in the default folder, and without where that cannot be used, which becomes a note. Error
// "timeout" when it takes longer, and the others of Worker::Run.
CompiledModel CompiledWithin(Worker::Timeout limit, std::shared_ptr<Runtime> runtime,
                             const std::filesystem::path& model, Units units,
                             Diagnostics& diagnostics);

// Whether what is compiled of a .mlpackage or .mlmodel depends on its own files alone. A bare .mlmodel that names others
// beside it is never cached.
bool CanBeCached(const std::filesystem::path& model);
// The key of what `maker` compiles a package to: its files, this build of mlc and what else `options` says.
CacheKey KeyOfCompiled(ModelCache& cache, const std::filesystem::path& package,
                       std::string_view maker,
                       const std::vector<std::pair<std::string, std::string>>& options);

}  // namespace mlc
