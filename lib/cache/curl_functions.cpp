#include "lib/cache/curl_functions.h"

#include <dlfcn.h>

#include "lib/support/error.h"

namespace mlc::cache {
namespace {

// The interface has had this version since 2006; Debian and Homebrew name the file by it.
#ifdef __APPLE__
constexpr const char* kLibrary = "libcurl.4.dylib";
#else
constexpr const char* kLibrary = "libcurl.so.4";
#endif

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

}  // namespace

const CurlFunctions& LoadCurl() {
  static const CurlFunctions curl = Load();
  return curl;
}

}  // namespace mlc::cache
