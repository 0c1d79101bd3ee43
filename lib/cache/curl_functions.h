// lib/cache/curl_functions.h - the functions of libcurl, loaded when they are first used.
//
// libcurl brings thirty libraries with it, which would take a third of the time in which a command starts, and only the cache on a
// server needs it.
#pragma once

#include <curl/curl.h>

namespace mlc::cache {

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

// Loads and initialises the library once. Error "remote-cache" if it is not installed. Thread-safe.
const CurlFunctions& LoadCurl();

}  // namespace mlc::cache
