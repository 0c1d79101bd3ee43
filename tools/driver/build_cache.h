// tools/driver/build_cache.h - the cache of results that builds share: a folder, or a server.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cache/folder_cache.h"
#include "lib/cache/http_cache.h"
#include "lib/support/error.h"

namespace mlc::driver {

struct CacheOptions {
  std::string place;  // a folder, or http(s)://HOST/PREFIX; empty: no cache
  bool read_only = false;
};

// A failure of the cache is a warning, after which the cache is not used any more: a build never
// fails because of it. Not thread-safe.
class BuildCache {
 public:
  // Error "usage" for an invalid URL, "file-exists" for a folder with other contents.
  explicit BuildCache(const CacheOptions& options);

  // Copies the result of an action to `into`, a path that does not exist and ends in the name of the
  // action. Returns whether there was one; its files have been verified.
  bool Fetch(const cache::CacheKey& key, std::string_view action,
             const std::filesystem::path& into);
  // The same, but `make` creates a missing result, which is then added to the cache. If several
  // processes share a folder, one of them makes the result and the others wait for it. Exceptions
  // of `make` are passed on.
  bool FetchOrMake(const cache::CacheKey& key, std::string_view action,
                   const std::filesystem::path& into,
                   const std::function<void(const std::filesystem::path&)>& make);

  // Warnings since the last call.
  std::vector<Error> TakeWarnings();

 private:
  void Fail(const Error& error);
  bool Copy(const cache::FolderCache::Entry& entry, std::string_view action,
            const std::filesystem::path& into);
  CacheOptions options_;
  std::unique_ptr<cache::FolderCache> folder_;
  std::unique_ptr<cache::HttpCache> http_;
  std::vector<Error> warnings_;
};

}  // namespace mlc::driver
