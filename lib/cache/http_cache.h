// lib/cache/http_cache.h - a cache of results on a server: the HTTP protocol of Bazel's remote cache.
//
// GET and PUT of URL/ac/KEY (action_record.h) and URL/cas/SHA256; 404 means absent. bazel-remote and every web server that stores
// what is PUT to it (nginx with http_dav_module, Apache with mod_dav) will do. Nothing that the server returns is trusted: the
// record must be that of the key, and each file must have the recorded size and hash.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/cache/action_record.h"

namespace mlc::cache {

struct HttpOptions {
  // A header of every request, "Authorization: Bearer ...". Never part of a message.
  std::string header;
  std::chrono::seconds connect_timeout{10};
  std::chrono::seconds stall_timeout{30};  // without a byte received or sent
  int retries = 2;                         // after failures that may be temporary
};

// Uses the proxies of the environment and the credentials of ~/.netrc. Not thread-safe.
class HttpCache {
 public:
  // Error "usage" unless `url` is http(s)://HOST... without credentials, query and fragment.
  HttpCache(std::string url, HttpOptions options);
  ~HttpCache();
  HttpCache(const HttpCache&) = delete;
  HttpCache& operator=(const HttpCache&) = delete;

  static bool IsUrl(std::string_view place);

  // Copies the result NAME of an action below `into`, an existing folder, and returns its record;
  // nothing if the server has none. Error "remote-cache"; then `into` may have files that are not
  // verified. Error "file-io" if they cannot be written.
  std::optional<ActionRecord> Fetch(const CacheKey& key, std::string_view name,
                                    const std::filesystem::path& into);
  // Stores the result FOLDER/NAME; `record` describes it. Error "remote-cache".
  void Store(const CacheKey& key, const ActionRecord& record, const std::filesystem::path& folder);

 private:
  struct Transfer;
  struct Curl;
  long Perform(const std::string& path, Transfer& transfer);
  long Get(const std::string& path, Transfer& transfer);
  void Put(const std::string& path, Transfer& transfer);
  std::string url_;
  HttpOptions options_;
  std::unique_ptr<Curl> curl_;
};

}  // namespace mlc::cache
