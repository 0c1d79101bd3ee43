#include "lib/cache/http_cache.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include "lib/support/atomic_install.h"
#include "lib/support/error.h"
#include "lib/support/hash.h"

namespace fs = std::filesystem;

namespace mlc::cache {

// libcurl is loaded when it is first used: it brings thirty libraries with it, which would take half of the time in which a
// command starts.

// Functions under their names in libcurl, without the prefix "curl_".
struct CurlFunctions {
  decltype(&curl_global_init) global_init;
  decltype(&curl_free) free;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
  decltype(&curl_url) url;
  decltype(&curl_url_cleanup) url_cleanup;
  decltype(&curl_url_get) url_get;
  decltype(&curl_url_set) url_set;
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_reset) easy_reset;
  // Not by their names, which are macros of curl/curl.h.
  CURLcode (*set_option)(CURL*, CURLoption, ...);
  CURLcode (*get_info)(CURL*, CURLINFO, ...);
  decltype(&curl_easy_perform) easy_perform;
  decltype(&curl_easy_strerror) easy_strerror;
};

namespace {

// The interface has had this version since 2006; Debian and Homebrew name the file by it.
#ifdef __APPLE__
constexpr const char* kLibrary = "libcurl.4.dylib";
#else
constexpr const char* kLibrary = "libcurl.so.4";
#endif

// Returns the file of certificates to trust, or nullptr for libcurl's default. libcurl itself ignores SSL_CERT_FILE, OpenSSL's
// variable, and Debian's libcurl, which releases bring to other systems, knows Debian's place alone.
const char* Certificates() {
  if (const char* chosen = std::getenv("SSL_CERT_FILE")) return chosen;
#ifndef __APPLE__
  std::error_code ignored;
  for (const char* place : {"/etc/ssl/certs/ca-certificates.crt",  // Debian
                            "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora
                            "/etc/ssl/ca-bundle.pem",              // openSUSE
                            "/etc/ssl/cert.pem"})                  // Alpine
    if (fs::exists(place, ignored)) return place;
#endif
  return nullptr;
}

CurlFunctions Load() {
  // Never unloaded: libraries that it uses have state of threads.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error("remote-cache", "libcurl, which transfers results, cannot be loaded: {}", dlerror())
        .Help("install libcurl (Debian: libcurl4), or use a cache in a folder");
  CurlFunctions curl;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function) throw Error("remote-cache", "{} lacks the function {}", kLibrary, name);
  };
  find(curl.global_init, "curl_global_init");
  find(curl.free, "curl_free");
  find(curl.slist_append, "curl_slist_append");
  find(curl.slist_free_all, "curl_slist_free_all");
  find(curl.url, "curl_url");
  find(curl.url_cleanup, "curl_url_cleanup");
  find(curl.url_get, "curl_url_get");
  find(curl.url_set, "curl_url_set");
  find(curl.easy_init, "curl_easy_init");
  find(curl.easy_cleanup, "curl_easy_cleanup");
  find(curl.easy_reset, "curl_easy_reset");
  find(curl.set_option, "curl_easy_setopt");
  find(curl.get_info, "curl_easy_getinfo");
  find(curl.easy_perform, "curl_easy_perform");
  find(curl.easy_strerror, "curl_easy_strerror");
  curl.global_init(CURL_GLOBAL_DEFAULT);
  return curl;
}

// Thread-safe.
const CurlFunctions& LoadCurl() {
  static const CurlFunctions curl = Load();
  return curl;
}

constexpr long kOk = 200, kUnauthorized = 401, kForbidden = 403, kNotFound = 404, kNotAllowed = 405,
               kTooLarge = 413;

// A failure that trying again does not repair.
struct FinalError : Error {
  explicit FinalError(const Error& error) : Error(error) {}
};

bool IsSuccess(long status) { return status >= 200 && status < 300; }

std::string Advice(long status) {
  if (status == kUnauthorized)
    return "put credentials into ~/.netrc, or a header into MLC_CACHE_HEADER";
  if (status == kForbidden || status == kNotAllowed)
    return "pass option 'read-only-cache' if you may not write to this cache";
  if (status == kTooLarge) return "raise the limit of the server (nginx: client_max_body_size 0)";
  return "";
}

Error StatusError(long status, const std::string& url) {
  Error error("remote-cache", "the server answered {}", status);
  error.At({url, ""});
  const std::string advice = Advice(status);
  if (advice.empty()) return error;
  error.Help(advice);
  throw FinalError(error);
}

// Calls `request` until it succeeds.
template <class Request>
auto Retry(int retries, Request&& request) {
  for (int i = 0;; ++i) {
    try {
      return request();
    } catch (const FinalError&) {
      throw;
    } catch (const Error& error) {
      if (i >= retries || error.id() != "remote-cache") throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200 << (2 * i)));
  }
}

}  // namespace

// One request. The callbacks must not throw, because libcurl is C.
struct HttpCache::Transfer {
  // Receiving: the body goes to `into` (null: dropped) and is hashed. Receiving more than `most`
  // bytes is an error.
  std::string* text = nullptr;
  OutputFile* file = nullptr;
  uint64_t most = 0, received = 0;
  Sha256 hash;
  std::exception_ptr failure;
  // Sending.
  bool send = false, head = false;
  std::string_view bytes;  // sent if `path` is empty
  fs::path path;
  uint64_t size = 0;
  std::ifstream source;

  static size_t Receive(char* data, size_t, size_t size, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    transfer.received += size;
    if (transfer.received > transfer.most) return 0;
    try {
      const std::string_view text(data, size);
      if (transfer.text) transfer.text->append(text);
      if (transfer.file) {
        transfer.file->Write(text);
        transfer.hash.Update(text);
      }
    } catch (...) {
      transfer.failure = std::current_exception();
      return 0;
    }
    return size;
  }
  static size_t Send(char* data, size_t, size_t size, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    if (transfer.path.empty()) {
      const size_t sent = std::min(size, transfer.bytes.size());
      std::copy_n(transfer.bytes.data(), sent, data);
      transfer.bytes.remove_prefix(sent);
      return sent;
    }
    transfer.source.read(data, static_cast<std::streamsize>(size));
    return static_cast<size_t>(transfer.source.gcount());
  }
  static size_t Drop(char*, size_t, size_t size, void*) { return size; }
};

struct HttpCache::Curl {
  const CurlFunctions& functions = LoadCurl();
  CURL* easy = functions.easy_init();
  curl_slist* headers = nullptr;
  ~Curl() {
    functions.slist_free_all(headers);
    functions.easy_cleanup(easy);
  }
};

bool HttpCache::IsUrl(std::string_view place) {
  return place.starts_with("http://") || place.starts_with("https://");
}

HttpCache::HttpCache(std::string url, HttpOptions options)
    : url_(std::move(url)), options_(std::move(options)) {
  while (url_.ends_with('/')) url_.pop_back();
  const CurlFunctions& curl = LoadCurl();
  CURLU* parsed = curl.url();
  auto part = [&](CURLUPart which) {
    char* text = nullptr;
    const bool found = curl.url_get(parsed, which, &text, 0) == CURLUE_OK;
    std::string copy = found ? text : "";
    curl.free(text);
    return copy;
  };
  const bool valid = curl.url_set(parsed, CURLUPART_URL, url_.c_str(), 0) == CURLUE_OK &&
                     !part(CURLUPART_HOST).empty();
  const bool secret = !part(CURLUPART_USER).empty() || !part(CURLUPART_PASSWORD).empty();
  const bool more = !part(CURLUPART_QUERY).empty() || !part(CURLUPART_FRAGMENT).empty();
  curl.url_cleanup(parsed);
  if (secret)
    throw Error("usage", "the URL of the cache contains credentials")
        .Help("put them into ~/.netrc, or a header into MLC_CACHE_HEADER");
  if (!IsUrl(url_) || !valid || more)
    throw Error("usage", "\"{}\" is not the URL of a cache", url_)
        .Expected("http://HOST/PREFIX or https://HOST/PREFIX");
  curl_ = std::make_unique<Curl>();
  if (!curl_->easy) throw Error("remote-cache", "libcurl cannot be initialised");
  // Without this, servers that do not know the expectation delay each upload by a second.
  curl_->headers = curl.slist_append(nullptr, "Expect:");
  if (!options_.header.empty())
    curl_->headers = curl.slist_append(curl_->headers, options_.header.c_str());
}

HttpCache::~HttpCache() = default;

// Returns the status of the response. Error "remote-cache" if there is none, or only a part.
long HttpCache::Perform(const std::string& path, Transfer& transfer) {
  const CurlFunctions& curl = curl_->functions;
  CURL* easy = curl_->easy;
  curl.easy_reset(easy);  // keeps the connection
  const std::string url = url_ + path;
  char reason[CURL_ERROR_SIZE] = "";
  curl.set_option(easy, CURLOPT_URL, url.c_str());
  curl.set_option(easy, CURLOPT_ERRORBUFFER, reason);
  curl.set_option(easy, CURLOPT_HTTPHEADER, curl_->headers);
  curl.set_option(easy, CURLOPT_USERAGENT, "mlc");
  curl.set_option(easy, CURLOPT_NOSIGNAL, 1L);
  if (const char* certificates = Certificates())
    curl.set_option(easy, CURLOPT_CAINFO, certificates);
  curl.set_option(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  curl.set_option(easy, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
  curl.set_option(easy, CURLOPT_CONNECTTIMEOUT,
                  static_cast<long>(options_.connect_timeout.count()));
  curl.set_option(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl.set_option(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.stall_timeout.count()));
  if (transfer.send) {
    curl.set_option(easy, CURLOPT_UPLOAD, 1L);
    curl.set_option(easy, CURLOPT_READFUNCTION, &Transfer::Send);
    curl.set_option(easy, CURLOPT_READDATA, &transfer);
    curl.set_option(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(transfer.size));
    curl.set_option(easy, CURLOPT_WRITEFUNCTION, &Transfer::Drop);
  } else {
    curl.set_option(easy, CURLOPT_NOBODY, transfer.head ? 1L : 0L);
    curl.set_option(easy, CURLOPT_FAILONERROR, 1L);  // the text of an error is not a blob
    curl.set_option(easy, CURLOPT_WRITEFUNCTION, &Transfer::Receive);
    curl.set_option(easy, CURLOPT_WRITEDATA, &transfer);
  }
  const CURLcode code = curl.easy_perform(easy);
  if (transfer.failure) std::rethrow_exception(transfer.failure);
  long status = 0;
  curl.get_info(easy, CURLINFO_RESPONSE_CODE, &status);
  if (code == CURLE_OK || code == CURLE_HTTP_RETURNED_ERROR) return status;
  if (code == CURLE_WRITE_ERROR)
    throw Error("remote-cache", "the server sent more bytes than the record states").At({url, ""});
  Error error("remote-cache", "{}", *reason ? reason : curl.easy_strerror(code));
  error.At({url, ""});
  if (code != CURLE_OPERATION_TIMEDOUT) throw error;
  throw FinalError(error.Note("the limits are {} s for a connection, and {} s without any data",
                              options_.connect_timeout.count(), options_.stall_timeout.count()));
}

// Returns kOk or kNotFound.
long HttpCache::Get(const std::string& path, Transfer& transfer) {
  const long status = Perform(path, transfer);
  if (status == kNotFound || IsSuccess(status)) return status;
  throw StatusError(status, url_ + path);
}

std::optional<ActionRecord> HttpCache::Fetch(const CacheKey& key, std::string_view name,
                                             const fs::path& into) {
  const std::string hex = key.Hex();
  const std::string ac = "/ac/" + hex;
  std::string bytes;
  const long status = Retry(options_.retries, [&] {
    bytes.clear();
    Transfer transfer{.text = &bytes, .most = kMostOfRecord};
    return Get(ac, transfer);
  });
  if (status == kNotFound) return std::nullopt;
  std::optional<ActionRecord> record = Decode(bytes, hex);
  if (!record || record->name != name)
    throw Error("remote-cache", "the server's record is damaged, or that of another action")
        .At({url_ + ac, ""});
  for (const ActionRecord::File& file : record->files) {
    const fs::path path = into / file.path;
    fs::create_directories(path.parent_path());
    const std::string cas = "/cas/" + file.sha256;
    const long found = Retry(options_.retries, [&] {
      OutputFile output(path);
      Transfer transfer{.file = &output, .most = file.size};
      const long code = Get(cas, transfer);
      output.Close();
      if (code != kNotFound &&
          (transfer.received != file.size || transfer.hash.Hex() != file.sha256))
        throw Error("remote-cache", "the server returned wrong data: hash mismatch")
            .At({url_ + cas, ""});
      return code;
    });
    // A server may remove files before the records that name them.
    if (found == kNotFound) return std::nullopt;
  }
  return record;
}

void HttpCache::Put(const std::string& path, Transfer& transfer) {
  if (const long status = Perform(path, transfer); !IsSuccess(status))
    throw StatusError(status, url_ + path);
}

void HttpCache::Store(const CacheKey& key, const ActionRecord& record, const fs::path& folder) {
  constexpr uint64_t kSmall = 1 << 16;  // cheaper to send than to ask for
  for (const ActionRecord::File& file : record.files) {
    const std::string cas = "/cas/" + file.sha256;
    if (file.size > kSmall) {
      Transfer ask{.head = true};
      if (Perform(cas, ask) == kOk) continue;
    }
    Retry(options_.retries, [&] {
      Transfer transfer{.send = true, .path = folder / file.path, .size = file.size};
      transfer.source.open(transfer.path, std::ios::binary);
      Put(cas, transfer);
    });
  }
  const std::string bytes = Encode(record);
  Retry(options_.retries, [&] {
    Transfer transfer{.send = true, .bytes = bytes, .size = bytes.size()};
    Put("/ac/" + key.Hex(), transfer);
  });
}

}  // namespace mlc::cache
