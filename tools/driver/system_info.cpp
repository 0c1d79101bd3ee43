#include "tools/driver/system_info.h"

#include <fmt/format.h>
#ifndef __APPLE__
#include <openssl/crypto.h>
#include <openssl/opensslv.h>
#endif
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/engine/onednn_version.h"
#include "lib/support/build_id.h"
#include "lib/support/error.h"
#include "lib/support/threads.h"
#include "tools/driver/allocator.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/frontends.h"
#include "tools/driver/runtimes.h"
#include "tools/driver/version.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

// Converts the versions of fmt and xxHash: 90100 and 801 are 9.1.0 and 0.8.1.
std::string Dotted(unsigned number) {
  constexpr unsigned kPart = 100;
  return fmt::format("{}.{}.{}", number / kPart / kPart, number / kPart % kPart, number % kPart);
}

// Returns the folder itself, or its nearest existing ancestor.
fs::path Existing(fs::path folder) {
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

void ExamineCache(SystemReport& report) {
  try {
    report.cache_folder = fs::absolute(DefaultCacheFolder());
    std::error_code error;
    const fs::path there = Existing(report.cache_folder);
    const fs::space_info space = fs::space(there, error);
    if (!error) report.disk_free_bytes = space.available;
    if (const std::unique_ptr<cache::FolderCache> cache = OpenExistingCache(""))
      report.cache = cache->Statistics();
    else if (access(there.c_str(), W_OK) != 0 || !fs::is_directory(there))
      report.cache_fault = fmt::format("\"{}\" cannot be written", there.string());
  } catch (const Error& error) {
    report.cache_fault = error.text();
  }
}

}  // namespace

std::vector<LibraryVersion> Libraries() {
  std::vector<LibraryVersion> found;
  for (const Frontend& frontend : Frontends())
    if (frontend.libraries)
      for (LibraryVersion& library : frontend.libraries()) found.push_back(std::move(library));
  found.push_back(engine::EngineLibrary());
  found.push_back({"fmt", Dotted(FMT_VERSION), ""});
  found.push_back({"nlohmann/json",
                   fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                               NLOHMANN_JSON_VERSION_PATCH),
                   ""});
  found.push_back({"xxHash", Dotted(XXH_VERSION_NUMBER), Dotted(XXH_versionNumber())});
  found.push_back({"zlib", ZLIB_VERSION, zlibVersion()});
#ifndef __APPLE__
  std::string openssl = OpenSSL_version(OPENSSL_VERSION);  // "OpenSSL 3.0.19 27 Jan 2026"
  openssl = openssl.substr(openssl.find(' ') + 1);
  found.push_back({"OpenSSL", OPENSSL_VERSION_STR, openssl.substr(0, openssl.find(' '))});
#endif
  if (const std::string version = JemallocVersion(); !version.empty())
    found.push_back({"jemalloc", "", version});
  return found;
}

SystemReport ExamineSystem(runtime::Runtime& runtime) {
  SystemReport report{.version = kVersion, .build = BuildId(), .runtime = runtime.capabilities()};
  report.libraries = Libraries();
  report.threads = DefaultThreads();
  report.processors = static_cast<int>(std::thread::hardware_concurrency());
  report.memory_bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  ExamineCache(report);
  return report;
}

std::string WhyUnusable(const runtime::Capabilities& found, runtime::Units units) {
  if (units == runtime::Units::kReference) return "";
  if (!make_core_ml) return "requires Core ML, which runs on Apple's systems only";
  for (runtime::Device device : {runtime::Device::kGpu, runtime::Device::kAne})
    if (Name(device) == Name(units) &&
        std::ranges::find(found.devices, device) == found.devices.end())
      return "Core ML finds none on this machine";
  return "";
}

}  // namespace mlc::driver
